// The connection table of one NIC: what the manager knows, behind its lock.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "libvipl/connection/acceptor.hpp"
#include "libvipl/connection/closing_connections.hpp"
#include "libvipl/connection/drops.hpp"
#include "libvipl/connection/fork.hpp"
#include "libvipl/connection/incoming.hpp"
#include "libvipl/connection/listen_queue.hpp"
#include "libvipl/connection/rendezvous_socket.hpp"
#include "libvipl/connection/session.hpp"
#include "libvipl/connection/wakeups.hpp"

namespace viaduct::vipl {

class ConnectionTable : public std::enable_shared_from_this<ConnectionTable> {
 public:
  explicit ConnectionTable(const NicAddress& nic) : self(nic) {}

  std::shared_ptr<Session> session_of(ConnectionUser& user) const;
  // A new session instead of the one that is remembered of the user; that one ends.
  std::shared_ptr<Session> start(ConnectionUser& user, Session::Role role);
  void forget_if_finished(ConnectionUser& user);
  // With a request of a peer whose outcome the program does not know yet; nullptr: there is none.
  std::shared_ptr<Session> untold_peer(ConnectionUser& user) const;
  VIP_RETURN tell(ConnectionUser& user, Session& session, Card& remote_card);
  // What fail() left.
  void take_failures();
  // ... of an attempt that is over, because the same user begins another one.
  void forget_failures(ConnectionUser& user);

  // Not that of a process that this one is a child of.
  bool is_ours() const { return forks_ == forks(); }

  const NicAddress self;
  std::mutex mutex;
  Wakeups wakeups;
  Loop loop;  // first of what is made, last of what goes: all others use it
  Drops drops;
  ClosingConnections closing{loop, drops};
  RequestRouter router{loop, closing};
  Acceptor acceptor{loop, self, router, closing};
  ListenQueue listen_queue{*this};
  std::unordered_map<ConnectionUser*, std::shared_ptr<Session>> sessions;
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
    ConnectionUser* user;
    Loss loss;
  };
  std::mutex failures_mutex;
  std::vector<Failure> failures;

 private:
  const unsigned forks_ = forks();
};

}  // namespace viaduct::vipl
