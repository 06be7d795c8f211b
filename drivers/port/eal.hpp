// DPDK's environment abstraction layer, started at most once in a process and only when the first
// port is opened.
#pragma once

#include <rte_cycles.h>

#include <mutex>
#include <vector>

#include "drivers/link/types.hpp"

namespace viaduct::port {

struct EalOptions {
  // The device arguments of the first port if it is a PCI device: only then is the PCI bus looked
  // at, and EAL takes this function, and no other, as it starts.
  std::string pci_allow;
  // Memory DPDK must be able to serve frames from, in bytes.
  std::size_t memory = 64u << 20;
};

// Starts EAL unless it runs already (also when the application started it itself: then its memory
// and buses are used as they are). Works without root and without hugepages. The caller's CPU
// affinity and signal handlers are what they were before. Returns whether it has started EAL.
// Throws SetupError with EAL's own reason and the remedy.
bool ensure_eal(const EalOptions& options);

// The arguments ensure_eal would start EAL with, without the program's name: for tools that show or
// compare them.
std::vector<std::string> eal_arguments(const EalOptions& options);

// Gives the calling thread a DPDK identity until it ends, so that it has mempool caches of its own.
void register_thread();

// Held while ports are opened and closed: DPDK's device lists and log have one user at a time.
std::recursive_mutex& setup_lock();

namespace detail {
// Nanoseconds per TSC tick, times 2^32; set by ensure_eal.
extern std::uint64_t tick_scale;
}  // namespace detail

// The present time from the TSC; EAL must be up.
inline base::Time now() {
  __extension__ using Wide = unsigned __int128;
  return base::Time(base::Duration(
      static_cast<base::Duration::rep>(static_cast<Wide>(rte_rdtsc()) * detail::tick_scale >> 32)));
}

}  // namespace viaduct::port
