#include "libmpi_lite/runtime/progress_thread.hpp"

#include <csignal>

#include "libmpi_lite/transfer/transfer.hpp"

namespace viaduct::mpi {

// The thread inherits the signal mask.
ProgressThread::ProgressThread() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ProgressThread::~ProgressThread() {
  ends_ = true;
  const LibraryLock::Unlocked its_turn;
  thread_.join();
}

void ProgressThread::run() {
  LibraryLock::lock();
  auto ends = [this] { return ends_; };
  auto what = [] { return WaitedFor{.event = "messages, in the background"}; };
  SharedWait(ends, what, true).run();
  LibraryLock::unlock();
}

}  // namespace viaduct::mpi
