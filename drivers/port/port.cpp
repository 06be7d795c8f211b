// Opening and closing a port, and its slow path. port_config.cpp resolves the configuration,
// eal.cpp starts DPDK, mbuf_pool.cpp makes the frames; this file takes the ethdev through DPDK's
// states (probe, configure, queues, start) and turns each failure into a sentence with a remedy.
#include "drivers/port/port.hpp"

#include <poll.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "drivers/base/blocking_wait.hpp"
#include "drivers/port/config_vars.hpp"
#include "drivers/port/device_queue.hpp"
#include "drivers/port/eal.hpp"
#include "drivers/port/fault_injection.hpp"
#include "drivers/port/netdev_check.hpp"
#include "drivers/port/port_config.hpp"
#include "drivers/port/quirks/af_packet_ring.hpp"
#include "drivers/port/quirks/af_xdp_sockets.hpp"
#include "drivers/port/quirks/log_capture.hpp"
#include "drivers/port/quirks/memif_relay.hpp"
#include "drivers/port/receive_interrupt.hpp"

namespace viaduct::port {
namespace {

// The kernel refused the AF_XDP socket; Port::open may try again.
struct XdpQueueRefused : base::SetupError {
  explicit XdpQueueRefused(const base::SetupError& why) : base::SetupError(why) {}
};

constexpr std::size_t kMinToSend = 512;  // frames beyond those that wait to receive
constexpr std::uint16_t kSendDescriptors = 1024;
constexpr std::uint32_t kPollsConnected = 8192;  // empty polls between looks at a memif's peer
// While a memif connects: its handshake has ten steps, and a process that waits for its peer may
// yield the CPU between polls, so each empty poll sees to it.
constexpr std::uint32_t kPollsDisconnected = 1;
constexpr std::size_t kXdpRing = 2048;  // frames AF_XDP keeps for receiving, whatever is asked

// Words in DPDK's log or error text, and what a user can do about them. The first that matches
// counts, so the more special words come first.
struct Remedy {
  std::string_view word, text;
};
constexpr Remedy kRemedies[] = {
    {"failed to parse device",
     "no driver of that name: write a PCI address, net_af_packet0,iface=eth1, "
     "net_af_xdp0,iface=eth1 or net_memif0,role=server,socket=x, and see that DPDK's driver "
     "package is installed"},
    {"single-file", "set VIADUCT_EAL=--single-file-segments"},
    {"multi-file", "set VIADUCT_EAL=--single-file-segments"},
    {"mmap failed", "raise `ulimit -l`, grant CAP_IPC_LOCK or lower VIADUCT_RX_DESCRIPTORS"},
    {"umem", "raise `ulimit -l`, grant CAP_IPC_LOCK or lower VIADUCT_FRAMES"},
    {"not permitted",
     "run as root or grant CAP_NET_RAW, CAP_NET_ADMIN, CAP_SYS_ADMIN and CAP_IPC_LOCK"},
    {"Permission denied",
     "run as root, or give this user the device (for VFIO: chown /dev/vfio/*)"},
    {"VFIO", "see that `ls /dev/vfio` shows the function's IOMMU group and that this user owns it"},
    {"busy", "close whoever has it or use another port"},
    {"in use", "close whoever has it or use another port"},
};

std::string remedy(const std::string& reason, const std::string& otherwise) {
  for (const auto& [word, text] : kRemedies)
    if (reason.find(word) != std::string::npos) return std::string(text);
  return otherwise;
}

// Drivers that move frames in memory, or through a packet socket whose ring we have sized. They
// ignore the MTU that a port is configured with, but report a maximum that would make DPDK refuse a
// jumbo MTU. So bring_up() leaves the default MTU in their configuration.
bool ignores_mtu(PortKind kind, std::string_view driver) {
  return kind == PortKind::memif || kind == PortKind::af_packet || driver == "net_ring" ||
         driver == "net_null";
}

std::size_t room_for(const ResolvedPortConfig& config, std::size_t mtu) {
  return config.data_room != 0 ? config.data_room : frame_room(mtu);
}

// The probability that at least one of two independent causes of a fault occurs.
double either(double a, double b) {
  return 1 - (1 - a) * (1 - b);
}

base::FaultSpec combined(const base::FaultSpec& a, const base::FaultSpec& b) {
  return {either(a.loss, b.loss),         either(a.duplicate, b.duplicate),
          either(a.reorder, b.reorder),   either(a.corrupt, b.corrupt),
          either(a.truncate, b.truncate), a.any() ? a.seed : b.seed};
}

// Fills in {pid} and {port}, so that processes and ports have files of their own.
std::string recording_path(std::string path, const std::string& port) {
  const std::pair<std::string_view, std::string> values[] = {{"{pid}", std::to_string(getpid())},
                                                             {"{port}", port}};
  for (const auto& [word, value] : values)
    for (std::size_t at = 0; (at = path.find(word, at)) != std::string::npos; at += value.size())
      path.replace(at, word.size(), value);
  return path;
}

// Every ring ethdev reports an address of zeroes, and an address must name one port. 0x02: locally
// administered.
link::Address derived_address(std::uint16_t port) {
  const auto process = static_cast<unsigned>(getpid());
  const auto octet = [](unsigned value) { return static_cast<std::uint8_t>(value); };
  return {{0x02, octet(process >> 16), octet(process >> 8), octet(process), octet(port >> 8u),
           octet(port)}};
}

// The ethdev of a device that has been probed: most are named after it, but mlx4 and MANA name
// theirs "mlx4_0 port 1" or "0000:3b:00.0_port1".
bool find_ethdev(const std::string& device, std::uint16_t& port) {
  if (rte_eth_dev_get_port_by_name(device.c_str(), &port) == 0) return true;
  rte_dev_iterator iterator;
  std::uint16_t match = 0;
  RTE_ETH_FOREACH_MATCHING_DEV(match, device.c_str(), &iterator) {
    rte_eth_iterator_cleanup(&iterator);
    port = match;
    return true;
  }
  return false;
}

// Takes a device out again that was probed and turned out to be no ethdev.
void remove_device(const std::string& name) {
  rte_devargs device{};
  if (rte_devargs_parse(&device, name.c_str()) == 0)
    rte_eal_hotplug_remove(rte_bus_name(device.bus), device.name);
  rte_devargs_reset(&device);
}

// Frees frames that arrived and were never received, so that they return to their pools. Bounded,
// because a fast sender could keep it busy for ever.
void drain(std::uint16_t port) {
  rte_mbuf* burst[32];
  for (int round = 0; round < 4096; ++round) {
    const std::uint16_t got = rte_eth_rx_burst(port, 0, burst, 32);
    if (got == 0) return;
    rte_pktmbuf_free_bulk(burst, got);
  }
}

// Frees a pool when all its frames have returned. On a loop-back device another port may still hold
// frames of this pool, and freeing a frame needs its pool. Such a pool waits here until a later
// port closes. Called under setup_lock().
void free_when_full(rte_mempool* pool) {
  static std::vector<rte_mempool*> waiting;
  waiting.push_back(pool);
  std::erase_if(waiting, [](rte_mempool* candidate) {
    own_frame_pool(candidate);  // its port is closed
    if (rte_mempool_full(candidate) == 0) return false;
    rte_mempool_free(candidate);
    return true;
  });
}

// Waits until one of the descriptors or `also` is readable, or `most` is over. False: there is no
// descriptor, or one has an error (its interface is down), with which every wait would end at once.
bool wait_readable(std::span<const int> files, int also, base::Duration most) {
  constexpr std::size_t kMax = 4;  // a port has one queue
  std::array<pollfd, kMax + 1> polled{};
  std::size_t count = 0;
  if (files.empty() || files.size() > kMax) return false;
  for (const int file : files) polled[count++] = {file, POLLIN, 0};
  polled[count] = {also, POLLIN, 0};  // -1 is passed over
  const auto seconds = std::chrono::floor<std::chrono::seconds>(most);
  const timespec limit{seconds.count(), (most - seconds).count()};
  {
    const base::BlockingWait others_turn;
    if (::ppoll(polled.data(), count + 1, &limit, nullptr) <= 0) return true;
  }
  return std::all_of(polled.begin(), polled.begin() + count,
                     [](const pollfd& p) { return p.revents == 0 || (p.revents & POLLIN) != 0; });
}

}  // namespace

// Everything about a port that its bursts do not need.
struct Port::Parts {
  ResolvedPortConfig config;
  LogCapture* log = nullptr;  // while the port is being opened
  InterfaceClaim claim;
  XdpSockets xdp;
  PacketRing packet_ring;  // af_packet's
  // How far opening has come, which is what close() has to undo. For port:... nothing is attached.
  //   resolved --probe--> attached --ethdev owned--> found --bring_up()--> started
  bool attached = false;  // we probed the device, so we remove it
  bool found = false;     // port_ is valid
  bool started = false;
  std::uint64_t owner = 0;  // DPDK's id for this port's ownership of the ethdev
  std::string driver;
  std::unique_ptr<MemifControl> memif;
  std::vector<int> receive_fds;  // descriptors that are readable when frames have arrived
  MemifInterrupt interrupt;      // of a memif, while it has its peer
  ReceiveInterrupt receive_interrupt;
  std::unique_ptr<PcapWriter> recording;
  DeviceQueue queue;
  std::unique_ptr<PortFaults> faults;
  std::function<void()> idle;  // on_idle()

