// ConnectionTable: all state of a Manager, that is, of the connections of one NIC handle, behind
// one mutex.
//
// The Manager's public functions lock `mutex`, change the state, and block on condition variables.
// The parts (Acceptor, RequestRouter, ListenQueue, PeerListeners, Session, ClosingConnections) have
// no lock of their own and are used with `mutex` held.
//
// Shared ownership: threads that are blocked inside the manager, and requests that the program has
// not answered, keep the table alive or learn from a weak reference that it is gone.
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
#include "libvipl/connection/listen_queue.hpp"
#include "libvipl/connection/peers/peer_listeners.hpp"
#include "libvipl/connection/received_request.hpp"
#include "libvipl/connection/rendezvous_socket.hpp"
#include "libvipl/connection/session.hpp"
#include "libvipl/connection/socket/fork.hpp"
#include "libvipl/connection/socket/wakeups.hpp"

namespace viaduct::vipl {

class ConnectionTable : public std::enable_shared_from_this<ConnectionTable> {
 public:
  explicit ConnectionTable(const NicAddress& nic) : self(nic) {
    router.try_first([this](PendingRequest& pending) { return peer_listeners.take(pending); });
  }

  // The session of this user; nullptr: it has no connection and no attempt.
  std::shared_ptr<Session> session_of(ConnectionUser& user) const;
  // Makes a new session for this user. A session that it still has ends: a thread that waits for
  // that one gets VIP_INVALID_STATE.
  std::shared_ptr<Session> start(ConnectionUser& user, Session::Role role);
  // Drops the user's session if no call can ask for its outcome any more.
  void forget_if_finished(ConnectionUser& user);
  // The session of a peer request whose outcome the program has not yet got. nullptr: there is
  // none, and VipConnectPeerDone and VipConnectPeerWait return VIP_INVALID_STATE.
  std::shared_ptr<Session> unreported_peer(ConnectionUser& user) const;
  // The outcome of a peer request, which there must be; it is returned once.
  VIP_RETURN report_outcome(ConnectionUser& user, Session& session, EndpointInfo& remote_card);
  // Whether the program has something to take with VipConnectEvent.
  bool has_events() const { return !outcomes.empty() || peer_listeners.has_next(); }
  // Executes what Manager::fail() has queued.
  void take_failures();
  // Drops what is queued for this user: the failed attempt is over, and another one begins.
  void forget_failures(ConnectionUser& user);

  // Blocks until done(), called with `lock` held, the manager's, or until the deadline; `changed`
  // is notified whenever done() may have changed. False: the deadline has passed. Gives up the lock
  // meanwhile. If the program drives the NIC, it is driven at least once.
  template <class Done>
  bool block(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
             Deadline deadline, Done done) {
    if (drive == nullptr && !deadline) {
      changed.wait(lock, done);
      return true;
    }
    if (drive == nullptr) return changed.wait_until(lock, *deadline, done);
    for (bool driven = false; !done(); driven = true) {
      if (driven && deadline && Clock::now() >= *deadline) return false;
      lock.unlock();
      drive(deadline);
      lock.lock();
    }
    return true;
  }

  // False in a child of fork(): the table belongs to the parent.
  bool is_ours() const { return forks_ == forks(); }

  const NicAddress self;
  // The manager's lock. It protects everything below, except what says otherwise.
  std::mutex mutex;
  Wakeups wakeups;
  Drive drive;  // what blocked threads do; empty: sleep
  // Made first and destroyed last, because all others watch descriptors and set timers in it.
  Loop loop;
  Drops drops;
  ClosingConnections closing{loop, drops};
  RequestRouter router{loop, closing};
  Acceptor acceptor{loop, self, router, closing};
  ListenQueue listen_queue{*this};
  PeerListeners peer_listeners{*this};
  // On a NIC that its program drives: peer sessions that are still to begin, and those whose
  // outcome the program has not got, in their order. Before `sessions`, because sessions leave
  // these when they are destroyed.
  Sessions put_off, outcomes;
  // The session of each VI that is connected or being connected.
  std::unordered_map<ConnectionUser*, std::shared_ptr<Session>> sessions;
  // Requests that VipConnectWait has returned and the program has not yet accepted or rejected.
  std::unordered_set<std::shared_ptr<ReceivedRequest>> unanswered;
  Aliases aliases;                        // of this side, told to each new connection
  std::condition_variable aliases_acked;  // notified when sessions get acknowledgements, or end
  bool closed = false;                    // shutdown() has begun
  unsigned callers_inside = 0;            // threads in functions that may block
  std::condition_variable all_left;       // notified when `callers_inside` becomes 0

  // The queue of Manager::fail(), which may be called with any lock held, also the manager's. So
  // the queue has a mutex of its own, under which no other lock is taken. Its capacity is that of
  // all sessions, so that fail() allocates nothing.
  // (Not a boost::lockfree::queue: that saves 5 % of the 0.9 us that a failure and its wake-up
  // take, but cannot erase what one user has queued, takes 81 bytes a session instead of 16, and
  // ThreadSanitizer reports data races in it when several threads push.)
  struct Failure {
    ConnectionUser* user;
    CloseReason reason;
  };
  std::mutex failures_mutex;
  std::vector<Failure> failures;

 private:
  const unsigned forks_ = forks();
};

}  // namespace viaduct::vipl
