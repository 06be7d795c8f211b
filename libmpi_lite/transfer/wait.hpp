// How a process waits: it polls, spinning briefly between polls, then yielding the CPU, then
// sleeping. With oversubscription (a job has more processes on a machine than CPUs) it yields at
// once. docs/mpi.md ("Waiting") has the figures behind the constants. Every blocking call of the
// library waits by wait_until(), in the thread that has made the call.
#pragma once

#include <algorithm>
#include <chrono>

#include "libmpi_lite/transfer/watch.hpp"

namespace viaduct::mpi {

class Transfer;
bool progress();

// What one wait does between polls. It escalates with the number of vain polls in a row:
//
//    the wait begins
//          |
//          v   kSpins vain polls        doze_after_polls_
//        spin ------------------> yield --------------------> doze: sleep or nap
//          ^                        |                           |
//          '------------------------+---------------------------'
//                     reset(): a poll has found something else
//
// A doze_after_polls_ below kSpins leaves the yields out. In an oversubscribed job the process
// yields from the first vain poll on, and sleeps after kYieldsOfSharedCpu polls if all channels can
// wake it quickly. A process that shares its CPU with one that it needs sleeps after
// kSpinsBeforeLook polls.
class Idle {
 public:
  // After a poll that found nothing to do. what() gives the WaitedFor, for reports of a long wait.
  // While the process spins, this is an increment and a comparison: each vain poll delays the
  // message that comes next.
  template <class What>
  void pause(What what) {
    if (++polls_ < spins_) [[likely]]
      return;
    give_way(what());
  }
  // After a poll that found something, but not what is waited for.
  void reset() {
    // After a long wait, the event may be a query or a keepalive: one alone is not worth the time
    // of all those yields, but several in a row are. So doze_after_polls_ starts small and doubles.
    doze_after_polls_ = polls_ >= doze_after_polls_
                            ? kMinDozeAfterPolls
                            : std::min(2 * doze_after_polls_, kMaxDozeAfterPolls);
    nap_ = std::max(nap_ / 4, kShortestNap);
    polls_ = 1;
    spins_ = 0;
  }

 private:
  static constexpr unsigned kSpins = 4000;  // vain polls before the first yield; some 100 us
  // Vain polls before the first check whether a needed process has no other CPU than this one.
  static constexpr unsigned kSpinsBeforeLook = 100;
  // Vain polls before the first sleep: at least some 10 ms in a fresh wait, some 100 us after a
  // long one.
  static constexpr unsigned kMaxDozeAfterPolls = kSpins + 20'000, kMinDozeAfterPolls = 500;
  // Shorter naps take as long: the kernel's timers are no finer.
  static constexpr std::chrono::microseconds kShortestNap{50};

  bool shares_cpu(const Transfer& transfer) const;
  void give_way(const WaitedFor& what);  // all that is not spinning
  void doze();                           // one sleep or nap

  unsigned polls_ = 0;  // vain polls in a row, roughly; 0: the wait begins
  unsigned spins_ = 0;  // below that number of polls_ pause() only spins; set by give_way()
  unsigned doze_after_polls_ = kMaxDozeAfterPolls;  // the number of polls_ at which dozing begins
  std::chrono::microseconds nap_ = kShortestNap;    // length of the next nap, or of the next sleep
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
