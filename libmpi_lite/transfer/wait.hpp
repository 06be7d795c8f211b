// Waiting without wasting what others could use: spin briefly, then yield, then sleep.
#pragma once

namespace viaduct::mpi {

bool progress();

// How long a process has been waiting in vain.
class Idle {
 public:
  // After a poll that found nothing to do.
  void pause();
  void reset() { polls_ = 0; }

 private:
  unsigned polls_ = 0;
};

template <class Done>
void wait_until(Done done) {
  if (done()) return;
  for (Idle idle;;) {
    const bool any = progress();
    if (done()) return;
    any ? idle.reset() : idle.pause();
  }
}

}  // namespace viaduct::mpi
