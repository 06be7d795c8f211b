// The programs that wait for requests (VipConnectWait), and the requests that wait for them.
//
// A program that serves many clients is between two waits most of the time: its door stays for a
// moment after the last wait has returned, and who comes meanwhile gets the next one. The same
// moment makes waits with a timeout of 0 useful.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "libvipl/connection/bells.hpp"
#include "libvipl/connection/door.hpp"
#include "libvipl/connection/incoming.hpp"

namespace viaduct::vipl {

class WaitingRoom {
 public:
  explicit WaitingRoom(Desk& desk) : desk_(desk) {}

  // With the manager's lock held, which it gives up while it blocks.
  VIP_RETURN wait(std::unique_lock<std::mutex>& lock, const Discriminator& local, Deadline deadline,
                  std::shared_ptr<Incoming>& request);
  // All waits return; clear() when they have.
  void wake();
  void clear() { points_.clear(); }

 private:
  struct Waiter {
    std::shared_ptr<Incoming> incoming;
    Bell changed = make_bell();
  };
  // Where one discriminator is awaited.
  struct Point {
    std::unique_ptr<Door> door;
    std::deque<Waiter*> waiters;
    std::deque<Visitor> queue;  // came when nobody waited
    Loop::Timer linger;
  };

  Point* point_of(const Discriminator& local);
  void on_visitor(const Discriminator& local, Visitor visitor);
  std::optional<Visitor> first_in_queue(Point& point);
  void let_linger(const Discriminator& local, Point& point);
  void close(const Discriminator& local);

  Desk& desk_;
  std::map<Discriminator, Point> points_;
};

}  // namespace viaduct::vipl
