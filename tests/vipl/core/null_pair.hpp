// Two connected VIs on the device of null_verbs.cpp, and descriptors for them.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <new>

#include <vipl.h>

#include "libvipl/core/vi.hpp"

namespace viaduct::vipl::test {

inline void must(VIP_RETURN result, const char* what) {
  if (result == VIP_SUCCESS) return;
  std::fprintf(stderr, "%s: code %d\n", what, static_cast<int>(result));
  std::exit(1);
}

struct NullPair {
  static constexpr std::size_t kBytes = 4096;

  explicit NullPair(bool with_cq) {
    must(VipOpenNic("null0", &nic), "VipOpenNic");
    must(VipRegisterMem(nic, memory, kBytes, nullptr, &handle), "VipRegisterMem");
    if (with_cq) must(VipCreateCQ(nic, 512, &cq), "VipCreateCQ");
    VIP_VI_ATTRIBUTES attributes{};
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = 32768;
    must(VipCreateVi(nic, &attributes, cq, cq, &vi), "VipCreateVi");
    Vi& it = *Vi::find(vi);
    must(it.begin_pending(vi), "begin_pending");
    if (!it.establish(it.card())) must(VIP_INVALID_STATE, "establish");
  }
  ~NullPair() { VipCloseNic(nic); }

  // One of eight, with that many segments of 8 bytes.
  VIP_DESCRIPTOR* descriptor(std::size_t i, std::uint16_t segments, std::uint16_t control) {
    auto* const d = reinterpret_cast<VIP_DESCRIPTOR*>(memory + i * 128);
    d->CS.Control = control;
    d->CS.SegCount = segments;
    d->CS.Length = 0;
    auto* const all = reinterpret_cast<VIP_DATA_SEGMENT*>(d->DS);
    for (std::uint16_t s = 0; s < segments; ++s) {
      all[s] = {{.Address = memory + 2048}, handle, 8};
      const bool is_address = s == 0 && (control & VIP_CONTROL_OP_MASK) != 0;
      if (!is_address) d->CS.Length += 8;
    }
    return d;
  }

  alignas(64) char memory[kBytes];
  VIP_NIC_HANDLE nic = nullptr;
  VIP_MEM_HANDLE handle = 0;
  VIP_CQ_HANDLE cq = nullptr;
  VIP_VI_HANDLE vi = nullptr;
};

}  // namespace viaduct::vipl::test
