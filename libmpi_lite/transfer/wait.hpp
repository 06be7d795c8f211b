// Waiting without wasting what others could use: spin briefly, then yield, then sleep. In an
// oversubscribed job, which has more processes on a machine than CPUs, yield at once.
#pragma once

#include <algorithm>
#include <chrono>

#include "libmpi_lite/transfer/watch.hpp"

namespace viaduct::mpi {

class Transfer;
bool progress();

// How long a process has been waiting in vain.
class Idle {
 public:
  // After a poll that found nothing to do. what() tells what is waited for, if that takes long. As
  // long as the process spins this is two instructions: each vain poll delays what comes next.
  template <class What>
  void pause(What what) {
    if (++polls_ < spins_) [[likely]]
      return;
    give_way(what());
  }
  // After one that found something, which is not what is waited for.
  void reset() {
    // What comes after long may be a question, or a sign of life: one alone is not worth the time
    // of all those yields, several in a row are.
    patience_ = polls_ >= patience_ ? kMinPatience : std::min(2 * patience_, kMaxPatience);
    nap_ = std::max(nap_ / 4, kShortestNap);
    polls_ = 1;
    spins_ = 0;
  }

 private:
  static constexpr unsigned kSpins = 4000;  // polls in vain before others get the CPU; some 100 us
  // ... and before it is looked whether one that is needed has no other CPU than this one.
  static constexpr unsigned kSpinsBeforeLook = 100;
  // ... and before sleeping: at least some 10 ms; some 100 us.
  static constexpr unsigned kMaxPatience = kSpins + 20'000, kMinPatience = 500;
  // Timers of the kernel's are no finer.
  static constexpr std::chrono::microseconds kShortestNap{50};

  bool shares_cpu(const Transfer& transfer) const;
  void give_way(const WaitedFor& what);
  void doze();

  unsigned polls_ = 0;  // in vain; 0: the wait begins
  unsigned spins_ = 0;  // of them, those after which nobody is given way; give_way() says how many
  unsigned patience_ = kMaxPatience;
  std::chrono::microseconds nap_ = kShortestNap;  // the next one
};

template <class Done, class What>
void wait_until(Done done, What what) {
  if (done()) return;
  for (Idle idle;;) {
    const bool any = progress();
    if (done()) return;
    any ? idle.reset() : idle.pause(what);
  }
}

}  // namespace viaduct::mpi
