// Waiting without wasting what others could use: spin briefly, then yield, then sleep.
#pragma once

#include "libmpi_lite/transfer/watch.hpp"

namespace viaduct::mpi {

bool progress();

// How long a process has been waiting in vain.
class Idle {
 public:
  // After a poll that found nothing to do.
  void pause(const WaitedFor& what);
  void reset() { polls_ = 1; }

 private:
  unsigned polls_ = 0;  // in vain; 0: the wait begins
};

template <class Done, class What>
void wait_until(Done done, What what) {
  if (done()) return;
  for (Idle idle;;) {
    const bool any = progress();
    if (done()) return;
    any ? idle.reset() : idle.pause(what());
  }
}

}  // namespace viaduct::mpi