  // Throws SetupError: `what` failed, the reason from DPDK's log or else the errno, and the remedy.
  [[noreturn]] void throw_cannot_open(const std::string& what, int error,
                                      const std::string& otherwise) const {
    const std::string reason = log->reason(rte_strerror(error < 0 ? -error : error));
    throw base::SetupError("cannot open port " + config.requested + ": " + what + ": " + reason +
                           "; " + remedy(reason, otherwise));
  }
};

// The kernel frees an AF_XDP socket's queue some time after the socket was closed. A port that is
// opened again at once finds the queue busy for a moment, so try for 3 seconds (150 times 20 ms).
std::unique_ptr<Port> Port::open(const PortConfig& config) {
  for (int tries = 150;; --tries) {
    try {
      return std::unique_ptr<Port>(new Port(config));
    } catch (const XdpQueueRefused&) {
      if (tries == 1) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
}

Port::Port(const PortConfig& config) : parts_(std::make_unique<Parts>()) {
  Parts& p = *parts_;
  p.config = resolve_port_config(config);
  if (!p.config.interface.empty()) p.claim = InterfaceClaim(p.config.requested, p.config.interface);
  // How much memory EAL must have: each frame with its headers (128: those of the mempool, and
  // gaps), and 16 MiB for all else.
  const std::size_t frame = sizeof(rte_mbuf) + kPrivateArea + RTE_PKTMBUF_HEADROOM +
                            room_for(p.config, std::max<std::size_t>(p.config.mtu, RTE_ETHER_MTU)) +
                            128;
  // EAL probes a PCI function itself as it starts, if it is started for this port.
  const bool pci = p.config.kind == PortKind::pci;
  const bool probed =
      ensure_eal({pci ? p.config.devargs : "", p.config.frames * frame + (16u << 20)}) && pci;

  const std::lock_guard lock(setup_lock());
  LogCapture log;
  p.log = &log;
  register_thread();
  try {
    attach(probed);
    create_pool();
    start();
    prepare_slow_path(config.faults);
  } catch (...) {
    close();
    throw;
  }
  p.log = nullptr;
}

// Finds the ethdev and claims it. Probes the device first, unless the application has made the
// ethdev (port:...), or EAL has probed the device for us as it started (`probed`).
void Port::attach(bool probed) {
  Parts& p = *parts_;
  const ResolvedPortConfig& config = p.config;
  if (config.kind == PortKind::existing) {
    const bool number = config.name.find_first_not_of("0123456789") == std::string::npos;
    if (number) port_ = static_cast<std::uint16_t>(std::strtoul(config.name.c_str(), nullptr, 10));
    if (config.name.empty() ||
        (number ? !rte_eth_dev_is_valid_port(port_)
                : rte_eth_dev_get_port_by_name(config.name.c_str(), &port_) != 0))
      throw base::SetupError("cannot open port " + config.requested +
                             ": this process has no such ethdev; create it first (for example with "
                             "rte_eth_from_rings) or name a device instead");
  } else {
    const bool exists = probed ? find_ethdev(config.name, port_)
                               : rte_eth_dev_get_port_by_name(config.name.c_str(), &port_) == 0;
    if (exists && !probed)
      throw base::SetupError("cannot open port " + config.requested +
                             ": it is busy, this process has " + config.name +
                             " open already; use another name, or port:" + config.name +
                             " for one that you created and that nobody uses");
    if (config.kind == PortKind::pci && rte_eal_has_pci() == 0)
      throw base::SetupError(
          "cannot open port " + config.requested +
          ": DPDK was started without the PCI bus; open the PCI port before any other");
    // A memif's driver talks to its peer through MemifControl: give the driver that socket instead.
    if (config.kind == PortKind::memif) {
      p.memif = std::make_unique<MemifControl>(config.requested, config.devargs);
      p.config.devargs = p.memif->driver_devargs();
    }
    if (const int result = exists ? 0 : rte_dev_probe(config.devargs.c_str()); result != 0)
      p.throw_cannot_open("DPDK does not take it", result,
                          "run `viaduct-info` to see what this machine lacks");
    p.attached = true;
    if (!find_ethdev(config.name, port_)) {
      remove_device(config.name);
      throw base::SetupError("cannot open port " + config.requested +
                             ": it is a device but not a network port; name a network device");
    }
  }
  // DPDK's ownership of ethdevs keeps a second copy of this library, or another part of the program
  // that honours it, from taking the same port.
  rte_eth_dev_owner owner{};
  rte_eth_dev_owner_new(&owner.id);
  std::strcpy(owner.name, "viaduct");
  if (const int result = rte_eth_dev_owner_set(port_, &owner); result != 0) {
    if (p.attached) remove_device(config.name);
    p.throw_cannot_open("it is busy, somebody in this process owns it", result,
                        "close that port or use another");
  }
  p.owner = owner.id;
  p.found = true;
  if (p.memif) p.memif->attach(port_);
}

// Decides the MTU, and makes the frames for it.
void Port::create_pool() {
  Parts& p = *parts_;
  static std::atomic<unsigned> serial{0};
  rte_eth_dev_info info{};
  if (const int result = rte_eth_dev_info_get(port_, &info); result != 0)
    p.throw_cannot_open("its limits are unknown", result, "use another driver");
  p.driver = info.driver_name;
  mtu_ = p.config.mtu;
  if (mtu_ == 0) {
    std::uint16_t has = RTE_ETHER_MTU;
    rte_eth_dev_get_mtu(port_, &has);
    mtu_ = has;
  }
  // Frames that wait in the receive queue cannot be sent. Too small a pool would stall, so refuse
  // it.
  const std::size_t held = p.config.kind == PortKind::af_xdp ? kXdpRing : p.config.descriptors;
  if (p.config.frames < held + kMinToSend)
    throw base::SetupError(
        "cannot open port " + p.config.requested + ": " + std::to_string(p.config.frames) +
        " frames are too few, its receive queue alone may hold " + std::to_string(held) +
        "; set VIADUCT_FRAMES to " + std::to_string(held + kMinToSend) + " or more");
  const std::size_t room = room_for(p.config, mtu_) + RTE_PKTMBUF_HEADROOM;
  // Mempool names are unique in the process. A process may have two copies of this code, which both
  // count from 0; but no two copies own the same port at a time.
  const std::string name = "viaduct_" + std::to_string(port_) + "_" + std::to_string(serial++);
  const int socket = rte_eal_has_hugepages() != 0 ? rte_eth_dev_socket_id(port_) : SOCKET_ID_ANY;
  // A zero-copy memif gives its peer the frames themselves, which lie in DPDK's memory for that.
  const bool copies = p.config.kind == PortKind::af_packet ||
                      (p.config.kind == PortKind::memif && !devarg(p.config.devargs, "zero-copy"));
  const PoolKind kind = p.config.kind == PortKind::af_xdp ? PoolKind::umem
                        : copies                          ? PoolKind::copied
                                                          : PoolKind::ordinary;
  pool_ = create_frame_pool(name, p.config.frames, static_cast<std::uint16_t>(room), socket, kind);
  if (pool_ == nullptr)
    throw base::SetupError(
        "cannot open port " + p.config.requested + ": no memory for " +
        std::to_string(p.config.frames) + " frames of " + std::to_string(room) + " bytes (" +
        rte_strerror(rte_errno) + "); " +
        (rte_eal_has_hugepages() != 0
             ? "raise `sysctl vm.nr_hugepages`, set VIADUCT_MEMORY=nohuge"
             : "start DPDK with more memory (its option -m, in VIADUCT_EAL if viaduct starts it)") +
        " or lower VIADUCT_FRAMES");
  pool_size_ = p.config.frames;
}

// Starts the port, with a receive interrupt if it is a PCI function whose driver offers one. A
// driver without one refuses that configuration, or the interrupt once the port runs. Then the port
// is started without.
void Port::start() {
  Parts& p = *parts_;
  if (p.config.kind == PortKind::pci && config_vars().on("VIADUCT_RX_INTERRUPT")) {
    try {
      bring_up(true);
      p.receive_interrupt = ReceiveInterrupt(port_);
    } catch (const base::SetupError&) {
    }
    if (p.started && !p.receive_interrupt) {
      rte_eth_dev_stop(port_);
      p.started = false;
    }
  }
  if (!p.started) bring_up(false);

  rte_ether_addr mac{};
  if (const int result = rte_eth_macaddr_get(port_, &mac))
    p.throw_cannot_open("it has no address", result, "use another driver");
  std::copy(std::begin(mac.addr_bytes), std::end(mac.addr_bytes), address_.bytes.begin());
  if (address_ == link::Address{}) address_ = derived_address(port_);
}

// Takes the ethdev from attached to running: configure, receive queue, transmit queue, start.
void Port::bring_up(bool interrupt) {
  Parts& p = *parts_;
  rte_eth_dev_info info{};
  rte_eth_dev_info_get(port_, &info);
  rte_eth_conf conf{};
  conf.intr_conf.rxq = interrupt ? 1 : 0;
  if (!ignores_mtu(p.config.kind, p.driver)) {
    if (info.max_mtu != 0 && mtu_ > info.max_mtu)
      throw base::SetupError("cannot open port " + p.config.requested + ": MTU " +
                             std::to_string(mtu_) + " is larger than its driver's " +
                             std::to_string(info.max_mtu) +
                             "; set VIADUCT_MTU=" + std::to_string(info.max_mtu) + " or less");
    conf.rxmode.mtu = static_cast<std::uint32_t>(mtu_);
  }
  if (const int result = rte_eth_dev_configure(port_, 1, 1, &conf); result != 0)
    p.throw_cannot_open(result == -EBUSY
                            ? "it is busy, somebody has started it already"
                            : "its driver refuses one queue pair of MTU " + std::to_string(mtu_),
                        result,
                        result == -EBUSY ? "call rte_eth_dev_stop on it first"
                                         : "set VIADUCT_MTU to what its network carries");
  auto receive = static_cast<std::uint16_t>(p.config.descriptors);
  std::uint16_t send = kSendDescriptors;
  rte_eth_dev_adjust_nb_rx_tx_desc(port_, &receive, &send);
  const auto socket = static_cast<unsigned>(std::max(0, rte_eth_dev_socket_id(port_)));
  const bool xdp = p.config.kind == PortKind::af_xdp;
  // The driver opens its AF_XDP socket in here, and XdpSockets notes which one that is.
  if (xdp) p.xdp.begin();
  const int receiving = rte_eth_rx_queue_setup(port_, 0, receive, socket, nullptr, pool_);
  if (xdp) p.xdp.end();
  if (receiving != 0) {
    try {
      p.throw_cannot_open("no receive queue", receiving,
                          "change VIADUCT_RX_DESCRIPTORS or VIADUCT_MTU");
    } catch (const base::SetupError& why) {
      if (xdp) throw XdpQueueRefused(why);
      throw;
    }
  }
  if (const int result = rte_eth_tx_queue_setup(port_, 0, send, socket, nullptr))
    p.throw_cannot_open("no transmit queue", result, "use another driver");
  if (const int result = rte_eth_dev_start(port_))
    p.throw_cannot_open("it does not start", result,
                        "run `viaduct-info` to see what this machine lacks");
  p.started = true;
  receive_capacity_ = p.config.receive_capacity != 0 ? p.config.receive_capacity : receive;
}

// Recording, injected faults, and what sleep() waits on. AF_PACKET takes the slow path to transmit
// because its ring needs care when the kernel refuses to send (quirks/af_packet_ring.hpp).
void Port::prepare_slow_path(const base::FaultSpec& faults) {
  Parts& p = *parts_;
  if (std::string path = config_vars().text("VIADUCT_PCAP"); !path.empty())
    p.recording = std::make_unique<PcapWriter>(recording_path(std::move(path), p.config.name));
  p.queue = DeviceQueue(port_, p.recording.get());
  const base::FaultSpec both =
      combined(faults, base::FaultSpec::parse(config_vars().text("VIADUCT_FAULTS")));
  if (both.any()) p.faults = std::make_unique<PortFaults>(both, pool_);
  slow_path_ = p.faults != nullptr || p.recording != nullptr;
  if (p.config.kind == PortKind::af_packet)
    p.packet_ring = PacketRing(
        p.config.interface,
        std::strtoul(devarg(p.config.devargs, "framesz").value_or("2048").c_str(), nullptr, 10),
        receive_capacity_);
  slow_transmit_ = slow_path_ || p.packet_ring;
  p.receive_fds = p.xdp.descriptors();
  if (p.packet_ring.socket() >= 0) p.receive_fds.push_back(p.packet_ring.socket());
}

Port::~Port() {
  close();
}

// Undoes as much as has been done: the constructor calls it for a port that was opened only in
// part. Frames are released first, then the device is stopped, and its pool is freed last.
void Port::close() noexcept {
  Parts& p = *parts_;
  const std::lock_guard lock(setup_lock());
  const LogCapture log;
  p.faults.reset();
  if (p.found) {
    rte_eth_dev_info info{};
    const bool known = rte_eth_dev_info_get(port_, &info) == 0;
    p.receive_interrupt = {};
    if (p.started) {
      drain(port_);
      rte_eth_dev_stop(port_);
    }
    rte_eth_dev_owner_delete(p.owner);
    if (p.attached) {
      rte_eth_dev_close(port_);
      if (known && info.device != nullptr) rte_dev_remove(info.device);
    }
  }
  p.xdp.close_left_over();
  // AF_XDP's driver never returns the frames that it keeps for receiving, so its pool would never
  // be full. With its sockets closed nothing uses those frames, and the pool can go at once.
  if (pool_ != nullptr) {
    if (p.config.kind == PortKind::af_xdp) {
      rte_mempool_free(pool_);
    } else {
      free_when_full(pool_);
    }
  }
  pool_ = nullptr;
}

std::uint16_t Port::transmit_slowly(Frame** burst, std::uint16_t count) {
  Parts& p = *parts_;
  errno = 0;
  const std::uint16_t taken =
      p.faults ? p.faults->transmit(burst, count, p.queue) : p.queue.transmit(burst, count);
  // AF_PACKET's driver reports all frames as taken, whatever its system call returned. Only errno
  // tells that the kernel refused.
  if (errno != 0 && p.packet_ring) [[unlikely]]
    p.packet_ring.on_send_refused(now());
  return taken;
}

std::uint16_t Port::receive_slowly(Frame** burst, std::uint16_t count) {
  Parts& p = *parts_;
  if (p.faults) p.faults->poll(p.queue);
  const std::uint16_t received = p.queue.receive(burst, count);
  if (received == 0 && --empty_polls_ == 0) housekeeping();
  return received;
}

// Ask for an interrupt first, then look for frames, then wait: a frame between a look and a later
// request would not wake us. Sockets need no such order, because they stay readable.
bool Port::sleep(base::Duration most, int also) {
  const Parts& p = *parts_;
  if (p.idle) p.idle();
  if (p.receive_interrupt) {
    const bool frame_waits = !p.receive_interrupt.unmask();
    const int event = p.receive_interrupt.event();
    const bool slept = frame_waits || wait_readable({&event, 1}, also, most);
    p.receive_interrupt.mask();
    return slept;
  }
  if (p.memif == nullptr) return wait_readable(p.receive_fds, also, most);
  if (!p.interrupt) return false;
  // The next empty poll looks whether the peer is still there: with sleeps in between, thousands of
  // polls could take hours.
  empty_polls_ = 1;
  p.interrupt.unmask();
  // A race: the sender fills a slot, then reads the flags; we write the flags, then read the slots.
  // The system call takes longer than a store needs to become visible. So either the sender sees
  // that we ask and rings, or we see the slot that it has filled.
  ::sched_yield();
  const int event = p.interrupt.event();
  const bool slept = incoming_.any() || wait_readable({&event, 1}, also, most);
  p.interrupt.mask();
  return slept;
}

// Moves a memif's connection on, outside of bursts, as only the owner thread may. When the peer has
// come or gone, the rings that the fast path looks at change.
void Port::housekeeping() {
  if (parts_->idle) parts_->idle();
  MemifControl* const memif = parts_->memif.get();
  empty_polls_ = kPollsConnected;
  if (memif == nullptr) return;
  const bool was_connected = memif->connected();
  memif->progress(now());
  if (memif->connected() != was_connected) {
    outgoing_ = memif->outgoing();
    incoming_ = memif->incoming();
    parts_->interrupt = memif->interrupt();
  }
  // A look at the control socket costs a fraction of a microsecond: rarely worth it once connected.
  if (!memif->connected()) empty_polls_ = kPollsDisconnected;
}

void Port::on_idle(std::function<void()> call) {
  parts_->idle = std::move(call);
}

std::string Port::driver() const {
  return parts_->driver;
}

bool Port::link_up() const {
  rte_eth_link link{};
  return rte_eth_link_get_nowait(port_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

std::size_t Port::frames_in_use() const {
  return rte_mempool_in_use_count(pool_);
}

const base::FaultCounts* Port::fault_counts() const {
  return parts_->faults ? &parts_->faults->counts() : nullptr;
}

}  // namespace viaduct::port
