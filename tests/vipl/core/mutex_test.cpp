// The mutex of the data path: nobody who sleeps is forgotten.
#include "libvipl/core/mutex.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

namespace viaduct::vipl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// VipCQDone tries; a VipCQWait beside it sleeps.
TEST(MutexTest, WhoTriesTakesNobodysWakeUp) {
  struct Shared {  // outlives the test if the other thread sleeps for ever
    Mutex mutex;
    std::atomic<bool> there{false}, done{false};
  };
  const auto shared = std::make_shared<Shared>();
  ASSERT_TRUE(shared->mutex.try_lock());
  std::thread([shared] {
    shared->there = true;
    shared->mutex.lock();
    shared->mutex.unlock();
    shared->done = true;
  }).detach();
  while (!shared->there) std::this_thread::yield();
  std::this_thread::sleep_for(milliseconds{50});  // it sleeps; if not yet, this finds nothing
  EXPECT_FALSE(shared->mutex.try_lock());
  shared->mutex.unlock();
  for (const auto end = Clock::now() + seconds{20}; !shared->done && Clock::now() < end;)
    std::this_thread::sleep_for(milliseconds{1});
  EXPECT_TRUE(shared->done) << "it sleeps though the mutex is free";
}

}  // namespace
}  // namespace viaduct::vipl
