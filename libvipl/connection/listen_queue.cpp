// VipConnectWait: hands requests from the rendezvous sockets to the waiting threads. A request that
// this process cannot take goes on to the next listening process through the RequestRouter.
#include "libvipl/connection/listen_queue.hpp"

#include <algorithm>

#include "libvipl/connection/connection_table.hpp"

namespace viaduct::vipl {
namespace {

// How long a rendezvous socket outlives the last wait. A server serves one client and waits again
// within this time.
constexpr auto kLinger = std::chrono::milliseconds(100);
// Requests of one discriminator that wait for the next wait; then requests are refused.
constexpr std::size_t kMaxQueued = 256;

}  // namespace

VIP_RETURN ListenQueue::wait(std::unique_lock<std::mutex>& lock, const Discriminator& local,
                             Deadline deadline, std::shared_ptr<Incoming>& request) {
  Point* const point = point_of(local);
  if (point == nullptr) return VIP_ERROR_RESOURCE;
  if (auto pending = first_in_queue(*point)) {
    request = std::make_shared<Incoming>(table_, std::move(*pending));
    if (point->waiters.empty()) let_linger(local, *point);
    return VIP_SUCCESS;
  }
  Waiter self;
  point->waiters.push_back(&self);
  // Looks at `self` and the table only, not at `point`: the linger timer may have erased the point
  // after on_pending_request() took this thread off its list.
  const auto done = [&] { return self.incoming != nullptr || table_.closed; };
  if (deadline)
    self.changed->wait_until(lock, *deadline, done);
  else
    self.changed->wait(lock, done);
  request = std::move(self.incoming);
  if (request != nullptr && !table_.closed) return VIP_SUCCESS;  // the point may be gone by now
  if (request == nullptr) std::erase(point->waiters, &self);
  if (table_.closed) {
    // Now, because the lock is held and the loop that watches its connection still exists.
    request = nullptr;
    return VIP_ERROR_RESOURCE;
  }
  if (point->waiters.empty()) let_linger(local, *point);
  return VIP_TIMEOUT;
}

void ListenQueue::wake() {
  for (auto& [local, point] : points_)
    for (Waiter* waiter : point.waiters) table_.wakeups.wake(waiter->changed);
}

// nullptr: no rendezvous socket is to be had.
ListenQueue::Point* ListenQueue::point_of(const Discriminator& local) {
  if (const auto found = points_.find(local); found != points_.end()) {
    found->second.linger.end();
    return &found->second;
  }
  const std::string name = rendezvous_name(Model::client_server, {table_.self, local}, {});
  auto rendezvous = std::make_unique<RendezvousSocket>(
      table_.loop, name,
      [this, local](PendingRequest pending) { on_pending_request(local, std::move(pending)); });
  if (!rendezvous->open()) return nullptr;
  Point& point = points_[local];
  point.rendezvous = std::move(rendezvous);
  return &point;
}

void ListenQueue::on_pending_request(const Discriminator& local, PendingRequest pending) {
  const Request& r = pending.request;
  // Names of abstract sockets are not protected, so what arrives need not be for this listener.
  if (r.model != Model::client_server || r.callee != Endpoint{table_.self, local}) return;
  Point& point = points_.at(local);
  if (!point.waiters.empty()) {
    Waiter& waiter = *point.waiters.front();
    waiter.incoming = std::make_shared<Incoming>(table_, std::move(pending));
    point.waiters.pop_front();
    table_.wakeups.wake(waiter.changed);
    if (point.waiters.empty()) let_linger(local, point);
    return;
  }
  // No thread waits here, but perhaps in another process that listens for the same: try the places
  // behind this one before queueing.
  if (table_.router.take_on(pending, point.rendezvous->place() + 1)) return;
  // Callers that gave up do not count against the limit.
  std::erase_if(point.queue,
                [](const PendingRequest& v) { return !is_open_connection(v.connection.get()); });
  if (point.queue.size() >= kMaxQueued)
    table_.closing.refuse(std::move(pending.connection), Refusal::no_match);
  else
    point.queue.push_back(std::move(pending));
}

// Requests whose caller has given up are dropped.
std::optional<PendingRequest> ListenQueue::first_in_queue(Point& point) {
  while (!point.queue.empty()) {
    PendingRequest first = std::move(point.queue.front());
    point.queue.pop_front();
    if (is_open_connection(first.connection.get())) return first;
  }
  return std::nullopt;
}

void ListenQueue::let_linger(const Discriminator& local, Point& point) {
  point.linger = Loop::Timer(table_.loop, kLinger, [this, local] { close(local); });
}

// Requests that are left over go to another process, which may have begun to wait at any place, so
// the search begins at place 0. If there is none they are refused.
void ListenQueue::close(const Discriminator& local) {
  Point& point = points_.at(local);
  std::deque<PendingRequest> left = std::move(point.queue);
  while (auto pending = point.rendezvous->next()) left.push_back(std::move(*pending));
  points_.erase(local);
  for (PendingRequest& pending : left) table_.router.take_on_or_refuse(std::move(pending), 0);
}

}  // namespace viaduct::vipl
