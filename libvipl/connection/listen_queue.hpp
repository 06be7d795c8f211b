// ListenQueue: the listeners of one NIC handle (threads in VipConnectWait), and the connection
// requests that no listener has taken yet.
//
// A server that serves many clients is between two waits most of the time. So its rendezvous socket
// stays open for 0.1 s after the last wait has returned (`linger`), and a request that comes
// meanwhile is queued for the next wait. For the same reason a wait with a timeout of 0 finds
// requests.
//
// Part of a ConnectionTable; all functions need the manager's lock.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "libvipl/connection/received_request.hpp"
#include "libvipl/connection/rendezvous_socket.hpp"
#include "libvipl/connection/socket/wakeups.hpp"

namespace viaduct::vipl {

class ListenQueue {
 public:
  explicit ListenQueue(ConnectionTable& table) : table_(table) {}

  // VipConnectWait: blocks until a request for `local` comes (VIP_SUCCESS), the deadline passes
  // (VIP_TIMEOUT) or the NIC is closed (VIP_ERROR_RESOURCE, also if no rendezvous socket is to be
  // had). It gives up `lock`, the manager's, while it blocks.
  VIP_RETURN wait(std::unique_lock<std::mutex>& lock, const Discriminator& local, Deadline deadline,
                  std::shared_ptr<ReceivedRequest>& request);
  // Wakes all waits, which find the table closed and return. clear() may be called when they have
  // left.
  void wake();
  void clear() { listeners_.clear(); }

 private:
  // A thread in wait(). The struct lives on that thread's stack.
  struct Waiter {
    std::shared_ptr<ReceivedRequest> incoming;  // its request, once there is one
    Wakeup changed = make_wakeup();
  };
  // The listeners of one discriminator. The thread that has waited longest gets the next request.
  struct Listener {
    std::unique_ptr<RendezvousSocket> rendezvous;
    std::deque<Waiter*> waiters;
    std::deque<PendingRequest> queue;  // came while no thread waited
    Loop::Timer linger;                // runs while no thread waits; then the listener is closed
  };

  // The listener of this discriminator, made if there is none. nullptr: all places of its
  // rendezvous name are taken, or no file descriptors are left.
  Listener* listener_of(const Discriminator& local);
  void on_pending_request(const Discriminator& local, PendingRequest pending);
  // The oldest queued request whose caller is still there.
  std::optional<PendingRequest> first_in_queue(Listener& listener);
  void let_linger(const Discriminator& local, Listener& listener);
  void close(const Discriminator& local);

  ConnectionTable& table_;
  std::map<Discriminator, Listener> listeners_;
};

}  // namespace viaduct::vipl
