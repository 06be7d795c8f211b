// Slots: registered memory for one message each, with the VIPL descriptor that sends or receives
// it. They are made in blocks when they are needed, shared by all Virtual Interfaces, and stay
// until the channel ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <vipl.h>

#include "libmpi_lite/channel/vi/registrations.hpp"

namespace viaduct::mpi {

struct alignas(VIP_DESCRIPTOR_ALIGNMENT) ViSlot {
  static constexpr std::uint32_t kNoSend = ~std::uint32_t{0};

  VIP_DESCRIPTOR descriptor;  // first: the library gives back its address
  VIP_MEM_HANDLE handle;      // of the memory that the slot lies in
  std::uint32_t send;         // the long transfer that this is a part of, or kNoSend
  ViSlot* next;               // while it is free

  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  static ViSlot& of(VIP_DESCRIPTOR* descriptor) { return *reinterpret_cast<ViSlot*>(descriptor); }
};

// Owned by the channel; its thread.
class ViSlots {
 public:
  // `room`: bytes of data in a slot.
  ViSlots(MemoryRegistrar& registrar, std::size_t room);
  ~ViSlots();
  ViSlots(const ViSlots&) = delete;
  ViSlots& operator=(const ViSlots&) = delete;

  // nullptr: no memory can be registered.
  ViSlot* take() {
    if (free_ == nullptr && !grow()) [[unlikely]]
      return nullptr;
    ViSlot* const slot = free_;
    free_ = slot->next;
    return slot;
  }
  void give(ViSlot& slot) {
    slot.next = free_;
    free_ = &slot;
  }
  std::size_t room() const { return room_; }
  std::size_t pinned() const { return blocks_.size() * block_bytes_; }

 private:
  struct Block {
    struct Free {
      void operator()(std::byte* memory) const { std::free(memory); }
    };
    std::unique_ptr<std::byte, Free> memory;
    VIP_MEM_HANDLE handle;
  };
  bool grow();
  AddressRange range_of(const Block& block) const;

  MemoryRegistrar& registrar_;
  const std::size_t room_, stride_, block_bytes_;
  std::vector<Block> blocks_;
  ViSlot* free_ = nullptr;
};

}  // namespace viaduct::mpi
