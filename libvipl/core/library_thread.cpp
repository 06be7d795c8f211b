// Threads of the library and their signal mask.
#include "libvipl/core/library_thread.hpp"

#include <pthread.h>

#include <csignal>

namespace viaduct::vipl {
namespace {

// Blocks the calling thread's signals for this object's lifetime. A new thread inherits the mask,
// so there is no moment in which it could get a signal.
class NoSignals {
 public:
  NoSignals() {
    sigset_t set;
    sigfillset(&set);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&set, own);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

std::thread library_thread(std::function<void()> run) {
  const NoSignals none;
  return std::thread(std::move(run));
}

}  // namespace viaduct::vipl
