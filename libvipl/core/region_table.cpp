// Changing the table of regions while other threads search it without a lock.
#include "libvipl/core/region_table.hpp"

namespace viaduct::vipl {

const Region* RegionTable::find_behind(const Buckets& buckets, std::size_t first,
                                       VIP_MEM_HANDLE handle) const {
  for (;;) {
    // A region that moves towards its home while this thread searches may be missed: it moves from
    // a place that is still to come to one that has been passed. The version tells, and the search
    // begins anew.
    const std::uint64_t before = version();
    for (std::size_t at = first;; ++at) {
      const Region* const region = buckets.at(at).load(std::memory_order_acquire);
      if (region == nullptr) break;  // there is always one, see reserve()
      if (region->is(handle)) return region;
    }
    // Not there, or it has moved to a place that had been looked at already.
    if (version() == before) return nullptr;
  }
}

// At most half of the places are in use, so runs are short, and every run ends with an empty place.
void RegionTable::reserve(std::size_t regions) {
  while (regions * 2 > all_.back()->mask + 1) grow();
}

void RegionTable::insert(Region& region) noexcept {
  put(*all_.back(), region);
}

void RegionTable::put(const Buckets& buckets, Region& region) {
  std::size_t at = home(buckets, region);
  while (buckets.at(at).load(std::memory_order_relaxed) != nullptr) ++at;
  buckets.at(at).store(&region, std::memory_order_release);
}

// Regions behind the erased one in its run move up (Knuth, algorithm 6.4R), so that no tombstones
// accumulate. A region that moves is in both places for a moment, and then the version counts: a
// search that looked into neither place at the right time is repeated.
void RegionTable::erase(Region& region) noexcept {
  const Buckets& buckets = *all_.back();
  std::size_t hole = home(buckets, region);
  while (buckets.at(hole).load(std::memory_order_relaxed) != &region) ++hole;
  for (std::size_t at = hole + 1;; ++at) {
    Region* const behind = buckets.at(at).load(std::memory_order_relaxed);
    if (behind == nullptr) break;
    // A region must not move in front of its home, where no search begins.
    if (((at - home(buckets, *behind)) & buckets.mask) < ((at - hole) & buckets.mask)) continue;
    buckets.at(hole).store(behind, std::memory_order_release);
    count();
    hole = at;
  }
  buckets.at(hole).store(nullptr, std::memory_order_release);
  count();  // only now: a thread that found the region before has read an older version
}

void RegionTable::grow() {
  auto larger = std::make_unique<Buckets>(bits_ + 1);
  if (!all_.empty()) {
    const Buckets& old = *all_.back();
    for (std::size_t at = 0; at <= old.mask; ++at)
      if (Region* const region = old.at(at).load(std::memory_order_relaxed)) put(*larger, *region);
  }
  all_.push_back(std::move(larger));
  ++bits_;
  current_.store(all_.back().get(), std::memory_order_release);
}

}  // namespace viaduct::vipl
