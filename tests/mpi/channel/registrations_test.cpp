// What is kept registered, and for how long.
#include <sys/mman.h>

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>

#include "libmpi_lite/channel/vi/registrations.hpp"

extern "C" void* __libc_malloc(std::size_t bytes);
extern "C" void* __libc_realloc(void* memory, std::size_t bytes);
extern "C" void __libc_free(void* memory);

namespace viaduct::mpi {
namespace {

constexpr std::size_t kPage = 4096;

// Counts what is registered, and can refuse.
struct FakeRegistrar final : MemoryRegistrar {
  VIP_MEM_HANDLE register_memory(const AddressRange& range) override {
    if (bytes + (range.end - range.begin) > room) return 0;
    bytes += range.end - range.begin;
    live.insert(next);
    return next++;
  }
  void deregister_memory(const AddressRange& range, VIP_MEM_HANDLE handle) override {
    EXPECT_EQ(live.erase(handle), 1u);
    bytes -= range.end - range.begin;
  }
  std::size_t bytes = 0, room = ~std::size_t{0} / 2;
  VIP_MEM_HANDLE next = 1;
  std::set<VIP_MEM_HANDLE> live;
};

const void* at(std::size_t page, std::size_t offset = 0) {
  return reinterpret_cast<const void*>((1000 + page) * kPage + offset);
}
AddressRange pages(std::size_t first, std::size_t count) {
  return {(1000 + first) * kPage, (1000 + first + count) * kPage};
}

TEST(Registrations, AreFoundAgain) {
  FakeRegistrar registrar;
  {
    Registrations all(registrar, 100 * kPage, true);
    auto* const first = all.acquire(at(0, 100), 2 * kPage);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(registrar.bytes, 3 * kPage);  // whole pages
    EXPECT_EQ(all.acquire(at(1), 10), first);
    all.release(*first);
    all.release(*first);
    EXPECT_EQ(all.acquire(at(2), kPage), first);
    all.release(*first);
    EXPECT_EQ(all.counts().hits, 2u);
    EXPECT_EQ(all.counts().misses, 1u);
  }
  EXPECT_EQ(registrar.bytes, 0u);
}

TEST(Registrations, GrowOverTheirNeighbours) {
  FakeRegistrar registrar;
  Registrations all(registrar, 100 * kPage, true);
  auto* const first = all.acquire(at(0), 2 * kPage);
  auto* const second = all.acquire(at(1), 2 * kPage);
  EXPECT_NE(first, second);
  EXPECT_EQ(registrar.live.size(), 2u);  // the first one has a user
  all.release(*first);
  EXPECT_EQ(registrar.live.size(), 1u);
  EXPECT_EQ(all.acquire(at(0), 3 * kPage), second);
  all.release(*second);
  all.release(*second);
}

TEST(Registrations, OnesThatWereUnmappedAreNotFound) {
  FakeRegistrar registrar;
  Registrations all(registrar, 100 * kPage, true);
  auto* const unused = all.acquire(at(0), kPage);
  all.release(*unused);
  auto* const used = all.acquire(at(10), kPage);
  all.forget(pages(0, 11));
  EXPECT_EQ(registrar.live.size(), 1u);  // the one with a user
  EXPECT_EQ(all.counts().forgotten, 2u);
  auto* const anew = all.acquire(at(10), kPage);
  EXPECT_NE(anew, used);
  all.release(*used);
  all.release(*anew);
  EXPECT_EQ(registrar.live.size(), 1u);
  EXPECT_EQ(all.kept().begin, pages(10, 1).begin);
  EXPECT_EQ(all.kept().end, pages(10, 1).end);
}

TEST(Registrations, TheOldestGoFirst) {
  FakeRegistrar registrar;
  Registrations all(registrar, 4 * kPage, true);
  for (const std::size_t page : {0, 10, 20, 30, 0}) all.release(*all.acquire(at(page), kPage));
  all.release(*all.acquire(at(40), kPage));  // in place of 10
  EXPECT_EQ(registrar.bytes, 4 * kPage);
  const auto misses = all.counts().misses;
  for (const std::size_t page : {0, 20, 30, 40}) all.release(*all.acquire(at(page), kPage));
  EXPECT_EQ(all.counts().misses, misses);
  EXPECT_EQ(all.acquire(at(50), 5 * kPage), nullptr);
  EXPECT_EQ(all.counts().refused, 1u);
}

// RLIMIT_MEMLOCK, or a device without regions.
TEST(Registrations, OldOnesGoWhenTheSystemRefuses) {
  FakeRegistrar registrar;
  registrar.room = 3 * kPage;
  Registrations all(registrar, 100 * kPage, true);
  for (const std::size_t page : {0, 10, 20}) all.release(*all.acquire(at(page), kPage));
  auto* const big = all.acquire(at(30), 2 * kPage);
  ASSERT_NE(big, nullptr);
  EXPECT_EQ(all.acquire(at(40), 2 * kPage), nullptr);
  all.release(*big);
}

TEST(Registrations, AreNotKeptWithoutAWatch) {
  FakeRegistrar registrar;
  Registrations all(registrar, 100 * kPage, false);
  auto* const first = all.acquire(at(0), kPage);
  auto* const second = all.acquire(at(0), kPage);
  EXPECT_NE(first, second);
  all.release(*first);
  all.release(*second);
  EXPECT_EQ(registrar.bytes, 0u);
}

TEST(Registrations, AnyOrder) {
  FakeRegistrar registrar;
  std::mt19937 random(3);
  {
    Registrations all(registrar, 60 * kPage, true);
    struct Use {
      Registrations::Registration* registration;
      AddressRange range;
    };
    std::vector<Use> uses;
    for (int step = 0; step < 20'000; ++step) {
      const std::size_t page = random() % 40, count = 1 + random() % 8;
      switch (random() % 4) {
        case 0: all.forget(pages(page, count)); break;
        case 1:
          if (auto* const r = all.acquire(at(page), count * kPage))
            uses.push_back({r, pages(page, count)});
          break;
        default:
          if (uses.empty()) break;
          const std::size_t i = random() % uses.size();
          ASSERT_TRUE(registrar.live.contains(uses[i].registration->handle()));
          all.release(*uses[i].registration);
          uses.erase(uses.begin() + static_cast<std::ptrdiff_t>(i));
      }
      ASSERT_EQ(registrar.bytes, all.counts().pinned);
      ASSERT_LE(registrar.bytes, 60 * kPage);
    }
    for (const Use& use : uses) all.release(*use.registration);
  }
  EXPECT_TRUE(registrar.live.empty());
}

// ---- the watch ---------------------------------------------------------------------------------

class Unmapped : public testing::Test {
 protected:
  Unmapped() { watch.set_interest({0, ~std::uintptr_t{0}}); }
  // Whether that memory was reported since the last call.
  bool reported(const void* memory, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    bool found = false, all = false;
    std::array<AddressRange, 64> room;
    for (;;) {
      const auto ranges = UnmappedWatch::take(room, all);
      for (const AddressRange& range : ranges) found |= range.overlaps({begin, begin + bytes});
      if (ranges.size() < room.size()) return found || all;
    }
  }
  static void* map(std::size_t bytes, void* where = nullptr) {
    return mmap(where, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | (where != nullptr ? MAP_FIXED : 0), -1, 0);
  }
  UnmappedWatch watch;
};

TEST_F(Unmapped, EveryWayToGiveMemoryBack) {
  ASSERT_TRUE(watch.works());
  constexpr std::size_t kBytes = 16 * kPage;
  void* const memory = map(kBytes);
  reported(nullptr, 0);
  ASSERT_EQ(map(kBytes, memory), memory);
  EXPECT_TRUE(reported(memory, kBytes)) << "mapped over";
  ASSERT_EQ(madvise(memory, kBytes, MADV_DONTNEED), 0);
  EXPECT_TRUE(reported(memory, kBytes)) << "madvise";
  void* const other = map(kBytes);
  static_cast<char*>(other)[0] = 7;
  ASSERT_EQ(mremap(other, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, memory), memory);
  EXPECT_EQ(static_cast<char*>(memory)[0], 7);
  EXPECT_TRUE(reported(memory, kBytes)) << "mremap over it";
  ASSERT_EQ(munmap(memory, kBytes), 0);
  EXPECT_TRUE(reported(memory, kBytes)) << "munmap";
}

// The C library's own allocator, whoever stands in for it.
TEST_F(Unmapped, WhatTheAllocatorGivesBack) {
  constexpr std::size_t kBytes = 64 << 20;
  void* volatile memory = __libc_malloc(kBytes);
  reported(nullptr, 0);
  void* const before = memory;
  memory = __libc_realloc(memory, 2 * kBytes);
  EXPECT_TRUE(memory == before || reported(before, kBytes)) << "realloc";
  void* const last = memory;
  __libc_free(memory);
  EXPECT_TRUE(reported(last, 2 * kBytes)) << "free";
}

TEST_F(Unmapped, TheHeap) {
  constexpr std::size_t kBytes = 1 << 20;
  void* const begin = sbrk(kBytes);
  ASSERT_NE(begin, reinterpret_cast<void*>(-1));
  static_cast<char*>(begin)[5] = 1;
  reported(nullptr, 0);
  EXPECT_EQ(sbrk(-static_cast<std::intptr_t>(kBytes)), static_cast<char*>(begin) + kBytes);
  EXPECT_TRUE(reported(begin, kBytes));
  EXPECT_EQ(sbrk(0), begin);
}

TEST_F(Unmapped, ErrorsAreThoseOfTheSystem) {
  errno = 0;
  EXPECT_EQ(munmap(reinterpret_cast<void*>(1), kPage), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(mmap(nullptr, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(Unmapped, OnlyWhatIsOfInterest) {
  void* const memory = map(kPage);
  watch.set_interest({});
  munmap(memory, kPage);
  watch.set_interest({0, ~std::uintptr_t{0}});
  EXPECT_FALSE(reported(memory, kPage));
}

TEST_F(Unmapped, MoreThanCanBeRemembered) {
  for (int i = 0; i < 1000; ++i) munmap(map(kPage), kPage);
  std::array<AddressRange, 64> room;
  bool all = false;
  UnmappedWatch::take(room, all);
  EXPECT_TRUE(all);
  EXPECT_TRUE(UnmappedWatch::any());
  reported(nullptr, 0);
  void* const memory = map(kPage);
  munmap(memory, kPage);
  EXPECT_TRUE(reported(memory, kPage));
}

}  // namespace
}  // namespace viaduct::mpi
