// DPDK's environment abstraction layer (EAL): started at most once in a process, and only when the
// first port is opened. Also what hangs on EAL: the lock for setting up, thread registration, and
// the clock. Any thread may call these functions.
#pragma once

#include <rte_cycles.h>

#include <mutex>
#include <vector>

#include "drivers/link/types.hpp"

namespace viaduct::port {

struct EalOptions {
  // The device arguments of the first port if it is a PCI device, else empty. Only with it does EAL
  // scan the PCI bus, and EAL probes this function and no other as it starts.
  std::string pci_allow;
  // Bytes that DPDK must be able to allocate for frames.
  std::size_t memory = 64u << 20;
};

// Starts EAL unless it runs already. If the application has started EAL, its memory and buses are
// used as they are. Works without root and without hugepages. The caller's CPU affinity, signal
// mask and signal handlers are the same afterwards. Returns true if this call has started EAL.
// Throws SetupError with EAL's own reason and the remedy.
bool ensure_eal(const EalOptions& options);

// The arguments ensure_eal would start EAL with, without the program's name: for tools that show or
// compare them.
std::vector<std::string> eal_arguments(const EalOptions& options);

// Gives the calling thread an lcore id of DPDK's until the thread ends, so that it has mempool
// caches of its own.
void register_thread();

// Held while ports are opened and closed: DPDK's device lists and log are not thread-safe.
// Recursive, because an opening that fails closes what it has opened.
std::recursive_mutex& setup_lock();

namespace detail {
// Nanoseconds per TSC tick, times 2^32; set by ensure_eal.
extern std::uint64_t tick_scale;
}  // namespace detail

// The present time from the CPU's time stamp counter (TSC). EAL must be up. A multiplication in 128
// bits and a shift, because a division takes longer than all the rest.
inline base::Time now() {
  __extension__ using Wide = unsigned __int128;
  return base::Time(base::Duration(
      static_cast<base::Duration::rep>(static_cast<Wide>(rte_rdtsc()) * detail::tick_scale >> 32)));
}

}  // namespace viaduct::port
