// What wakes threads that are blocked in the manager. Each of them needs the manager's lock, so
// a thread that holds it for longer wakes them when it has given it back: else they wake for
// nothing, and, on a busy machine, before that thread can go on.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <memory>

namespace viaduct::vipl {

// Shared: the thread may wake by itself before it is rung for, and be gone.
using Wakeup = std::shared_ptr<std::condition_variable>;

inline Wakeup make_wakeup() {
  return std::make_shared<std::condition_variable>();
}

class Wakeups {
 public:
  // With the lock held.
  void wake(const Wakeup& wakeup) {
    if (later_ != nullptr && later_->count < later_->wakeups.size())
      later_->wakeups[later_->count++] = wakeup;
    else
      wakeup->notify_all();
  }

  // Begins before the lock is taken and ends when it is given back...
  struct Later {
    ~Later() {
      for (std::size_t i = 0; i < count; ++i) wakeups[i]->notify_all();
    }
    std::array<Wakeup, 16> wakeups;
    std::size_t count = 0;
  };
  // ... and this is when it is held.
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
