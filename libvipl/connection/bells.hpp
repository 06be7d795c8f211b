// What wakes threads that are blocked in the manager. Each of them needs the manager's lock, so
// whoever holds it for longer wakes them when he has given it back: else they wake for nothing,
// and, on a busy machine, in front of him.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <memory>

namespace viaduct::vipl {

// Shared: the thread may wake by itself before it is rung for, and be gone.
using Bell = std::shared_ptr<std::condition_variable>;

inline Bell make_bell() {
  return std::make_shared<std::condition_variable>();
}

class Bells {
 public:
  // With the lock held.
  void ring(const Bell& bell) {
    if (later_ != nullptr && later_->count < later_->bells.size())
      later_->bells[later_->count++] = bell;
    else
      bell->notify_all();
  }

  // Begins before the lock is taken and ends when it is given back...
  struct Later {
    ~Later() {
      for (std::size_t i = 0; i < count; ++i) bells[i]->notify_all();
    }
    std::array<Bell, 16> bells;
    std::size_t count = 0;
  };
  // ... and this is when it is held.
  class Holding {
   public:
    Holding(Bells& bells, Later& later) : bells_(bells) { bells_.later_ = &later; }
    ~Holding() { bells_.later_ = nullptr; }
    Holding(const Holding&) = delete;
    Holding& operator=(const Holding&) = delete;

   private:
    Bells& bells_;
  };

 private:
  Later* later_ = nullptr;
};

}  // namespace viaduct::vipl
