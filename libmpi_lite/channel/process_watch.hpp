// Whether another process of this node has ended, by a pidfd: its number alone may be that of a new
// process by now.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "drivers/base/unique_fd.hpp"

namespace viaduct::mpi {

// Owned by whoever watches; any thread.
class ProcessWatch {
 public:
  explicit ProcessWatch(int pid)
      : fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))), gone_(!fd_ && errno == ESRCH) {}
  bool ended(std::chrono::milliseconds timeout = {}) const {
    pollfd end{fd_.get(), POLLIN, 0};
    return gone_ || (fd_ && ::poll(&end, 1, static_cast<int>(timeout.count())) > 0);
  }

 private:
  const base::UniqueFd fd_;  // readable when it has ended
  const bool gone_;
};

}  // namespace viaduct::mpi
