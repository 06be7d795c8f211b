// From a memory handle to what posting must know of the region, without a lock: regions may be
// registered and deregistered by other threads meanwhile. Open addressing with linear probing
// (Knuth, The Art of Computer Programming 3, 6.4).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <vipl.h>

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::vipl {

// Atomic only because a thread may look at it while the region becomes another one: a program that
// posts memory it is deregistering gets one or the other, or an error of the device.
struct Region {
  std::atomic<VIP_MEM_HANDLE> handle{0};
  std::atomic<std::uint32_t> local_key{0};
  std::atomic<std::uint64_t> begin{0}, end{0};
  std::atomic<const vi::Domain*> domain{nullptr};

  bool is(VIP_MEM_HANDLE it) const { return handle.load(std::memory_order_acquire) == it; }
  bool is_in(const vi::Domain* it) const { return domain.load(std::memory_order_relaxed) == it; }
  // Bytes from `address` to the end; 0: it is outside.
  std::uint64_t room(std::uint64_t address) const {
    const std::uint64_t last = end.load(std::memory_order_relaxed);
    return address >= begin.load(std::memory_order_relaxed) && address < last ? last - address : 0;
  }
};

class RegionTable {
 public:
  RegionTable() { grow(); }

  const Region* find(VIP_MEM_HANDLE handle) const {
    const Buckets& buckets = *current_.load(std::memory_order_acquire);
    const std::size_t first = hash(handle) >> buckets.shift;
    const Region* const region = buckets.regions[first].load(std::memory_order_acquire);
    if (region == nullptr || region->is(handle)) return region;
    return find_behind(buckets, first, handle);
  }

  // Another one since a region was last erased: what was found before may be gone.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

  // ---- by one thread at a time -----------------------------------------------------------------

  // Makes room for so many at a time. May throw std::bad_alloc, then there is as much as before.
  void reserve(std::size_t regions);
  // `region.handle` is not in it yet, and there is room.
  void insert(Region& region) noexcept;
  void erase(Region& region) noexcept;

 private:
  struct Buckets {
    explicit Buckets(unsigned bits)
        : shift(32 - bits),
          mask((std::size_t{1} << bits) - 1),
          regions(new std::atomic<Region*>[mask + 1] {}) {}
    std::atomic<Region*>& at(std::size_t i) const { return regions[i & mask]; }

    unsigned shift;
    std::size_t mask;
    std::unique_ptr<std::atomic<Region*>[]> regions;
  };

  // Keys of devices differ in their upper or lower bits; this spreads both (Fibonacci hashing,
  // Knuth 6.4).
  static constexpr std::uint32_t hash(VIP_MEM_HANDLE handle) { return handle * 2654435769u; }
  // The place where it is looked for first.
  static std::size_t home(const Buckets& buckets, const Region& region) {
    return hash(region.handle.load(std::memory_order_relaxed)) >> buckets.shift;
  }
  [[gnu::cold]] const Region* find_behind(const Buckets& buckets, std::size_t first,
                                          VIP_MEM_HANDLE handle) const;
  void count() {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  void grow();
  static void put(const Buckets& buckets, Region& region);

  std::atomic<const Buckets*> current_{nullptr};
  std::atomic<std::uint64_t> version_{0};  // counts what has moved, and what has been erased
  unsigned bits_ = 5;
  // Smaller ones too: somebody may be looking at them. Together they are as large as the last.
  std::vector<std::unique_ptr<Buckets>> all_;
};

}  // namespace viaduct::vipl
