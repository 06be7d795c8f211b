// A completion queue of the device, the lock of all whose work completes in it, and the threads
// that wait for that. Each work queue of a VI has one of its own, or shares that of a VIPL
// completion queue.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "drivers/vi_over_verbs/verbs.hpp"
#include "libvipl/connection/deadline.hpp"
#include "libvipl/core/mutex.hpp"

namespace viaduct::vipl {

class Completions {
 public:
  Mutex& mutex() { return mutex_; }

  // ---- with mutex() held -----------------------------------------------------------------------

  // Waits look for that long without sleeping. False: the device has no room.
  bool open(vi::Device& device, std::size_t capacity, std::chrono::nanoseconds spin);
  // Without the device: nothing completes.
  void open_idle();
  void close();
  bool is_open() const { return queue_ != nullptr; }
  vi::CompletionQueue& queue() { return *queue_; }

  // Takes what the device has completed and completes the descriptors. False: there was nothing.
  bool progress();
  // ... until there is nothing left of what was there when it was called.
  void drain();
  // progress() without a call: in taking.hpp.
  bool progress_in_place();
  // Descriptors were completed, or an object is gone: who waits has to look.
  void wake() {
    if (is_awaited()) changed_.notify_all();
  }
  // The event thread is to look whenever work completes, until a handler of the program's less is
  // expected to be called.
  void expect_call() {
    ++awaiting_;
    listen();
  }
  void call_made() { --awaiting_; }
  // Whether a thread or a handler waits for what completes here.
  bool is_awaited() const { return awaiting_ != 0; }

  // Waits until ready() or the deadline. ready() looks, progresses, and says whether that was it;
  // it is called with the mutex held. False: the deadline is past.
  template <class Ready>
  bool wait(std::unique_lock<Mutex>& lock, Deadline deadline, Ready ready) {
    if (ready() || spin(lock, deadline, ready)) return true;
    if (past(deadline)) return false;
    ++awaiting_;
    bool done = false;
    do {
      listen();
      done = ready() || (block(lock, deadline) && ready());
    } while (!done && !past(deadline));
    --awaiting_;
    return done || ready();
  }

  // ---- without ---------------------------------------------------------------------------------

  // For the event thread: the device has an event for this queue.
  void on_event();

 private:
  // Taken from the device at a time.
  static constexpr int kBatch = 16;

  // The rest of progress() when the first of these `n` has completed and somebody waits for that.
  [[gnu::cold]] bool tell(const vi::Completion* it, int n);
  // The event thread is to look when the next work completes. What completed before is taken now.
  void listen();
  static bool past(Deadline deadline) { return deadline.has_value() && Clock::now() >= *deadline; }
  // Leaves the core to its other thread for a moment.
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  // Others have the lock between two looks.
  template <class Ready>
  bool spin(std::unique_lock<Mutex>& lock, Deadline deadline, Ready& ready) {
    const Clock::time_point end = Clock::now() + spin_;
    while (Clock::now() < end && !past(deadline)) {
      lock.unlock();
      pause();
      lock.lock();
      if (ready()) return true;
    }
    return false;
  }
  // False: the deadline is past.
  bool block(std::unique_lock<Mutex>& lock, Deadline deadline);

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::unique_ptr<vi::CompletionQueue> queue_;
  std::chrono::nanoseconds spin_{0};
  unsigned awaiting_ = 0;  // threads, and handlers that are expected to be called
  bool listening_ = false;
};

}  // namespace viaduct::vipl
