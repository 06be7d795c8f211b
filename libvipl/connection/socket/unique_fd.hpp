// UniqueFd: the owner of a file descriptor of the library's. (Not a VIPL descriptor, which is
// VIP_DESCRIPTOR.) It closes the file descriptor when it is destroyed, and in a child of fork() at
// once, see fork.hpp.
//
// Move-only. Not thread-safe, like any value.
#pragma once

#include <unistd.h>

#include <utility>

#include "libvipl/connection/socket/fork.hpp"

namespace viaduct::vipl {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) { close_in_children(fd); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  // Whether there is a file descriptor.
  explicit operator bool() const { return fd_ >= 0; }
  void reset() {
    if (fd_ < 0) return;
    // First: after close() another thread may get the same number for something of its own.
    forget_fd(fd_);
    ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace viaduct::vipl
