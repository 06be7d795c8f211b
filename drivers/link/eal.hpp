// DPDK's environment abstraction layer, started at most once in a process and only when the first
// port is opened.
#pragma once

#include "drivers/link/types.hpp"

namespace viaduct::link {

struct EalOptions {
  // A PCI address when the first port is a PCI device: only then is the PCI bus looked at, and only
  // at this function (plus those named in VIADUCT_PORTS).
  std::string pci_allow;
  // Memory DPDK must be able to serve frames from, in bytes.
  std::size_t memory = 64u << 20;
};

// Starts EAL unless it runs already (also when the application started it itself: then its memory
// and buses are used as they are). Works without root and without hugepages. The caller's CPU
// affinity and signal handlers are what they were before. Throws SetupError with EAL's own reason
// and the remedy.
void ensure_eal(const EalOptions& options);

// The present time from the TSC; EAL must be up.
Time now();

}  // namespace viaduct::link
