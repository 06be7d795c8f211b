#include "libvipl/connection/waiting_room.hpp"

#include <algorithm>

#include "libvipl/connection/desk.hpp"

namespace viaduct::vipl {
namespace {

constexpr auto kLinger = std::chrono::milliseconds(100);
constexpr std::size_t kMostQueued = 256;

}  // namespace

VIP_RETURN WaitingRoom::wait(std::unique_lock<std::mutex>& lock, const Discriminator& local,
                             Deadline deadline, std::shared_ptr<Incoming>& request) {
  Point* const point = point_of(local);
  if (point == nullptr) return VIP_ERROR_RESOURCE;
  if (auto visitor = first_in_queue(*point)) {
    request = std::make_shared<Incoming>(desk_, std::move(*visitor));
    if (point->waiters.empty()) let_linger(local, *point);
    return VIP_SUCCESS;
  }
  Waiter self;
  point->waiters.push_back(&self);
  const auto done = [&] { return self.incoming != nullptr || desk_.closed; };
  if (deadline)
    self.changed->wait_until(lock, *deadline, done);
  else
    self.changed->wait(lock, done);
  request = std::move(self.incoming);
  if (request != nullptr && !desk_.closed) return VIP_SUCCESS;  // the point may be gone by now
  if (request == nullptr) std::erase(point->waiters, &self);
  if (desk_.closed) {
    request = nullptr;  // with the lock held, and before the loop is gone that watches it
    return VIP_ERROR_RESOURCE;
  }
  if (point->waiters.empty()) let_linger(local, *point);
  return VIP_TIMEOUT;
}

void WaitingRoom::wake() {
  for (auto& [local, point] : points_)
    for (Waiter* waiter : point.waiters) desk_.bells.ring(waiter->changed);
}

// nullptr: no room.
WaitingRoom::Point* WaitingRoom::point_of(const Discriminator& local) {
  if (const auto found = points_.find(local); found != points_.end()) {
    found->second.linger.end();
    return &found->second;
  }
  const std::string name = door_name(Model::client_server, {desk_.self, local}, {});
  auto door = std::make_unique<Door>(
      desk_.loop, name, [this, local](Visitor visitor) { on_visitor(local, std::move(visitor)); });
  if (!door->open()) return nullptr;
  Point& point = points_[local];
  point.door = std::move(door);
  return &point;
}

void WaitingRoom::on_visitor(const Discriminator& local, Visitor visitor) {
  const Request& r = visitor.request;
  if (r.model != Model::client_server || r.callee != Endpoint{desk_.self, local}) return;
  Point& point = points_.at(local);
  if (!point.waiters.empty()) {
    Waiter& waiter = *point.waiters.front();
    waiter.incoming = std::make_shared<Incoming>(desk_, std::move(visitor));
    point.waiters.pop_front();
    desk_.bells.ring(waiter.changed);
    if (point.waiters.empty()) let_linger(local, point);
    return;
  }
  // Another process may be waiting at this moment.
  if (desk_.usher.take_on(visitor, point.door->place() + 1)) return;
  std::erase_if(point.queue,
                [](const Visitor& v) { return !is_open_connection(v.connection.get()); });
  if (point.queue.size() >= kMostQueued)
    desk_.farewells.refuse(std::move(visitor.connection), Refusal::no_match);
  else
    point.queue.push_back(std::move(visitor));
}

// Of those that still wait for an answer; nullopt: none.
std::optional<Visitor> WaitingRoom::first_in_queue(Point& point) {
  while (!point.queue.empty()) {
    Visitor first = std::move(point.queue.front());
    point.queue.pop_front();
    if (is_open_connection(first.connection.get())) return first;
  }
  return std::nullopt;
}

void WaitingRoom::let_linger(const Discriminator& local, Point& point) {
  point.linger = Loop::Timer(desk_.loop, kLinger, [this, local] { close(local); });
}

// Another process may have begun to wait meanwhile, at any place.
void WaitingRoom::close(const Discriminator& local) {
  Point& point = points_.at(local);
  std::deque<Visitor> left = std::move(point.queue);
  while (auto visitor = point.door->next()) left.push_back(std::move(*visitor));
  points_.erase(local);
  for (Visitor& visitor : left) desk_.usher.take_on_or_refuse(std::move(visitor), 0);
}

}  // namespace viaduct::vipl
