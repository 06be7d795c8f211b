// What an error handler was called with.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include <vipl.h>

namespace viaduct::vipl::test {

struct Reports {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<VIP_ERROR_DESCRIPTOR> all;

  static void handle(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
    auto& self = *static_cast<Reports*>(context);
    const std::lock_guard lock(self.mutex);
    self.all.push_back(*error);
    self.changed.notify_all();
  }
  // Waits for that many.
  std::vector<VIP_ERROR_DESCRIPTOR> get(std::size_t n) {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, std::chrono::seconds(10), [&] { return all.size() >= n; }))
      throw std::runtime_error("the error handler was not called");
    return all;
  }
  // None comes for a while.
  void expect_none() { expect_only(0); }
  // ... but so many.
  void expect_only(std::size_t n) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const std::lock_guard lock(mutex);
    EXPECT_EQ(all.size(), n);
  }
};

}  // namespace viaduct::vipl::test
