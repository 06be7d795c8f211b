// Resolves the configuration of each kind of port: which device arguments, sizes and checks its
// DPDK driver needs. The checks themselves are in netdev_check.cpp and pci_check.cpp; port.cpp
// opens the port with the result.
#include "drivers/port/port_config.hpp"

#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "drivers/base/random.hpp"
#include "drivers/link/wire_format.hpp"
#include "drivers/port/config_vars.hpp"
#include "drivers/port/kvargs.hpp"
#include "drivers/port/netdev_check.hpp"
#include "drivers/port/pci_check.hpp"
#include "drivers/port/port.hpp"

namespace viaduct::port {
namespace {

// Ethernet header, two VLAN tags, checksum.
constexpr std::size_t kOverhead = link::kEthernetHeader + 8 + 4;
// Bytes that the kernel takes for its own header in front of each frame of a packet ring, at most.
constexpr std::size_t kPacketRingHeader = 80;
// AF_XDP needs a frame, and all headers in front of its data, within one page. Its driver assumes
// that frames lie without gaps, but a mempool lets no object cross a page. So make each object,
// with the mempool's own header (a cache line), fill a page exactly. 256: the kernel's headroom in
// each frame.
constexpr std::size_t kXdpHeadroom = 256;
constexpr std::size_t kXdpObject = 4096;
constexpr std::size_t kXdpRoom =
    kXdpObject - RTE_CACHE_LINE_SIZE - sizeof(rte_mbuf) - kPrivateArea - RTE_PKTMBUF_HEADROOM;
constexpr std::size_t kMaxXdpMtu = kXdpRoom - kXdpHeadroom - link::kEthernetHeader - 4;

std::size_t round_up(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

[[noreturn]] void throw_cannot_open(const ResolvedPortConfig& resolved, const std::string& why) {
  throw base::SetupError("cannot open port " + resolved.requested + ": " + why);
}

// By the driver's name, with which the devargs begin.
PortKind kind_of(std::string_view devargs) {
  if (devargs.starts_with("port:")) return PortKind::existing;
  if (!pci_address(devargs).empty()) return PortKind::pci;
  if (devargs.starts_with("net_memif")) return PortKind::memif;
  if (devargs.starts_with("net_af_packet") || devargs.starts_with("eth_af_packet"))
    return PortKind::af_packet;
  if (devargs.starts_with("net_af_xdp")) return PortKind::af_xdp;
  return PortKind::other;
}

// What all ports on an interface of the kernel's need: its name and its MTU.
void resolve_interface(ResolvedPortConfig& resolved) {
  const auto interface = devarg(resolved.devargs, "iface");
  if (!interface || interface->empty())
    throw_cannot_open(resolved,
                      "it names no interface; write for example " + resolved.name + ",iface=eth1");
  resolved.interface = *interface;
  const std::size_t has = interface_mtu(resolved.requested, resolved.interface);
  if (resolved.mtu > has)
    throw_cannot_open(
        resolved, "MTU " + std::to_string(resolved.mtu) + " is larger than the interface's " +
                      std::to_string(has) + "; run `ip link set " + resolved.interface + " mtu " +
                      std::to_string(resolved.mtu) + "` as root or lower VIADUCT_MTU");
  if (resolved.mtu == 0) resolved.mtu = has;
  if (resolved.mtu > kMaxMtu) resolved.mtu = kMaxMtu;  // the loop-back interface has 65536
}

// Sizes the packet ring. The driver's own defaults hold 512 frames of 2 KiB: too few for two lanes
// with full windows, and too small for jumbo frames. Frames must not straddle blocks, because the
// driver takes the ring for one array; and blocks are whole pages. So a block is the least common
// multiple.
//
// qdisc_bypass is left as the driver has it, on. Between the ends of a veth pair the best 64-byte
// round trip of five alternating runs was 1.35 us (median of the five) with it and 1.88 us without.
void resolve_af_packet(ResolvedPortConfig& resolved) {
  resolve_interface(resolved);
  check_packet_sockets(resolved.requested, resolved.interface);
  const std::size_t needed = resolved.mtu + link::kEthernetHeader + 4 + kPacketRingHeader;
  std::size_t frame = round_up(needed, 1024);
  if (const auto given = devarg(resolved.devargs, "framesz")) {
    frame = std::strtoul(given->c_str(), nullptr, 10);
    if (frame < needed)
      throw_cannot_open(resolved, "framesz=" + *given + " does not hold frames of MTU " +
                                      std::to_string(resolved.mtu) +
                                      "; leave it out or give at least " + std::to_string(needed));
  } else {
    const std::size_t block = std::lcm(frame, std::size_t{4096});
    const std::size_t per_block = block / frame;
    // The ring's memory counts against RLIMIT_MEMLOCK, twice: one mapping holds a receive and a
    // transmit ring.
    const std::size_t most = lockable_memory() / (2 * frame);
    const std::size_t wanted = std::min(resolved.descriptors, std::max<std::size_t>(most, 64));
    const std::size_t count = std::max(wanted / per_block, std::size_t{1}) * per_block;
    resolved.devargs = with_default(resolved.devargs, "framesz", std::to_string(frame));
    resolved.devargs = with_default(resolved.devargs, "blocksz", std::to_string(block));
    resolved.devargs = with_default(resolved.devargs, "framecnt", std::to_string(count));
  }
  resolved.data_room = frame;
  resolved.receive_capacity =
      std::strtoul(devarg(resolved.devargs, "framecnt").value_or("512").c_str(), nullptr, 10);
}

// busy_budget=0 turns the driver's busy polling off: with its default of 64 every burst asks the
// kernel to poll for us. Between the ends of a veth pair that cost 30 % of the message rate (1.19
// against 1.70 million 64-byte frames a second) and some latency (2.73 against 2.58 us median round
// trip).
void resolve_af_xdp(ResolvedPortConfig& resolved) {
  resolve_interface(resolved);
  check_packet_sockets(resolved.requested, resolved.interface);
  if (resolved.mtu > kMaxXdpMtu)
    throw_cannot_open(resolved, "AF_XDP carries at most MTU " + std::to_string(kMaxXdpMtu) +
                                    " and " + resolved.interface + " has " +
                                    std::to_string(resolved.mtu) + "; run `ip link set " +
                                    resolved.interface + " mtu " + std::to_string(kMaxXdpMtu) +
                                    "` as root or use net_af_packet");
  resolved.devargs = with_default(resolved.devargs, "busy_budget", "0");
  resolved.data_room = kXdpRoom;
}

// A random, locally administered Ethernet address. DPDK's own random addresses come from a seed
// that processes forked from one parent share, so two of them would get the same address.
std::string random_address() {
  link::Address address;
  const std::uint64_t bits = base::random_word();
  std::memcpy(address.bytes.data(), &bits, address.bytes.size());
  address.bytes[0] = static_cast<std::uint8_t>((address.bytes[0] & 0xfc) | 2);
  return address.text();
}

// Sizes of the shared memory: buffers and rings. The client allocates it, and both sides write into
// it; the server uses what the client has chosen. A ring has 2^rsize slots, at most 2^14.
void resolve_memif(ResolvedPortConfig& resolved) {
  if (resolved.mtu == 0) resolved.mtu = RTE_ETHER_MTU;
  const std::size_t buffer = std::max<std::size_t>(2048, round_up(resolved.mtu + kOverhead, 64));
  unsigned log2 = 6;
  while (log2 < 14 && (1u << log2) < resolved.descriptors) ++log2;
  resolved.devargs = with_default(resolved.devargs, "bsize", std::to_string(buffer));
  resolved.devargs = with_default(resolved.devargs, "rsize", std::to_string(log2));
  resolved.devargs = with_default(resolved.devargs, "mac", random_address());
  const auto ring = devarg(resolved.devargs, "rsize").value_or("10");
  resolved.receive_capacity = std::size_t{1}
                              << std::min(14ul, std::strtoul(ring.c_str(), nullptr, 10));
}

}  // namespace

std::optional<std::string> devarg(const std::string& devargs, const std::string& key) {
  const Kvargs arguments(devargs);
  const char* const value = arguments.get(key);
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

std::string with_default(const std::string& devargs, const std::string& key,
                         const std::string& value) {
  return devarg(devargs, key) ? devargs : devargs + "," + key + "=" + value;
}

std::string with_devarg(const std::string& devargs, const std::string& key,
                        const std::string& value) {
  std::string out;
  for (const auto& [name, old] : Kvargs(devargs)) {
    if (name == key) continue;
    out += name;
    if (old != nullptr) out.append("=").append(old);
    out += ",";
  }
  return out + key + "=" + value;
}

std::size_t frame_room(std::size_t mtu) {
  // Many NICs can only be told the size of receive buffers in whole KiB.
  return round_up(mtu + kOverhead, 1024);
}

// First what all kinds share, then what the kind needs.
ResolvedPortConfig resolve_port_config(const PortConfig& config) {
  ResolvedPortConfig resolved;
  resolved.requested = resolved.devargs = config.devargs;
  resolved.name = resolved.devargs.substr(0, resolved.devargs.find(','));
  resolved.kind = kind_of(resolved.devargs);
  resolved.mtu = config.mtu != 0 ? config.mtu : config_vars().number("VIADUCT_MTU");
  resolved.frames = config.frames != 0 ? config.frames : config_vars().number("VIADUCT_FRAMES");
  resolved.descriptors = config_vars().number("VIADUCT_RX_DESCRIPTORS");
  if (resolved.mtu != 0 && (resolved.mtu < link::kMinMtu || resolved.mtu > kMaxMtu))
    throw_cannot_open(resolved, "MTU " + std::to_string(resolved.mtu) +
                                    " is out of range; ask for " + std::to_string(link::kMinMtu) +
                                    " to " + std::to_string(kMaxMtu));
  switch (resolved.kind) {
    case PortKind::existing: resolved.name = resolved.devargs.substr(5); break;  // behind "port:"
    case PortKind::pci:
      resolved.pci = pci_address(resolved.devargs);
      resolved.devargs.replace(0, resolved.name.size(), resolved.pci);  // EAL wants the domain, too
      resolved.name = resolved.pci;
      check_pci_function(resolved.pci);
      break;
    case PortKind::memif: resolve_memif(resolved); break;
    case PortKind::af_packet: resolve_af_packet(resolved); break;
    case PortKind::af_xdp: resolve_af_xdp(resolved); break;
    case PortKind::other:
      if (resolved.name.empty())
        throw_cannot_open(resolved,
                          "the name is empty; write a PCI address or a virtual device, for example "
                          "net_af_packet0,iface=eth1 or net_memif0,role=server,socket=x");
      break;
  }
  return resolved;
}

}  // namespace viaduct::port
