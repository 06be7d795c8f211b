// The signals that end a run (watch.hpp), and the text of failed system calls (error.hpp).
#include "tools/pingpong/watch.hpp"

#include <cerrno>
#include <cstring>

namespace viaduct::pingpong {

std::atomic<bool> interrupted{false};

const sigset_t& interrupts() {
  static const sigset_t signals = [] {
    sigset_t out;
    sigemptyset(&out);
    for (const int s : {SIGINT, SIGTERM}) sigaddset(&out, s);
    struct sigaction now {};
    if (sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&out, SIGHUP);
    return out;
  }();
  return signals;
}

// The handler only sets a flag. Without SA_RESTART: a system call that waits returns with EINTR.
void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted.store(true, std::memory_order_relaxed); };
  sigemptyset(&action.sa_mask);
  for (const int s : {SIGINT, SIGTERM, SIGHUP})
    if (sigismember(&interrupts(), s) == 1) sigaction(s, &action, nullptr);
}

Failure system_failure(const std::string& what, const std::string& remedy) {
  return Failure(what + ": " + std::strerror(errno) + (remedy.empty() ? "" : "; " + remedy));
}

}  // namespace viaduct::pingpong
