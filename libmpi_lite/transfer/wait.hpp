// How a process waits: it polls, spinning briefly between polls, then yielding the CPU, then
// sleeping. With oversubscription (a job has more processes on a machine than CPUs) it yields at
// once. docs/mpi.md ("Waiting") has the figures behind the constants. Every blocking call of the
// library waits by wait_until(), in the thread that has made the call. Where several threads wait
// at the same time, one of them polls for all (class SharedWait).
#pragma once

#include <algorithm>
#include <chrono>

#include "libmpi_lite/core/threads/library_lock.hpp"
#include "libmpi_lite/core/threads/thread_signal.hpp"
#include "libmpi_lite/transfer/watch.hpp"

namespace viaduct::mpi {

class Transfer;
class SharedWait;
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
  Idle() = default;
  // A wait among others (class SharedWait). In the background, beside a program that computes, it
  // sleeps as soon as there is nothing to do.
  Idle(SharedWait* shared, bool background)
      : shared_(shared),
        background_(background),
        doze_after_polls_(background ? 1 : kMaxDozeAfterPolls) {}
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
    if (!background_)
      doze_after_polls_ = polls_ >= doze_after_polls_
                              ? kMinDozeAfterPolls
                              : std::min(2 * doze_after_polls_, kMaxDozeAfterPolls);
    nap_ = std::max(nap_ / 4, kShortestNap);
    polls_ = 1;
    spins_ = 0;
  }
  bool spins() const { return polls_ < std::min(kSpins, doze_after_polls_); }
  bool dozes() const { return polls_ >= doze_after_polls_; }

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
  bool sleep(std::chrono::microseconds most);
  void nap(std::chrono::nanoseconds time);

  SharedWait* const shared_ = nullptr;  // nullptr: no other thread is in the library
  const bool background_ = false;
  unsigned polls_ = 0;  // vain polls in a row, roughly; 0: the wait begins
  unsigned spins_ = 0;  // below that number of polls_ pause() only spins; set by give_way()
  unsigned doze_after_polls_ = kMaxDozeAfterPolls;  // the number of polls_ at which dozing begins
  std::chrono::microseconds nap_ = kShortestNap;    // length of the next nap, or of the next sleep
  LongWait wait_;
};

// A wait where the library is shared by threads. One waiting thread, the leader, polls; the
// completion of what another one waits for is found by the leader, or by whoever gives the lock
// back, and that thread is woken. So waiting threads neither compete for the lock nor for CPUs.
//
//                      no leader                    done
//    run() -----------------------------> leads -----------> the next follower is woken, to lead
//      |                                  ^   |
//      | there is a leader      woken, no |   | nothing has come for long
//      v                          leader  |   v
//    follows ---------------------------> +  sleeps (Transfer::sleep)
//
// A thread that sleeps does not lead, so one that comes later polls for itself. One that comes
// later also takes the lead from a thread that has waited for long. Such a thread is not woken to
// lead, as that would cost each short wait of another thread a system call: it looks by itself,
// every 1 to 2 ms. A wait in the background looks every 0.25 ms.
//
// All members are protected by LibraryLock, which the thread owns, but for the signal.
class SharedWait {
 public:
  // `done` and `what` as in wait_until(). `done` is called by other threads, too, one at a time,
  // and again by its own when it has been true there, or has thrown.
  template <class Done, class What>
  SharedWait(Done& done, What& what, bool background = false)
      : SharedWait([](void* d) -> bool { return (*static_cast<Done*>(d))(); }, &done,
                   [](void* w) -> WaitedFor { return (*static_cast<What*>(w))(); }, &what,
                   background) {}
  ~SharedWait();
  SharedWait(const SharedWait&) = delete;
  SharedWait& operator=(const SharedWait&) = delete;

  // As long as no other thread waits, and none wants the lock, some polls need not be shared.
  // Whether `done` is true.
  template <class Done>
  static bool poll_alone(Done& done) {
    constexpr int kPolls = 32;  // less than a microsecond, if nothing comes
    for (int i = 0; i < kPolls && !LibraryLock::wanted(); ++i) {
      if (leader_ != nullptr || first_ != nullptr) return false;
      progress();
      if (done()) return true;
    }
    return false;
  }
  void run();
  // For the Idle of this wait: Transfer::sleep() and a nap that other threads can end.
  bool sleep(std::chrono::microseconds most);
  void nap(std::chrono::nanoseconds time);
  // Wakes the waiting threads whose wait is over; whether there were any.
  static bool wake_satisfied();

 private:
  SharedWait(bool (*done)(void*), void* done_argument, WaitedFor (*what)(void*),
             void* what_argument, bool background);
  // Lists the wait among those that do not poll, while its thread follows or sleeps.
  class Listed {
   public:
    explicit Listed(SharedWait& wait);
    ~Listed();

   private:
    SharedWait& wait_;
  };

  void follow();
  bool has_waited_long() const;
  bool satisfied() const;
  static void wake_next_leader();

  static inline SharedWait* leader_ = nullptr;
  static inline SharedWait* first_ = nullptr;    // of those that are listed, the latest
  static inline SharedWait* sleeper_ = nullptr;  // sleeps in Transfer::sleep()

  bool (*const done_)(void*);
  WaitedFor (*const what_)(void*);
  void* const done_argument_;
  void* const what_argument_;
  const bool background_;
  Idle idle_;
  ThreadSignal signal_;
  SharedWait* next_ = nullptr;
  std::chrono::nanoseconds patience_;  // of the next time that it follows
  unsigned in_vain_ = 0;    // times that it has followed, or led and others' waits were over
  bool lies_down_ = false;  // sleeps as soon as its thread gives the lock up
};

template <class Done, class What>
void wait_until(Done done, What what) {
  if (done()) return;
  bool any = progress();
  if (done()) return;
  if (LibraryLock::shared()) [[unlikely]] {
    if (SharedWait::poll_alone(done)) return;
    return SharedWait(done, what).run();
  }
  for (Idle idle;;) {
    any ? idle.reset() : idle.pause(what);
    any = progress();
    if (done()) return;
  }
}

}  // namespace viaduct::mpi
