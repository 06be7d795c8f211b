// A file descriptor that closes itself, and in children of fork() at once.
#pragma once

#include <unistd.h>

#include <utility>

#include "libvipl/connection/fork.hpp"

namespace viaduct::vipl {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) { own_descriptor(fd); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset() {
    if (fd_ < 0) return;
    disown_descriptor(fd_);
    ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace viaduct::vipl
