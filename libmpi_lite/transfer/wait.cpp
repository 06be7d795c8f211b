#include "libmpi_lite/transfer/wait.hpp"

#include <sched.h>
#include <time.h>

#include <chrono>

#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

constexpr unsigned kSpins = 4000;     // polls in vain before others get the CPU; about 100 us
constexpr unsigned kYields = 20'000;  // yields in vain before sleeping; at least some 10 ms
constexpr timespec kNap{0, 50'000};

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

void Idle::pause(const WaitedFor& what) {
  Transfer& transfer = Transfer::self();
  if (polls_++ == 0) LongWait::begin();
  // A PAUSE instruction takes as long as a whole poll or longer, and half of that would be added to
  // each latency.
  if (!transfer.config().crowded && polls_ < kSpins) return;
  ask_now_and_then();
  DumpSignal::answer_if_asked(&what);
  LongWait::look(what);
  if (polls_ > kYieldsOfSharedCpu && transfer.sleep()) {
    polls_ = kYieldsOfSharedCpu;  // until something happens
  } else if (polls_ < kSpins + kYields) {
    ::sched_yield();
  } else {
    ::nanosleep(&kNap, nullptr);
    polls_ = kSpins + kYields;
  }
}

}  // namespace viaduct::mpi
