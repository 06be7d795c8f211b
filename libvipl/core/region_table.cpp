#include "libvipl/core/region_table.hpp"

namespace viaduct::vipl {

Region RegionTable::gone_;

const Region* RegionTable::find_behind(const Buckets& buckets, std::size_t first,
                                       VIP_MEM_HANDLE handle) {
  for (std::size_t at = first + 1; at <= first + buckets.mask; ++at) {
    const Region* const region = buckets.at(at).load(std::memory_order_acquire);
    if (region == nullptr || region->is(handle)) return region;
  }
  return nullptr;
}

void RegionTable::insert(Region& region) {
  // Half of the places hold nothing, so runs are short.
  if ((used_ + 1) * 2 > all_.back()->mask + 1) grow();
  put(*all_.back(), region);
  ++used_;
}

void RegionTable::put(Buckets& buckets, Region& region) {
  const VIP_MEM_HANDLE handle = region.handle.load(std::memory_order_relaxed);
  for (std::size_t at = hash(handle) >> buckets.shift;; ++at) {
    Region* const there = buckets.at(at).load(std::memory_order_relaxed);
    if (there != nullptr && there != &gone_) continue;
    buckets.at(at).store(&region, std::memory_order_release);
    return;
  }
}

void RegionTable::erase(Region& region) {
  const Buckets& buckets = *all_.back();
  std::size_t at = hash(region.handle.load(std::memory_order_relaxed)) >> buckets.shift;
  while (buckets.at(at).load(std::memory_order_relaxed) != &region) ++at;
  buckets.at(at).store(&gone_, std::memory_order_release);
  --used_;
  version_.fetch_add(1, std::memory_order_release);
  // At the end of a run of places nothing is behind it.
  if (buckets.at(at + 1).load(std::memory_order_relaxed) != nullptr) return;
  for (; buckets.at(at).load(std::memory_order_relaxed) == &gone_; --at)
    buckets.at(at).store(nullptr, std::memory_order_release);
}

void RegionTable::grow() {
  auto larger = std::make_unique<Buckets>(bits_ + 1);
  if (!all_.empty()) {
    const Buckets& old = *all_.back();
    for (std::size_t at = 0; at <= old.mask; ++at) {
      Region* const region = old.at(at).load(std::memory_order_relaxed);
      if (region != nullptr && region != &gone_) put(*larger, *region);
    }
  }
  all_.push_back(std::move(larger));
  ++bits_;
  current_.store(all_.back().get(), std::memory_order_release);
}

}  // namespace viaduct::vipl
