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
                             Deadline deadline, std::shared_ptr<ReceivedRequest>& request) {
  Listener* const listener = listener_of(local);
  if (listener == nullptr) return VIP_ERROR_RESOURCE;
  if (auto pending = first_in_queue(*listener)) {
    request = std::make_shared<ReceivedRequest>(table_, std::move(*pending));
    if (listener->waiters.empty()) let_linger(local, *listener);
    return VIP_SUCCESS;
  }
  Waiter self;
  listener->waiters.push_back(&self);
  // Looks at `self` and the table only, not at `listener`: the linger timer may have erased the
  // listener after on_pending_request() took this thread off its list.
  const auto done = [&] { return self.incoming != nullptr || table_.closed; };
  table_.block(lock, *self.changed, deadline, done);
  request = std::move(self.incoming);
  if (request != nullptr && !table_.closed) return VIP_SUCCESS;  // the listener may be gone by now
  if (request == nullptr) std::erase(listener->waiters, &self);
  if (table_.closed) {
    // Now, because the lock is held and the loop that watches its connection still exists.
    request = nullptr;
    return VIP_ERROR_RESOURCE;
  }
  if (listener->waiters.empty()) let_linger(local, *listener);
  return VIP_TIMEOUT;
}

void ListenQueue::wake() {
  for (auto& [local, listener] : listeners_)
    for (Waiter* waiter : listener.waiters) table_.wakeups.wake(waiter->changed);
}

// nullptr: no rendezvous socket is to be had.
ListenQueue::Listener* ListenQueue::listener_of(const Discriminator& local) {
  if (const auto found = listeners_.find(local); found != listeners_.end()) {
    found->second.linger.end();
    return &found->second;
  }
  const std::string name = rendezvous_name(Model::client_server, {table_.self, local}, {});
  auto rendezvous = std::make_unique<RendezvousSocket>(
      table_.loop, name,
      [this, local](PendingRequest pending) { on_pending_request(local, std::move(pending)); });
  if (!rendezvous->open()) return nullptr;
  Listener& listener = listeners_[local];
  listener.rendezvous = std::move(rendezvous);
  return &listener;
}

void ListenQueue::on_pending_request(const Discriminator& local, PendingRequest pending) {
  const Request& r = pending.request;
  // Names of abstract sockets are not protected, so what arrives need not be for this listener.
  if (r.model != Model::client_server || r.callee != Endpoint{table_.self, local}) return;
  Listener& listener = listeners_.at(local);
  if (!listener.waiters.empty()) {
    Waiter& waiter = *listener.waiters.front();
    waiter.incoming = std::make_shared<ReceivedRequest>(table_, std::move(pending));
    listener.waiters.pop_front();
    table_.wakeups.wake(waiter.changed);
    if (listener.waiters.empty()) let_linger(local, listener);
    return;
  }
  // No thread waits here, but perhaps in another process that listens for the same: try the places
  // behind this one before queueing.
  if (table_.router.route(pending, listener.rendezvous->place() + 1)) return;
  // Callers that gave up do not count against the limit.
  std::erase_if(listener.queue,
                [](const PendingRequest& v) { return !is_open_connection(v.connection.get()); });
  if (listener.queue.size() >= kMaxQueued)
    table_.closing.refuse(std::move(pending.connection), Refusal::no_match);
  else
    listener.queue.push_back(std::move(pending));
}

// Requests whose caller has given up are dropped.
std::optional<PendingRequest> ListenQueue::first_in_queue(Listener& listener) {
  while (!listener.queue.empty()) {
    PendingRequest first = std::move(listener.queue.front());
    listener.queue.pop_front();
    if (is_open_connection(first.connection.get())) return first;
  }
  return std::nullopt;
}

void ListenQueue::let_linger(const Discriminator& local, Listener& listener) {
  listener.linger = Loop::Timer(table_.loop, kLinger, [this, local] { close(local); });
}

// Requests that are left over go to another process, which may have begun to wait at any place, so
// the search begins at place 0. If there is none they are refused.
void ListenQueue::close(const Discriminator& local) {
  Listener& listener = listeners_.at(local);
  std::deque<PendingRequest> left = std::move(listener.queue);
  while (auto pending = listener.rendezvous->next()) left.push_back(std::move(*pending));
  listeners_.erase(local);
  for (PendingRequest& pending : left) table_.router.route_or_refuse(std::move(pending), 0);
}

}  // namespace viaduct::vipl
