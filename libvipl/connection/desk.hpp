// What the manager knows, behind its lock.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "libvipl/connection/bells.hpp"
#include "libvipl/connection/door.hpp"
#include "libvipl/connection/drops.hpp"
#include "libvipl/connection/farewells.hpp"
#include "libvipl/connection/fork.hpp"
#include "libvipl/connection/incoming.hpp"
#include "libvipl/connection/reception.hpp"
#include "libvipl/connection/session.hpp"
#include "libvipl/connection/waiting_room.hpp"

namespace viaduct::vipl {

class Desk : public std::enable_shared_from_this<Desk> {
 public:
  explicit Desk(const NicAddress& nic) : self(nic) {}

  std::shared_ptr<Session> session_of(Party& party) const;
  // A new one instead of what is remembered of the party; what there still was ends.
  std::shared_ptr<Session> start(Party& party, Session::Role role);
  void forget_if_finished(Party& party);
  // With a request of a peer whose outcome the program does not know yet; nullptr: there is none.
  std::shared_ptr<Session> untold_peer(Party& party) const;
  VIP_RETURN tell(Party& party, Session& session, Card& remote_card);
  // What fail() left.
  void take_failures();
  // ... of an attempt that is over: another one of the party begins.
  void forget_failures(Party& party);

  // Not that of a process that this one is a child of.
  bool is_ours() const { return forks_ == forks(); }

  const NicAddress self;
  std::mutex mutex;
  Bells bells;
  Loop loop;  // first of what is made, last of what goes: all others use it
  Drops drops;
  Farewells farewells{loop, drops};
  Usher usher{loop, farewells};
  Reception reception{loop, self, usher, farewells};
  WaitingRoom waiting_room{*this};
  std::unordered_map<Party*, std::shared_ptr<Session>> sessions;
  // Requests that the program has been given and has not answered.
  std::unordered_set<std::shared_ptr<Incoming>> given;
  Aliases aliases;
  std::condition_variable aliases_known;
  bool closed = false;
  unsigned inside = 0;  // threads that may be blocked
  std::condition_variable left;

  // fail() may be called with any lock held, so it has one that nobody else is called with, and
  // room for all sessions.
  struct Failure {
    Party* party;
    Loss loss;
  };
  std::mutex failures_mutex;
  std::vector<Failure> failures;

 private:
  const unsigned forks_ = forks();
};

}  // namespace viaduct::vipl
