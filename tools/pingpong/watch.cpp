#include "tools/pingpong/watch.hpp"

#include <signal.h>

#include <cerrno>
#include <cstring>

namespace viaduct::pingpong {

std::atomic<bool> interrupted{false};

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted.store(true, std::memory_order_relaxed); };
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

Failure system_failure(const std::string& what, const std::string& remedy) {
  return Failure(what + ": " + std::strerror(errno) + (remedy.empty() ? "" : "; " + remedy));
}

}  // namespace viaduct::pingpong
