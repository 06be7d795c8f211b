// Completions: a completion queue of the device, the lock of everything that completes in it, and
// the threads and handlers that wait for it. Each work queue of a VI has one of its own, unless the
// program gave it a VIPL completion queue: then it uses the Completions of that Cq.
//
// A completion reaches the program only when some thread polls the device's queue (progress()): a
// thread in a Done or Wait function; the event thread if the queue is armed, because a thread or a
// handler waits; or the event thread when it polls send queues (Nic::take_unseen_completions()).
//
// The owner (WorkQueue or Cq) outlives all users, because it is part of a slot that is never freed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "drivers/vi_over_verbs/verbs.hpp"
#include "libvipl/connection/socket/deadline.hpp"
#include "libvipl/core/mutex.hpp"

namespace viaduct::vipl {

// How threads wait for completions of a NIC.
struct WaitPolicy {
  std::chrono::nanoseconds spin{0};  // how long a wait spins before it sleeps
  const Drive* drive = nullptr;      // of a NIC that its program drives; outlives the Completions
};

class Completions {
 public:
  Mutex& mutex() { return mutex_; }

  // ---- with mutex() held -----------------------------------------------------------------------

  // How threads wait here from now on.
  void wait_by(const WaitPolicy& policy) { policy_ = policy; }
  // Makes the device's queue for `capacity` completions. False: the device has no room.
  bool open(vi::Device& device, std::size_t capacity);
  // Opens without a queue of the device, for a VI that has no queue pair: nothing completes.
  void open_idle();
  // Gives up the device's queue, and wakes all waiting threads.
  void close();
  bool is_open() const { return queue_ != nullptr; }
  vi::CompletionQueue& queue() { return *queue_; }

  // Takes a batch of completions from the device and completes their descriptors. False: there was
  // none.
  bool progress();
  // Progress until everything that the device's queue held at the call has been taken.
  void drain();
  // progress(), inlined into the data path. Defined in fast_path.hpp.
  bool progress_in_place();
  // Wakes the threads in wait(): descriptors have completed, or an object is gone.
  void wake() {
    if (is_awaited()) changed_.notify_all();
  }
  // A handler has been registered: until remove_waiter() the event thread looks whenever work
  // completes.
  void add_waiter() {
    ++awaiting_;
    listen();
  }
  void remove_waiter() { --awaiting_; }
  // Whether a thread or a handler waits for a completion here.
  bool is_awaited() const { return awaiting_ != 0; }
  // Arms the device's queue for one event, for a program that sleeps on the NIC's file descriptor,
  // and takes what had completed before. False: the device refused.
  bool arm() {
    listen();
    return listening_;
  }

  // Waits until ready() returns true, or until the deadline; first spinning, then asleep. ready()
  // makes progress and says whether it found what the caller waits for; it is called with the mutex
  // held. False: the deadline has passed. `lock` is given up while the thread sleeps, and between
  // two looks while it spins.
  template <class Ready>
  bool wait(std::unique_lock<Mutex>& lock, Deadline deadline, Ready ready) {
    if (ready() || spin(lock, deadline, ready)) return true;
    if (past(deadline)) return false;
    // Before listen(): a completion from here on wakes this thread, even if another thread takes
    // it.
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

  // The event thread's: the device has reported a completion event for this queue.
  void on_event();

 private:
  // Completions taken from the device in one call. They are on the stack.
  static constexpr int kBatch = 16;

  // The rest of progress(), when the first of `n` completions has been completed and a thread or a
  // handler waits: calls due handlers after each, and wakes threads at the end.
  [[gnu::cold]] bool complete_rest_and_wake(const vi::Completion* it, int n);
  // Arms the device's queue: the next completion causes an event. What completed before the queue
  // was armed causes none, so it is taken here.
  void listen();
  static bool past(Deadline deadline) { return deadline.has_value() && Clock::now() >= *deadline; }
  // A hint to the processor that this is a spin loop: the core's other hardware thread gets its
  // turn.
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  // Gives up the lock between two looks, so that other threads can post and take meanwhile.
  template <class Ready>
  bool spin(std::unique_lock<Mutex>& lock, Deadline deadline, Ready& ready) {
    const Clock::time_point end = Clock::now() + policy_.spin;
    while (Clock::now() < end && !past(deadline)) {
      lock.unlock();
      pause();
      lock.lock();
      if (ready()) return true;
    }
    return false;
  }
  // Sleeps until wake(), or drives the NIC once. False: the deadline has passed.
  bool block(std::unique_lock<Mutex>& lock, Deadline deadline);

  Mutex mutex_;
  std::condition_variable_any changed_;  // with mutex_; notified by wake()
  std::unique_ptr<vi::CompletionQueue> queue_;
  WaitPolicy policy_;
  unsigned awaiting_ = 0;   // threads, and handlers that are expected to be called
  bool listening_ = false;  // the device's queue is armed
};

}  // namespace viaduct::vipl
