// Naming and looking up registered memory. rdma.cpp resolves a range once, when a transfer starts,
// and holds the region by use() until the transfer completes.
#include "drivers/startx_emul/regions.hpp"

namespace viaduct::startx {

namespace {
// A name is the generation in the upper half and index + 1 in the lower one, so that 0 is no name.
constexpr RegionId name(std::size_t index, std::uint16_t generation) {
  return {static_cast<std::uint32_t>(generation) << 16 | static_cast<std::uint32_t>(index + 1)};
}
}  // namespace

RegionId Regions::add(std::span<std::byte> memory) {
  for (std::size_t i = 0; i < table_.size(); ++i) {
    Region& region = table_[i];
    if (region.taken) continue;
    // A name comes back only when its entry has been registered anew 65536 times.
    ++region.generation;
    region.memory = memory;
    region.users = 0;
    region.taken = true;
    return name(i, region.generation);
  }
  return {};
}

std::size_t Regions::find(RegionId region) const {
  const std::size_t index = (region.value & 0xffff) - std::size_t{1};  // wraps for 0: not found
  if (index >= table_.size() || !table_[index].taken ||
      name(index, table_[index].generation) != region)
    return table_.size();
  return index;
}

bool Regions::remove(RegionId region) {
  const std::size_t index = find(region);
  if (index == table_.size() || table_[index].users != 0) return false;
  table_[index].taken = false;
  table_[index].memory = {};
  return true;
}

std::optional<std::byte*> Regions::resolve(const RegionBytes& range) const {
  const std::size_t index = find(range.region);
  if (index == table_.size()) return std::nullopt;
  const std::span<std::byte> memory = table_[index].memory;
  // The subtraction comes after the comparison, so that no sum of the user's numbers can overflow.
  if (range.offset > memory.size() || range.length > memory.size() - range.offset)
    return std::nullopt;
  return memory.data() + range.offset;
}

void Regions::use(RegionId region) {
  if (const std::size_t index = find(region); index < table_.size()) ++table_[index].users;
}

void Regions::release(RegionId region) {
  const std::size_t index = find(region);
  if (index < table_.size() && table_[index].users > 0) --table_[index].users;
}

}  // namespace viaduct::startx
