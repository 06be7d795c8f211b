#include "libvipl/core/completions.hpp"

#include <array>

#include "libvipl/core/work_queue.hpp"

namespace viaduct::vipl {
namespace {

// Taken from the device at a time.
constexpr int kBatch = 16;

}  // namespace

bool Completions::open(vi::Device& device, std::size_t capacity, std::chrono::nanoseconds spin) {
  queue_ = device.create_completion_queue(capacity, this);
  listening_ = false;
  spin_ = spin;
  return is_open();
}

void Completions::close() {
  queue_.reset();
  expected_calls_ = 0;
  wake();
}

bool Completions::progress() {
  std::array<vi::Completion, kBatch> done;  // not cleared
  int n = queue_->poll(kBatch, done.data());
  if (n <= 0) return false;
  for (const vi::Completion* it = done.data(); n != 0; ++it, --n)
    reinterpret_cast<WorkQueue*>(it->id)->complete(*it);
  wake();
  return true;
}

void Completions::drain() {
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
  if (waiting_ != 0 || expected_calls_ != 0)
    listen();
  else
    drain();
}

bool Completions::block(std::unique_lock<Mutex>& lock, Deadline deadline) {
  if (!deadline) {
    changed_.wait(lock);
    return true;
  }
  return changed_.wait_until(lock, *deadline) == std::cv_status::no_timeout;
}

}  // namespace viaduct::vipl
