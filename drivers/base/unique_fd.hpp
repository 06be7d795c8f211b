// UniqueFd: the owner of a file descriptor. It closes the descriptor when it is destroyed, assigned
// or reset, and leaves errno alone then: an error path may return first and report errno later.
//
// Move-only. Not thread-safe, like any value.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "drivers/base/cxx20.hpp"

namespace viaduct::base {

// What is told of the descriptors that a BasicUniqueFd owns: add(fd) when it begins to own one,
// remove(fd) before it closes or releases one. This registry keeps nothing.
struct NoFdRegistry {
  static void add(int) {}
  static void remove(int) {}
};

template <class Registry>
class BasicUniqueFd {
 public:
  BasicUniqueFd() = default;  // owns none
  // Takes over `fd`. A negative number, as failed system calls return it, is no descriptor.
  explicit BasicUniqueFd(int fd) : fd_(fd) {
    if (fd_ >= 0) Registry::add(fd_);
  }
  BasicUniqueFd(BasicUniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  BasicUniqueFd& operator=(BasicUniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~BasicUniqueFd() { reset(); }

  int get() const { return fd_; }
  // Whether there is a descriptor.
  explicit operator bool() const { return fd_ >= 0; }
  // Gives the descriptor up without closing it; negative: there was none.
  int release() {
    if (fd_ >= 0) Registry::remove(fd_);
    return std::exchange(fd_, -1);
  }
  void reset() {
    if (fd_ < 0) return;
    const int error = errno;
    // Out of the registry first: after close() another thread may get the same number.
    ::close(release());
    errno = error;
  }

 private:
  int fd_ = -1;
};

using UniqueFd = BasicUniqueFd<NoFdRegistry>;

}  // namespace viaduct::base
