// The table that posting looks into.
#include "libvipl/core/region_table.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <random>
#include <thread>

namespace viaduct::vipl::test {
namespace {

TEST(RegionTable, AgainstAModel) {
  RegionTable table;
  std::map<VIP_MEM_HANDLE, std::unique_ptr<Region>> model;
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    // Few different ones, so that runs grow together.
    const VIP_MEM_HANDLE handle = 1 + random() % (i < 100000 ? 50 : 5000);
    const auto found = model.find(handle);
    EXPECT_EQ(table.find(handle), found == model.end() ? nullptr : found->second.get());
    if (found == model.end()) {
      auto region = std::make_unique<Region>();
      region->handle = handle;
      table.reserve(model.size() + 1);
      table.insert(*region);
      model.emplace(handle, std::move(region));
    } else {
      table.erase(*found->second);
      model.erase(found);
    }
  }
  for (const auto& [handle, region] : model) EXPECT_EQ(table.find(handle), region.get());
}

// As a device that never gives a key again.
TEST(RegionTable, IsAsGoodAsNewAfterManyHaveGone) {
  RegionTable table;
  std::vector<Region> regions(2000);  // half of its places or less
  table.reserve(regions.size());
  VIP_MEM_HANDLE next = 1;
  for (Region& region : regions) {
    region.handle = next++;
    table.insert(region);
  }
  const auto time_of_looking_in_vain = [&] {
    using Clock = std::chrono::steady_clock;
    auto best = Clock::duration::max();
    for (int round = 0; round < 10; ++round) {
      const auto begin = Clock::now();
      for (VIP_MEM_HANDLE i = 0; i < 1000; ++i) EXPECT_EQ(table.find(next + i), nullptr);
      best = std::min(best, Clock::now() - begin);
    }
    return best;
  };
  const auto before = time_of_looking_in_vain();
  std::mt19937 random(1);
  for (int i = 0; i < 1000000; ++i) {
    Region& region = regions[random() % regions.size()];
    table.erase(region);
    region.handle = next++;
    table.insert(region);
  }
  EXPECT_LT(time_of_looking_in_vain(), 20 * before);
  for (const Region& region : regions) EXPECT_EQ(table.find(region.handle), &region);
}

// A page. The first to look at it after arm() does something else first.
class Tripwire {
 public:
  Tripwire()
      : page_(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  }
  ~Tripwire() { ::munmap(page_, kBytes); }
  Tripwire(const Tripwire&) = delete;
  Tripwire& operator=(const Tripwire&) = delete;

  void* page() const { return page_; }
  void arm(std::function<void()> action) {
    armed_ = this;
    action_ = std::move(action);
    struct sigaction handler {};
    handler.sa_handler = [](int) { armed_->spring(); };
    ::sigaction(SIGSEGV, &handler, &before_);
    ::mprotect(page_, kBytes, PROT_NONE);
  }

 private:
  void spring() {
    ::sigaction(SIGSEGV, &before_, nullptr);
    ::mprotect(page_, kBytes, PROT_READ | PROT_WRITE);
    action_();
  }

  static constexpr std::size_t kBytes = 4096;
  static inline Tripwire* armed_ = nullptr;
  void* page_;
  std::function<void()> action_;
  struct sigaction before_ {};
};

// It moves to a place that has been looked at, between two looks. All have the same place in the
// table: 340573321 times what handles are multiplied with there is 1.
TEST(RegionTable, WhatMovesIsFound) {
  const auto check = [](std::size_t looked_at, std::size_t wanted) {
    Tripwire tripwire;
    std::vector<Region> ordinary(4);
    std::vector<Region*> regions;
    for (Region& region : ordinary) regions.push_back(&region);
    regions[looked_at] = new (tripwire.page()) Region;
    RegionTable table;
    for (std::uint32_t i = 0; i < regions.size(); ++i) {
      regions[i]->handle = (i + 1) * 340573321u;
      table.insert(*regions[i]);
    }
    bool moved = false;
    tripwire.arm([&] {
      table.erase(*regions[looked_at]);
      moved = true;
    });
    EXPECT_EQ(table.find(regions[wanted]->handle), regions[wanted]);
    EXPECT_TRUE(moved);
  };
  for (std::size_t looked_at = 0; looked_at < 3; ++looked_at)
    for (std::size_t wanted = looked_at + 1; wanted < 4; ++wanted) check(looked_at, wanted);
}

TEST(RegionTable, ReadersNeedNoLock) {
  RegionTable table;
  Region fixed;
  fixed.handle = 77;
  table.insert(fixed);
  std::vector<Region> others(1000);
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) ASSERT_EQ(table.find(77), &fixed);
  });
  for (int round = 0; round < 50; ++round) {
    for (std::uint32_t i = 0; i < others.size(); ++i) {
      others[i].handle = 1000 + i;
      table.reserve(i + 2);
      table.insert(others[i]);
    }
    for (Region& region : others) table.erase(region);
  }
  done = true;
  reader.join();
}

}  // namespace
}  // namespace viaduct::vipl::test
