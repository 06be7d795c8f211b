// What a waiting process does when it no longer just spins: yields, sleeps, naps, and meanwhile
// looks after what takes long (queries of collectives, hang reports, dumps).
#include "libmpi_lite/transfer/wait.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <utility>

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
  const bool oversubscribed = transfer.config().oversubscribed;
  const bool shares = !oversubscribed && shares_cpu(transfer);
  // Spinning has no PAUSE instruction: it takes as long as a whole poll or longer, and half of that
  // would be added to each latency.
  if (!oversubscribed && !shares)
    spins_ = polls_ < kSpinsBeforeLook ? kSpinsBeforeLook : std::min(kSpins, doze_after_polls_);
  if (polls_ < spins_) return;
  send_queries_now_and_then();
  DumpSignal::answer_if_asked(&what, &wait_);
  if (!background_) wait_.look(what);
  if ((shares || (oversubscribed && polls_ > kYieldsOfSharedCpu && transfer.sleeps_lightly())) &&
      sleep(kLongestSleep)) {
    // The next vain poll leads here again. A sleep counts as many polls: the kernel may move this
    // process or the other one at each wake-up, and without that count each move would be followed
    // by all the polls of a fresh wait.
    polls_ = std::min(polls_ + doze_after_polls_ / kSleepsOfAWait, doze_after_polls_);
  } else if (polls_ < doze_after_polls_) {
    const LibraryLock::Unlocked others_turn;
    ::sched_yield();
  } else {
    polls_ = doze_after_polls_;  // not beyond, so the count cannot overflow
    doze();
  }
}

// Sleeps where a channel can wake the process; else naps, for no longer than the message may be
// late. nap_ limits both.
void Idle::doze() {
  if (!sleep(nap_)) {
    const auto most =
        std::clamp<std::chrono::nanoseconds>(wait_.lasted() / kWaitOverNap, kLongNap, kLongestNap);
    nap(std::min<std::chrono::nanoseconds>(nap_, most));
  }
  nap_ = std::min(nap_ + nap_ / 8, kLongestSleep);
}

bool Idle::sleep(std::chrono::microseconds most) {
  return shared_ ? shared_->sleep(most) : Transfer::self().sleep(most);
}

void Idle::nap(std::chrono::nanoseconds time) {
  if (shared_) return shared_->nap(time);
  const timespec limit{0, time.count()};
  ::nanosleep(&limit, nullptr);
}

// ---- several threads ---------------------------------------------------------------------------

namespace {

constexpr int kFollowSpins = 40;  // before a follower sleeps
constexpr std::chrono::nanoseconds kFirstFollow{1'000'000}, kLongestFollow{2'000'000},
    kBackgroundFollow{250'000};

}  // namespace

SharedWait::Listed::Listed(SharedWait& wait) : wait_(wait) {
  wait.signal_.clear();
  wait.next_ = std::exchange(first_, &wait);
  LibraryLock::set_at_release([] { wake_satisfied(); });
}

SharedWait::Listed::~Listed() {
  SharedWait** link = &first_;
  while (*link != &wait_) link = &(*link)->next_;
  *link = wait_.next_;
  if (first_ == nullptr) LibraryLock::set_at_release(nullptr);
}

SharedWait::SharedWait(bool (*done)(void*), void* done_argument, WaitedFor (*what)(void*),
                       void* what_argument, bool background)
    : done_(done),
      what_(what),
      done_argument_(done_argument),
      what_argument_(what_argument),
      background_(background),
      idle_(this, background),
      patience_(background ? kBackgroundFollow : kFirstFollow) {}

void SharedWait::run() {
  if (leader_ != nullptr && (!leader_->idle_.spins() || leader_->has_waited_long()))
    leader_ = nullptr;
  for (;;) {
    if (leader_ != nullptr && leader_ != this) {
      follow();
      if (done_(done_argument_)) return;
      continue;
    }
    leader_ = this;
    const bool any = progress();
    if (done_(done_argument_)) return;
    if (any) {
      idle_.reset();
      if (wake_satisfied()) ++in_vain_;
    } else {
      idle_.pause([this] { return what_(what_argument_); });
    }
    LibraryLock::give_turn();
  }
}

SharedWait::~SharedWait() {
  if (leader_ != this) return;
  leader_ = nullptr;
  wake_next_leader();
}

bool SharedWait::has_waited_long() const {
  constexpr unsigned kLong = 8;
  return background_ || in_vain_ >= kLong || idle_.dozes();
}

void SharedWait::follow() {
  ++in_vain_;
  const Listed listed(*this);
  const LibraryLock::Unlocked others_turn;
  if (!signal_.wait(background_ ? 0 : kFollowSpins, patience_) && !background_)
    patience_ = std::min(patience_ + patience_ / 8, kLongestFollow);
}

// Arrivals wake one sleeper only.
bool SharedWait::sleep(std::chrono::microseconds most) {
  if (sleeper_ != nullptr) {
    nap(most);
    return true;
  }
  const Listed listed(*this);
  sleeper_ = this;
  if (leader_ == this) leader_ = nullptr;
  lies_down_ = true;
  const bool slept = Transfer::self().sleep(most);
  lies_down_ = false;
  sleeper_ = nullptr;
  return slept;
}

void SharedWait::nap(std::chrono::nanoseconds time) {
  const Listed listed(*this);
  if (leader_ == this) leader_ = nullptr;
  const LibraryLock::Unlocked others_turn;
  signal_.wait(0, time);
}

bool SharedWait::satisfied() const {
  try {
    return done_(done_argument_);
  } catch (...) {
    return true;  // its thread calls it again
  }
}

// A thread that sleeps is also woken where another one leaves something to be done for which no
// arrival would wake it, such as a message of the process to itself.
bool SharedWait::wake_satisfied() {
  bool any = false;
  for (SharedWait* w = first_; w; w = w->next_) {
    if (w->signal_.given()) continue;
    const bool work = w == sleeper_ && leader_ == nullptr && !std::exchange(w->lies_down_, false) &&
                      Transfer::self().busy();
    if (!work && !w->satisfied()) continue;
    any = true;
    w->signal_.give();
    if (w == sleeper_) Transfer::self().end_sleep();
  }
  return any;
}

void SharedWait::wake_next_leader() {
  for (SharedWait* w = first_; w; w = w->next_) {
    if (w == sleeper_ || w->has_waited_long() || w->satisfied()) continue;
    return w->signal_.give();
  }
}

}  // namespace viaduct::mpi
