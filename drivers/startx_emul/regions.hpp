// The table of registered memory (memory regions). Rdma owns it and uses it as the only way from a
// region's name to an address. The memory itself belongs to the user, who keeps it alive until the
// region is removed.
//
// Thread rule: that of the link; one owner thread. The table is made once and never grows.
#pragma once

#include <optional>

#include "drivers/base/slot_map.hpp"
#include "drivers/startx_emul/rdma_types.hpp"

namespace viaduct::startx {

class Regions {
 public:
  // Room for `most` regions, at most kMaxRegions.
  explicit Regions(std::size_t most) : table_(most) {}

  // Registers memory. RegionId{} when the table is full.
  RegionId add(std::span<std::byte> memory);
  // Deregisters memory. False for an unknown region, or while a transfer uses the region.
  bool remove(RegionId region);
  bool contains(RegionId region) const { return table_.find(region) != base::kNoSlot; }

  // The address of a range, if the region exists and all of the range lies inside it.
  std::optional<std::byte*> resolve(const RegionBytes& range) const;
  // Counts the transfers that use a region: remove() refuses while there are any. Each use() is
  // matched by one release().
  void use(RegionId region);
  void release(RegionId region);

 private:
  struct Region {
    std::span<std::byte> memory;
    std::uint32_t users = 0;  // transfers that use the region
  };
  base::SlotMap<Region, RegionId> table_;
};

}  // namespace viaduct::startx
