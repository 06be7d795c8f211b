// Turns what the user asks for (PortConfig, VIADUCT_* variables) into a configuration that DPDK can
// carry out: checked against this machine, and completed with the defaults that suit the driver.
// DPDK sees only requests that should succeed, so that most errors are ours and name their remedy.
//
// Plain functions without state; any thread may call them.
#pragma once

#include <rte_mbuf.h>

#include <optional>
#include <string>

#include "drivers/link/packet_device.hpp"

namespace viaduct::port {

// DPDK keeps the length of a frame and of its buffer in 16 bits. 1024: headers, and rounding up.
inline constexpr std::size_t kMaxMtu = 65535 - RTE_PKTMBUF_HEADROOM - 1024;

struct PortConfig;

// By the way that the driver moves frames, which decides its defaults and limits. `existing`: an
// ethdev that the application has made (port:...).
enum class PortKind : std::uint8_t { existing, pci, memif, af_packet, af_xdp, other };

// The result. Sizes are in bytes; 0 means that the device decides.
struct ResolvedPortConfig {
  std::string requested;  // what the user wrote, for messages
  std::string name;       // the ethdev's name (or, for "port:", its name or number)
  std::string devargs;    // for rte_dev_probe
  PortKind kind = PortKind::other;
  std::string pci;                   // PCI address, or empty
  std::string interface;             // the kernel's network interface behind it, or empty
  std::size_t mtu = 0;               // 0: ask the device
  std::size_t frames = 0;            // in the pool
  std::size_t descriptors = 0;       // in the receive queue
  std::size_t data_room = 0;         // of a buffer, without headroom; 0: frame_room() of the MTU
  std::size_t receive_capacity = 0;  // frames; 0: the descriptors of the receive queue
};

// The value of `key` in "name,key=value,...". This and the next two throw SetupError if DPDK would
// misunderstand `devargs`.
std::optional<std::string> devarg(const std::string& devargs, const std::string& key);
// `devargs` with key=value, unless it has the key already.
std::string with_default(const std::string& devargs, const std::string& key,
                         const std::string& value);
// `devargs` with key=value whatever it had.
std::string with_devarg(const std::string& devargs, const std::string& key,
                        const std::string& value);

// Throws SetupError, with reason and remedy, when this machine cannot do what is asked.
ResolvedPortConfig resolve_port_config(const PortConfig& config);

// Bytes a frame's buffer must hold for this MTU.
std::size_t frame_room(std::size_t mtu);

}  // namespace viaduct::port
