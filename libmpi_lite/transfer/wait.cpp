// What a waiting process does when it no longer just spins: yields, sleeps, naps, and meanwhile
// looks after what takes long (queries of collectives, hang reports, dumps).
#include "libmpi_lite/transfer/wait.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>

#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

// Naps, where nothing can wake the process. Each is an eighth longer than the one before, so a
// message is late by an eighth of the wait at most. Naps stop growing at kLongNap; beyond, they
// last a fiftieth of the wait, up to kLongestNap. A vain wake-up takes some 20 us of a CPU, and a
// waiting process shall use no more than a hundredth of a CPU.
constexpr std::chrono::microseconds kLongNap{2000}, kLongestNap{5000};
constexpr int kWaitOverNap = 50;
// Sleeps, where a message wakes the process. They are limited, as not every event might wake it.
constexpr std::chrono::microseconds kLongestSleep{10'000};

// After so many sleeps the wait counts as a long one: the process dozes and no longer polls a lot
// between sleeps.
constexpr unsigned kSleepsOfAWait = 8;

// Ranks that share CPUs yield at once, as that is the quickest way to the rank that can go on. But
// a yield may be in vain: where the kernel groups processes by session or cgroup (Hydra makes a
// session for each rank), the others do not run before this rank's time slice is over, which takes
// milliseconds. A sleep frees the CPU for certain, so it follows after so many yields.
constexpr unsigned kYieldsOfSharedCpu = 16;

// Where ranks disagree about a collective operation, this process may wait for a message that is
// never sent. Asking the others ends such a wait.
void send_queries_now_and_then() {
  constexpr unsigned kPauses = 16;  // between two looks at the clock
  constexpr std::chrono::milliseconds kEvery{50};
  static unsigned pauses = 0;
  static std::chrono::steady_clock::time_point next;
  if (++pauses % kPauses != 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next) return;
  next = now + kEvery;
  Transfer::self().send_status_queries();
}

}  // namespace

// The kernel sometimes starts two ranks on one CPU. While both run, it moves one of them only at a
// tick, milliseconds later. But it puts a process that is woken on an idle CPU. So a rank that
// finds the needed process on its own CPU sleeps.
bool Idle::shares_cpu(const Transfer& transfer) const {
  return polls_ >= kSpinsBeforeLook && transfer.sleeps_lightly() && transfer.shares_cpu();
}

void Idle::give_way(const WaitedFor& what) {
  Transfer& transfer = Transfer::self();
  if (polls_ == 1) LongWait::begin();
  const bool oversubscribed = transfer.config().oversubscribed;
  const bool shares = !oversubscribed && shares_cpu(transfer);
  // Spinning has no PAUSE instruction: it takes as long as a whole poll or longer, and half of that
  // would be added to each latency.
  if (!oversubscribed && !shares)
    spins_ = polls_ < kSpinsBeforeLook ? kSpinsBeforeLook : std::min(kSpins, doze_after_polls_);
  if (polls_ < spins_) return;
  send_queries_now_and_then();
  DumpSignal::answer_if_asked(&what);
  LongWait::look(what);
  if ((shares || (oversubscribed && polls_ > kYieldsOfSharedCpu && transfer.sleeps_lightly())) &&
      transfer.sleep(kLongestSleep)) {
    // The next vain poll leads here again. A sleep counts as many polls: the kernel may move this
    // process or the other one at each wake-up, and without that count each move would be followed
    // by all the polls of a fresh wait.
    polls_ = std::min(polls_ + doze_after_polls_ / kSleepsOfAWait, doze_after_polls_);
  } else if (polls_ < doze_after_polls_) {
    ::sched_yield();
  } else {
    polls_ = doze_after_polls_;  // not beyond, so the count cannot overflow
    doze();
  }
}

// Sleeps where a channel can wake the process; else naps, for no longer than the message may be
// late. nap_ limits both.
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
