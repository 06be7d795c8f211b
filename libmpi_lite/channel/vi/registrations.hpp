// Registrations: the program's buffers, registered with the NIC for long transfers. Registering
// pins memory and takes as long as a message of many kilobytes, so a registration is kept after its
// transfer and found again when the program uses the same memory.
//
// A registration is right as long as its addresses mean the pages that were pinned. UnmappedWatch
// tells when the program gives memory back; what it tells is taken before each look-up, and the
// registrations that it touches are never found again. Where the watch does not work, registrations
// are not kept.
//
// Ranges are whole pages, and those that can be found do not overlap. When the memory of all of
// them would exceed the limit, or the device or the kernel (RLIMIT_MEMLOCK) refuses more, those
// without a user go, least recently used first.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>

#include <vipl.h>

#include "libmpi_lite/channel/vi/unmapped.hpp"

namespace viaduct::mpi {

// What registers memory: VipRegisterMem, or a test's.
class MemoryRegistrar {
 public:
  // 0: refused.
  virtual VIP_MEM_HANDLE register_memory(const AddressRange& range) = 0;
  virtual void deregister_memory(const AddressRange& range, VIP_MEM_HANDLE handle) = 0;

 protected:
  ~MemoryRegistrar() = default;
};

// Owned by the channel; its thread.
class Registrations {
 public:
  // Of one range of pages. Stays while it has users.
  class Registration {
   public:
    VIP_MEM_HANDLE handle() const { return handle_; }

   private:
    friend Registrations;
    AddressRange range_;
    VIP_MEM_HANDLE handle_ = 0;
    unsigned users_ = 0;
    bool kept_ = false;                         // can be found
    std::list<Registration*>::iterator place_;  // in unused_, if it is kept and has no user
  };

  // `limit`: bytes of all registrations. `keeps`: the watch works.
  Registrations(MemoryRegistrar& registrar, std::size_t limit, bool keeps)
      : registrar_(registrar), limit_(limit), keeps_(keeps) {}
  ~Registrations();
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  // A registration that covers the memory, with one user more; release() takes it back. nullptr:
  // it cannot be registered now.
  Registration* acquire(const void* address, std::size_t bytes);
  void release(Registration& registration);
  // This memory was given back. Registrations without a user are deregistered at once.
  void forget(const AddressRange& range);
  // From the lowest to the highest address of what is kept.
  AddressRange kept() const;

  struct Counts {
    std::uint64_t hits = 0, misses = 0, refused = 0, forgotten = 0;
    std::size_t pinned = 0, peak = 0;  // bytes
  };
  const Counts& counts() const { return counts_; }

 private:
  using Kept =
      std::map<std::uintptr_t, std::unique_ptr<Registration>>;  // by the begin of the range

  Registration* find(const AddressRange& range);
  Registration* add(AddressRange range);
  // The first that overlaps the range, or the one behind it.
  Kept::iterator first_overlap(const AddressRange& range);
  Registration* use(Registration& registration);
  // It can no longer be found. The next one.
  Kept::iterator drop(Kept::iterator at);
  bool drop_oldest_unused();
  void deregister(const Registration& registration);

  MemoryRegistrar& registrar_;
  const std::size_t limit_;
  const bool keeps_;
  Kept kept_;
  std::list<std::unique_ptr<Registration>> others_;  // in use, and not to be found again
  std::list<Registration*> unused_;                  // of kept_; least recently used first
  Counts counts_;
};

}  // namespace viaduct::mpi
