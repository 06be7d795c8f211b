// The lock of the library (libmpi_lite/core/threads/library_lock.hpp): one thread at a time owns
// it, also while its bias to a thread, which takes it without an atomic instruction, is revoked.
#include "libmpi_lite/core/threads/library_lock.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace viaduct::mpi {
namespace {

using namespace std::chrono_literals;

struct Locked {
  Locked() { LibraryLock::lock(); }
  ~Locked() { LibraryLock::unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

// A shared lock, biased to this thread until another one has taken it.
void bias_to_this_thread() {
  const Locked locked;
  LibraryLock::set_shared(true);
}

// A number that only the lock protects: ThreadSanitizer looks at it, too.
struct Guarded {
  int entered = 0, overlaps = 0;
  bool busy = false;

  void enter() {
    const Locked locked;
    overlaps += busy ? 1 : 0;
    busy = true;
    ++entered;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    busy = false;
  }
};

TEST(LibraryLock, TheBiasIsRevokedAtAnyMoment) {
  Guarded guarded;
  std::atomic<int> round = 0, done = 0;
  std::thread other([&] {
    for (int seen = 0;;) {
      int now;
      while ((now = round.load()) == seen) std::this_thread::yield();
      if (now < 0) return;
      seen = now;
      guarded.enter();
      done = now;
    }
  });
  const auto until = std::chrono::steady_clock::now() + 500ms;
  int rounds = 0, entered = 0;
  while (rounds < 100 || (rounds < 50'000 && std::chrono::steady_clock::now() < until)) {
    bias_to_this_thread();
    round = ++rounds;
    while (done.load() != rounds) {
      guarded.enter();
      ++entered;
      if (entered % 64 == 0) std::this_thread::yield();
    }
  }
  round = -1;
  other.join();
  EXPECT_EQ(guarded.overlaps, 0);
  EXPECT_EQ(guarded.entered, entered + rounds);
  LibraryLock::set_shared(false);
}

TEST(LibraryLock, RevokingWaitsUntilTheLockIsFree) {
  bias_to_this_thread();
  std::atomic<bool> taken = false;
  std::thread other;
  {
    const Locked locked, again;
    other = std::thread([&] {
      const Locked theirs;
      taken = true;
    });
    while (!LibraryLock::wanted()) std::this_thread::yield();
    std::this_thread::sleep_for(5ms);
    EXPECT_FALSE(taken);
    {
      const LibraryLock::Unlocked others_turn;
      EXPECT_FALSE(LibraryLock::owned());
      while (!taken) std::this_thread::yield();
    }
    EXPECT_TRUE(LibraryLock::owned());
  }
  EXPECT_FALSE(LibraryLock::owned());
  other.join();
  LibraryLock::set_shared(false);
}

TEST(LibraryLock, ABiasedThreadThatPollsGivesATurn) {
  bias_to_this_thread();
  std::atomic<bool> taken = false;
  std::thread other;
  {
    const Locked locked;
    other = std::thread([&] {
      const Locked theirs;
      taken = true;
    });
    while (!taken) LibraryLock::give_turn();
  }
  other.join();
  LibraryLock::set_shared(false);
}

// In a child process the thread that has forked is the only one. Exit status 0: the child's threads
// can take the lock.
int lock_in_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    LibraryLock::reset_in_child();
    if (LibraryLock::owned()) LibraryLock::unlock();
    { const Locked locked; }
    ::_exit(LibraryLock::owned() ? 1 : 0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(LibraryLock, AChildHasTheLockToItself) {
  bias_to_this_thread();
  EXPECT_EQ(lock_in_child(), 0);
  std::thread other;
  {
    const Locked locked;
    EXPECT_EQ(lock_in_child(), 0);
    other = std::thread([] { const Locked theirs; });
    while (!LibraryLock::wanted()) std::this_thread::yield();
    std::this_thread::sleep_for(1ms);
    EXPECT_EQ(lock_in_child(), 0);  // the other thread waits for this one
  }
  other.join();
  {
    const Locked locked;
    EXPECT_EQ(lock_in_child(), 0);
  }
  LibraryLock::set_shared(false);
}

// Last, and in a child: the lock stays taken.
TEST(LibraryLock, AtTheEndNobodyWaitsForABiasedThreadThatKeepsTheLock) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    bias_to_this_thread();
    LibraryLock::lock();
    int status = 2;
    std::thread([&] { status = LibraryLock::lock_for_good() ? 1 : 0; }).join();
    ::_exit(status);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace viaduct::mpi
