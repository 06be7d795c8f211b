// A wait of a driver in the kernel, as for a frame to come. Where several threads share the driver,
// and take a lock before they call it, they give the lock up during the wait. The driver does not
// know the lock: whoever has one sets the two functions.
#pragma once

namespace viaduct::base {

class BlockingWait {
 public:
  // begin() returns what end() is to get, or 0: then end() is not called. Set them while a single
  // thread is in the driver.
  static void set(unsigned (*begin)(), void (*end)(unsigned)) {
    begin_ = begin;
    end_ = end;
  }

  BlockingWait() : given_up_(begin_ != nullptr ? begin_() : 0) {}
  ~BlockingWait() {
    if (given_up_ != 0) end_(given_up_);
  }
  BlockingWait(const BlockingWait&) = delete;
  BlockingWait& operator=(const BlockingWait&) = delete;

 private:
  static inline unsigned (*begin_)() = nullptr;
  static inline void (*end_)(unsigned) = nullptr;
  const unsigned given_up_;
};

}  // namespace viaduct::base
