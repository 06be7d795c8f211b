#include "libmpi_lite/transfer/wait.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>

#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

// Naps get longer, each by an eighth, so that a message which comes without waking its receiver is
// late by an eighth of the wait at most: up to 2 ms, and beyond by a fiftieth, up to 5 ms. A
// wake-up in vain takes some 20 us of a CPU, and a hundredth of it is what a process may use that
// waits.
constexpr std::chrono::microseconds kLongNap{2000}, kLongestNap{5000};
constexpr int kWaitOverNap = 50;
// Who is woken sleeps longer, but for whatever it might not be woken by.
constexpr std::chrono::microseconds kLongestSleep{10'000};

// Sleeps after which a wait is a long one, in which nothing but sleep is worth the time.
constexpr unsigned kSleepsOfAWait = 8;

// Ranks that share CPUs give way at once: a yield is the quickest way to the one that can go on.
// But a yield may be in vain: where the kernel groups processes by session or cgroup (Hydra makes a
// session for each rank), the others do not run before this one's time slice is over, milliseconds.
// Who sleeps until a sender wakes it makes room for certain.
constexpr unsigned kYieldsOfSharedCpu = 16;

// Where ranks disagree about a collective operation, one may wait for what nobody sends.
void ask_now_and_then() {
  constexpr unsigned kPauses = 16;  // between two looks at the clock
  constexpr std::chrono::milliseconds kEvery{50};
  static unsigned pauses = 0;
  static std::chrono::steady_clock::time_point next;
  if (++pauses % kPauses != 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next) return;
  next = now + kEvery;
  Transfer::self().ask_in_collectives();
}

}  // namespace

// The kernel starts two ranks on one CPU now and then, and moves one of them only at one of its
// ticks, milliseconds later, if they both go on running; a process that is woken it puts on a CPU
// that has nothing to do. To wait, there, is to sleep.
bool Idle::shares_cpu(const Transfer& transfer) const {
  return polls_ >= kSpinsBeforeLook && transfer.sleeps_lightly() && transfer.shares_cpu();
}

void Idle::give_way(const WaitedFor& what) {
  Transfer& transfer = Transfer::self();
  if (polls_ == 1) LongWait::begin();
  const bool oversubscribed = transfer.config().oversubscribed;
  const bool shares = !oversubscribed && shares_cpu(transfer);
  // A PAUSE instruction takes as long as a whole poll or longer, and half of that would be added to
  // each latency.
  if (!oversubscribed && !shares)
    spins_ = polls_ < kSpinsBeforeLook ? kSpinsBeforeLook : std::min(kSpins, patience_);
  if (polls_ < spins_) return;
  ask_now_and_then();
  DumpSignal::answer_if_asked(&what);
  LongWait::look(what);
  if ((shares || (oversubscribed && polls_ > kYieldsOfSharedCpu && transfer.sleeps_lightly())) &&
      transfer.sleep(kLongestSleep)) {
    // The next poll in vain leads here again. A sleep counts for many: the kernel may move this
    // process or the other one at each wake-up, and not after each is there all that looking again.
    polls_ = std::min(polls_ + patience_ / kSleepsOfAWait, patience_);
  } else if (polls_ < patience_) {
    ::sched_yield();
  } else {
    polls_ = patience_;
    doze();
  }
}

void Idle::doze() {
  if (!Transfer::self().sleep(nap_)) {
    const auto most = std::clamp<std::chrono::nanoseconds>(LongWait::lasted() / kWaitOverNap,
                                                           kLongNap, kLongestNap);
    const std::chrono::nanoseconds nap = std::min<std::chrono::nanoseconds>(nap_, most);
    const timespec limit{0, nap.count()};
    ::nanosleep(&limit, nullptr);
  }
  nap_ = std::min(nap_ + nap_ / 8, kLongestSleep);
}

}  // namespace viaduct::mpi
