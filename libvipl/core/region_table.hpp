// RegionTable: a hash table from memory handles to what posting must know of a region. Look-ups
// take no lock and may run while another thread registers or deregisters memory. Open addressing
// with linear probing (Knuth, The Art of Computer Programming, volume 3, 6.4).
//
// Owned by Memory, under whose lock it changes. It does not own the Regions, which are never freed
// while the table lives.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <vipl.h>

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::vipl {

// A registered region, as posting sees it.
//
// The fields are atomic only because a thread may read them while the object becomes another
// region. A program that posts memory which it is deregistering at the same time gets the old
// region, the new one, or an error from the device.
struct Region {
  std::atomic<VIP_MEM_HANDLE> handle{0};  // 0: in no use
  std::atomic<std::uint32_t> local_key{0};
  // Addresses: the first byte, and behind the last.
  std::atomic<std::uint64_t> begin{0}, end{0};
  std::atomic<const vi::Domain*> domain{nullptr};  // of its protection tag

  bool is(VIP_MEM_HANDLE it) const { return handle.load(std::memory_order_acquire) == it; }
  bool is_in(const vi::Domain* it) const { return domain.load(std::memory_order_relaxed) == it; }
  // Bytes from `address` to the end of the region; 0: the address is outside.
  std::uint64_t room(std::uint64_t address) const {
    const std::uint64_t last = end.load(std::memory_order_relaxed);
    return address >= begin.load(std::memory_order_relaxed) && address < last ? last - address : 0;
  }
};

class RegionTable {
 public:
  RegionTable() { grow(); }

  // The region of this handle; nullptr: there is none. Any thread, no lock.
  const Region* find(VIP_MEM_HANDLE handle) const {
    const Buckets& buckets = *current_.load(std::memory_order_acquire);
    const std::size_t first = hash(handle) >> buckets.shift;
    const Region* const region = buckets.regions[first].load(std::memory_order_acquire);
    if (region == nullptr || region->is(handle)) return region;
    return find_behind(buckets, first, handle);
  }

  // Changes whenever a region is erased: what a find() returned under an earlier version may be
  // gone.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

  // ---- by one thread at a time -----------------------------------------------------------------

  // Makes room for so many regions at a time. std::bad_alloc: there is as much room as before.
  void reserve(std::size_t regions);
  // `region.handle` must not be in the table yet, and there must be room.
  void insert(Region& region) noexcept;
  void erase(Region& region) noexcept;

 private:
  // A hash table of 2^bits places.
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

  // Fibonacci hashing (Knuth 6.4): the keys of some devices differ in the upper bits only, of
  // others in the lower bits, and this spreads both over the upper bits, which are used. 2654435769
  // is 2^32 divided by the golden ratio.
  static constexpr std::uint32_t hash(VIP_MEM_HANDLE handle) { return handle * 2654435769u; }
  // The place where the search for a region begins.
  static std::size_t home(const Buckets& buckets, const Region& region) {
    return hash(region.handle.load(std::memory_order_relaxed)) >> buckets.shift;
  }
  // find(), if the first place holds another region.
  [[gnu::cold]] const Region* find_behind(const Buckets& buckets, std::size_t first,
                                          VIP_MEM_HANDLE handle) const;
  // Only one thread changes the table at a time, so an atomic increment is not needed.
  void count() {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  void grow();
  static void put(const Buckets& buckets, Region& region);

  std::atomic<const Buckets*> current_{nullptr};
  std::atomic<std::uint64_t> version_{0};  // counts moves and erasures
  unsigned bits_ = 5;                      // of the last table; the constructor's grow() makes it 6
  // Earlier, smaller tables are kept, because a thread may be searching one. All of them together
  // are as large as the last.
  std::vector<std::unique_ptr<Buckets>> all_;
};

}  // namespace viaduct::vipl
