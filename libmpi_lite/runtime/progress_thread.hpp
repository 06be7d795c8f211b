// The thread that makes progress while the program computes (VIADUCT_ASYNC_PROGRESS): a wait in the
// background that ends in MPI_Finalize. It sleeps whenever nothing arrives, and while another
// thread polls. A child of fork() does not have it.
#pragma once

#include <thread>

namespace viaduct::mpi {

class ProgressThread {
 public:
  // Starts the thread, in a library that threads share (LibraryLock::shared()). It takes no
  // signals. Throws std::system_error if there can be no more threads.
  ProgressThread();
  // Waits for its end. The caller owns the lock, which is given up meanwhile.
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

 private:
  void run();

  bool ends_ = false;  // protected by the lock
  std::thread thread_;
};

}  // namespace viaduct::mpi
