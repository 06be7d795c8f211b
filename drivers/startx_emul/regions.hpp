// The table of registered memory: the only way from a region's name to an address.
#pragma once

#include <optional>

#include "drivers/startx_emul/rdma_types.hpp"

namespace viaduct::startx {

class Regions {
 public:
  explicit Regions(std::size_t most) : table_(most) {}

  // RegionId{} when the table is full.
  RegionId add(std::span<std::byte> memory);
  // false for an unknown region or one in use.
  bool remove(RegionId region);
  bool knows(RegionId region) const { return find(region) != table_.size(); }

  // The address of a range, if the region exists and all of the range lies inside it.
  std::optional<std::byte*> resolve(const RegionBytes& range) const;
  // A region in use cannot be removed. Calls come in pairs.
  void use(RegionId region);
  void release(RegionId region);

 private:
  struct Region {
    std::span<std::byte> memory;
    std::uint32_t users = 0;
    std::uint16_t generation = 0;  // so that the name of a removed region stays invalid
    bool taken = false;
  };
  // Index of the region in the table, or table_.size().
  std::size_t find(RegionId region) const;

  std::vector<Region> table_;
};

}  // namespace viaduct::startx
