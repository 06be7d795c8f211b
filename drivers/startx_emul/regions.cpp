// Naming and looking up registered memory. rdma.cpp resolves a range once, when a transfer starts,
// and holds the region by use() until the transfer completes.
#include "drivers/startx_emul/regions.hpp"

namespace viaduct::startx {

RegionId Regions::add(std::span<std::byte> memory) {
  const base::Slot slot = table_.insert();
  if (slot == base::kNoSlot) return {};
  table_[slot] = {memory, 0};
  return table_.id(slot);
}

bool Regions::remove(RegionId region) {
  const base::Slot slot = table_.find(region);
  if (slot == base::kNoSlot || table_[slot].users != 0) return false;
  table_.erase(slot);
  return true;
}

std::optional<std::byte*> Regions::resolve(const RegionBytes& range) const {
  const base::Slot slot = table_.find(range.region);
  if (slot == base::kNoSlot) return std::nullopt;
  const std::span<std::byte> memory = table_[slot].memory;
  // The subtraction comes after the comparison, so that no sum of the user's numbers can overflow.
  if (range.offset > memory.size() || range.length > memory.size() - range.offset)
    return std::nullopt;
  return memory.data() + range.offset;
}

void Regions::use(RegionId region) {
  if (const base::Slot slot = table_.find(region); slot != base::kNoSlot) ++table_[slot].users;
}

void Regions::release(RegionId region) {
  const base::Slot slot = table_.find(region);
  if (slot != base::kNoSlot && table_[slot].users > 0) --table_[slot].users;
}

}  // namespace viaduct::startx
