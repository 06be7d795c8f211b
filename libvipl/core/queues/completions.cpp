// Polling, arming and waiting for a completion queue of the device. fast_path.hpp has the hot half
// of progress(); work_queue.cpp completes the descriptors.
#include "libvipl/core/queues/completions.hpp"

#include "libvipl/core/queues/fast_path.hpp"

namespace viaduct::vipl {
namespace {

// The queue of a VI that has no queue pair. A null pointer would need a test on the data path.
class IdleQueue final : public vi::CompletionQueue {
 public:
  int poll(int, vi::Completion*) override { return 0; }
  bool arm() override { return true; }
  std::size_t capacity() const override { return 0; }
  bool resize(std::size_t) override { return false; }
};

}  // namespace

bool Completions::open(vi::Device& device, std::size_t capacity) {
  queue_ = device.create_completion_queue(capacity, this);
  listening_ = false;
  if (is_open() && is_awaited()) listen();  // a thread or a handler waited already
  return is_open();
}

void Completions::open_idle() {
  queue_ = std::make_unique<IdleQueue>();
  listening_ = false;
}

void Completions::close() {
  queue_.reset();
  wake();
}

bool Completions::progress() {
  return progress_in_place();
}

bool Completions::complete_rest_and_wake(const vi::Completion* it, int n) {
  for (;;) {
    queue_of(*it).make_due_calls();
    if (--n == 0) break;
    ++it;
    queue_of(*it).complete(*it);
  }
  wake();
  return true;
}

void Completions::drain() {
  // The bound makes it end even if work completes as fast as it is taken.
  for (std::size_t left = queue_->capacity() / std::size_t{kBatch} + 1; left != 0 && progress();
       --left) {
  }
}

void Completions::listen() {
  if (listening_) return;
  listening_ = queue_->arm();
  drain();  // all of it: what was there before causes no event
}

void Completions::on_event() {
  const std::lock_guard lock(mutex_);
  if (!is_open()) return;  // the event was late
  listening_ = false;
  // Armed again as long as a thread or a handler waits; otherwise the queue is silent until the
  // next wait.
  if (is_awaited())
    listen();
  else
    drain();
}

bool Completions::block(std::unique_lock<Mutex>& lock, Deadline deadline) {
  if (policy_.drive != nullptr) {
    lock.unlock();
    (*policy_.drive)(deadline);
    lock.lock();
    return true;
  }
  if (!deadline) {
    changed_.wait(lock);
    return true;
  }
  return changed_.wait_until(lock, *deadline) == std::cv_status::no_timeout;
}

}  // namespace viaduct::vipl
