// Wakeups: condition variables of threads that are blocked in the connection manager.
//
// A woken thread needs the manager's lock. If the waking thread still holds it, the woken one only
// goes back to sleep, and on a busy machine does so before the waking thread can go on. So the
// event thread, which holds the lock for a whole progress(), collects the wakeups and notifies when
// it has given the lock back.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <memory>

namespace viaduct::vipl {

// Shared, because the thread may wake by its deadline, and be gone, before it is notified.
using Wakeup = std::shared_ptr<std::condition_variable>;

inline Wakeup make_wakeup() {
  return std::make_shared<std::condition_variable>();
}

class Wakeups {
 public:
  // Notifies now, or later if a Later is in force. Needs the manager's lock. Beyond the capacity of
  // Later it notifies now, which is only slower.
  void wake(const Wakeup& wakeup) {
    if (later_ != nullptr && later_->count < later_->wakeups.size())
      later_->wakeups[later_->count++] = wakeup;
    else
      wakeup->notify_all();
  }

  // The collected wakeups. Made before the lock is taken, so destroyed after it is released; its
  // destructor notifies.
  struct Later {
    ~Later() {
      for (std::size_t i = 0; i < count; ++i) wakeups[i]->notify_all();
    }
    std::array<Wakeup, 16> wakeups;
    std::size_t count = 0;
  };
  // Puts a Later in force. Made after the lock is taken, so destroyed while it is held.
  class Holding {
   public:
    Holding(Wakeups& wakeups, Later& later) : wakeups_(wakeups) { wakeups_.later_ = &later; }
    ~Holding() { wakeups_.later_ = nullptr; }
    Holding(const Holding&) = delete;
    Holding& operator=(const Holding&) = delete;

   private:
    Wakeups& wakeups_;
  };

 private:
  Later* later_ = nullptr;
};

}  // namespace viaduct::vipl
