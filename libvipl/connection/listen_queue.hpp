// The programs that wait for requests (VipConnectWait), and the requests that wait for them.
//
// A program that serves many clients is between two waits most of the time: its rendezvous socket
// stays for a moment after the last wait has returned, and a request that comes meanwhile gets the
// next wait. The same moment makes waits with a timeout of 0 useful.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "libvipl/connection/incoming.hpp"
#include "libvipl/connection/rendezvous_socket.hpp"
#include "libvipl/connection/wakeups.hpp"

namespace viaduct::vipl {

class ListenQueue {
 public:
  explicit ListenQueue(ConnectionTable& table) : table_(table) {}

  // With the manager's lock held, which it gives up while it blocks.
  VIP_RETURN wait(std::unique_lock<std::mutex>& lock, const Discriminator& local, Deadline deadline,
                  std::shared_ptr<Incoming>& request);
  // All waits return; clear() when they have.
  void wake();
  void clear() { points_.clear(); }

 private:
  struct Waiter {
    std::shared_ptr<Incoming> incoming;
    Wakeup changed = make_wakeup();
  };
  // Where one discriminator is awaited.
  struct Point {
    std::unique_ptr<RendezvousSocket> rendezvous;
    std::deque<Waiter*> waiters;
    std::deque<PendingRequest> queue;  // came when nobody waited
    Loop::Timer linger;
  };

  Point* point_of(const Discriminator& local);
  void on_pending_request(const Discriminator& local, PendingRequest pending);
  std::optional<PendingRequest> first_in_queue(Point& point);
  void let_linger(const Discriminator& local, Point& point);
  void close(const Discriminator& local);

  ConnectionTable& table_;
  std::map<Discriminator, Point> points_;
};

}  // namespace viaduct::vipl
