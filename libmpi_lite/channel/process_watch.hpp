// Whether another process of this node has ended, by a pidfd: its number alone may be that of a new
// process by now.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace viaduct::mpi {

// Owned by whoever watches; any thread.
class ProcessWatch {
 public:
  explicit ProcessWatch(int pid)
      : fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
        gone_(fd_ < 0 && errno == ESRCH) {}
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;
  ~ProcessWatch() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool ended(std::chrono::milliseconds timeout = {}) const {
    pollfd end{fd_, POLLIN, 0};
    return gone_ || (fd_ >= 0 && ::poll(&end, 1, static_cast<int>(timeout.count())) > 0);
  }

 private:
  const int fd_;  // readable when it has ended
  const bool gone_;
};

}  // namespace viaduct::mpi
