// UniqueFd: the owner of a file descriptor of the library's. (Not a VIPL descriptor, which is
// VIP_DESCRIPTOR.) Children of fork() close it at once, see fork.hpp.
#pragma once

#include "drivers/base/unique_fd.hpp"
#include "libvipl/connection/socket/fork.hpp"

namespace viaduct::vipl {

struct ForkRegistry {
  static void add(int fd) { close_in_children(fd); }
  static void remove(int fd) { forget_fd(fd); }
};

using UniqueFd = base::BasicUniqueFd<ForkRegistry>;

}  // namespace viaduct::vipl
