#include "libmpi_lite/channel/vi/slots.hpp"

#include <cstdlib>
#include <new>

namespace viaduct::mpi {
namespace {

constexpr std::size_t kPage = 4096, kSlotsOfABlock = 32;

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

ViSlots::ViSlots(MemoryRegistrar& registrar, std::size_t room)
    : registrar_(registrar),
      room_(room),
      stride_(rounded_up(sizeof(ViSlot) + room, VIP_DESCRIPTOR_ALIGNMENT)),
      block_bytes_(rounded_up(kSlotsOfABlock * stride_, kPage)) {}

ViSlots::~ViSlots() {
  for (const Block& block : blocks_) registrar_.deregister_memory(range_of(block), block.handle);
}

AddressRange ViSlots::range_of(const Block& block) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(block.memory.get());
  return {begin, begin + block_bytes_};
}

// Whole pages of its own: the memory behind a registration is neither given back nor shared.
bool ViSlots::grow() {
  Block block{std::unique_ptr<std::byte, Block::Free>(
                  static_cast<std::byte*>(std::aligned_alloc(kPage, block_bytes_))),
              0};
  if (block.memory == nullptr) return false;
  block.handle = registrar_.register_memory(range_of(block));
  if (block.handle == 0) return false;
  blocks_.push_back(std::move(block));
  for (std::size_t i = 0; i < kSlotsOfABlock; ++i) {
    auto* const slot = new (blocks_.back().memory.get() + i * stride_) ViSlot;
    slot->handle = blocks_.back().handle;
    give(*slot);
  }
  return true;
}

}  // namespace viaduct::mpi
