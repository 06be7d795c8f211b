// Layer packet: the kernel's packet sockets, on which DPDK's af_packet driver stands, with as
// little above them as possible: the most that a port on such an interface could reach. Unreliable.
// Frames arrive in a mapped ring (PACKET_RX_RING, TPACKET_V2); a single frame is sent by send(),
// streams from a mapped ring, 32 frames a call. Not over a DPDK port: an af_packet port on the
// interface is closed meanwhile (side.hpp).
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>

#include "tools/pingpong/error.hpp"
#include "tools/pingpong/layers/raw_frame.hpp"
#include "tools/pingpong/layers/transport.hpp"
#include "tools/pingpong/socket.hpp"

namespace viaduct::pingpong {

namespace {

// The network interface that has this side's IPv4 address.
struct Interface {
  std::string name;
  int index;
  std::size_t mtu;
  link::Address address;
};

link::Address hardware_address(const sockaddr& from) {
  link::Address address;
  std::memcpy(address.bytes.data(), from.sa_data, address.bytes.size());
  return address;
}

std::string interface_name(const std::string& ip) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw system_failure("cannot list the network interfaces");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  const in_addr wanted = socket_address(ip, 0).sin_addr;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next)
    if (i->ifa_addr != nullptr && i->ifa_addr->sa_family == AF_INET &&
        reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr.s_addr == wanted.s_addr)
      return i->ifa_name;
  throw Failure("no network interface of this host has the address " + ip);
}

Interface interface_with(const std::string& ip) {
  Interface out{interface_name(ip), 0, 0, {}};
  const UniqueFd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  out.name.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
  const auto ask = [&](unsigned long what) {
    if (::ioctl(any.get(), what, &request) != 0)
      throw system_failure("cannot learn about the interface " + out.name);
  };
  ask(SIOCGIFINDEX), out.index = request.ifr_ifindex;
  ask(SIOCGIFMTU), out.mtu = static_cast<std::size_t>(request.ifr_mtu);
  ask(SIOCGIFHWADDR), out.address = hardware_address(request.ifr_hwaddr);
  return out;
}

// A packet socket, bound to no interface yet. PACKET_QDISC_BYPASS: frames go to the driver without
// passing the queueing discipline, as with DPDK's driver.
UniqueFd packet_socket() {
  UniqueFd out(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!out) throw system_failure("no packet socket", "run as root or with CAP_NET_RAW");
  set_option(out.get(), SOL_PACKET, PACKET_VERSION, TPACKET_V2, "PACKET_VERSION");
  set_option(out.get(), SOL_PACKET, PACKET_QDISC_BYPASS, 1, "PACKET_QDISC_BYPASS");
  return out;
}

// `protocol`: the EtherType that the socket receives, in network order; 0: nothing.
void bind_to(const UniqueFd& socket, const Interface& interface, std::uint16_t protocol) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = protocol;
  address.sll_ifindex = interface.index;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    throw system_failure("cannot use a packet socket on " + interface.name);
}

// A ring of frames that the kernel and this process share. The word tp_status of a slot says whose
// it is; passing a slot with release order makes its contents visible to the kernel, and reading
// the word with acquire order makes the kernel's visible here.
class FrameRing {
 public:
  // `direction`: PACKET_RX_RING or PACKET_TX_RING. `max_frame_bytes`: of one frame. Slots are a
  // power of two, so that they fill the ring's blocks.
  FrameRing(const UniqueFd& socket, int direction, std::size_t max_frame_bytes)
      : slot_bytes_(std::bit_ceil(max_frame_bytes + kBesides)) {
    const auto slot = static_cast<unsigned>(slot_bytes_);
    const tpacket_req ring{kSlotsOfBlock * slot, kSlots / kSlotsOfBlock, slot, kSlots};
    if (::setsockopt(socket.get(), SOL_PACKET, direction, &ring, sizeof(ring)) != 0)
      throw system_failure("no ring of frames");
    void* const at = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, socket.get(), 0);
    if (at == MAP_FAILED) throw system_failure("cannot map a ring of frames");
    start_ = static_cast<std::byte*>(at);
  }
  ~FrameRing() { ::munmap(start_, bytes()); }
  FrameRing(const FrameRing&) = delete;
  FrameRing& operator=(const FrameRing&) = delete;

  // The state of the next slot: TP_STATUS_...
  std::uint32_t status() const { return word().load(std::memory_order_acquire); }
  tpacket2_hdr& header() const {
    return *reinterpret_cast<tpacket2_hdr*>(start_ + next_ * slot_bytes_);
  }
  // Gives the slot to the kernel and goes on to the next one.
  void pass(std::uint32_t status) {
    word().store(status, std::memory_order_release);
    next_ = (next_ + 1) % kSlots;
  }

 private:
  static constexpr unsigned kSlots = 512, kSlotsOfBlock = 8;
  static constexpr std::size_t kBesides = 128;  // what the kernel puts in front of a frame

  std::size_t bytes() const { return kSlots * slot_bytes_; }
  std::atomic_ref<std::uint32_t> word() const {
    return std::atomic_ref<std::uint32_t>(header().tp_status);
  }

  const std::size_t slot_bytes_;
  std::byte* start_;
  std::size_t next_ = 0;
};

class PacketSocket : public UnreliableMessages {
 public:
  explicit PacketSocket(const TurnConfig& config)
      : UnreliableMessages(config.client),
        interface_(interface_with(config.ip)),
        head_(raw_head(interface_.address, peer_of(config), PacketKind::data, config.turn)) {
    data_.resize(interface_.mtu);
    frame_.resize(sizeof(RawHead) + interface_.mtu);
    bind_to(socket_, interface_, kRawEtherType);
    bind_to(stream_socket_, interface_, 0);
  }

  std::string endpoint_address() const { return interface_.address.text(); }
  std::string_view failure() const { return failure_; }

  void begin(const Point& point) {
    begin_messages(point.bytes, interface_.mtu - sizeof(PacketHead));
  }

  void poll() {
    for (unsigned i = 0; i < kBurst && (in_.status() & TP_STATUS_USER) != 0; ++i) {
      const tpacket2_hdr& frame = in_.header();
      take_frame({reinterpret_cast<const std::byte*>(&frame) + frame.tp_mac, frame.tp_snaplen});
      in_.pass(TP_STATUS_KERNEL);
    }
  }

  bool try_send() {
    number_message();
    for (; next_ < split_.packets; ++next_)
      if (!send_one(PacketKind::data, split_.size(next_))) return false;
    next_ = 0;
    return true;
  }

  std::uint64_t stream(std::uint64_t max_messages) {
    std::uint64_t completed = 0;
    for (unsigned i = 0; i < kBurst && completed < max_messages; ++i) {
      if (out_.status() != TP_STATUS_AVAILABLE) break;
      tpacket2_hdr& frame = out_.header();
      frame.tp_len = write(reinterpret_cast<std::byte*>(&frame) + kFrameOffset, PacketKind::data,
                           split_.size(next_));
      out_.pass(TP_STATUS_SEND_REQUEST);
      if (advance()) ++completed;
    }
    if (::send(stream_socket_.get(), nullptr, 0, 0) < 0) check_errno();
    return completed;
  }

  bool try_finish() { return send_one(PacketKind::finish, 0); }

 private:
  static constexpr unsigned kBurst = 32;
  // Where in a slot the kernel looks for a frame that is to be sent.
  static constexpr std::size_t kFrameOffset = TPACKET2_HDRLEN - sizeof(sockaddr_ll);

  // The client sends to the server's endpoint address. The server learns the client's from its
  // frames.
  static link::Address peer_of(const TurnConfig& config) {
    if (!config.client) return {};
    const auto address = link::Address::parse(config.endpoint_address);
    if (!address) throw Failure("'" + config.endpoint_address + "' is not the address of a port");
    return *address;
  }

  // Builds a frame of the current message at `to`, with data copied from where the program would
  // have it. Returns the length of the frame.
  std::uint32_t write(std::byte* to, PacketKind kind, std::uint16_t payload) {
    head_.packet.kind = kind;
    head_.packet.length = payload;
    head_.packet.message = message_;
    std::memcpy(to, &head_, sizeof(head_));
    std::memcpy(to + sizeof(head_), data_.data(), payload);
    return static_cast<std::uint32_t>(sizeof(head_) + payload);
  }

  bool send_one(PacketKind kind, std::uint16_t payload) {
    const std::uint32_t length = write(frame_.data(), kind, payload);
    if (::send(socket_.get(), frame_.data(), length, 0) >= 0) return true;
    check_errno();
    return false;
  }

  void take_frame(std::span<const std::byte> frame) {
    RawHead head;
    if (frame.size() < sizeof(head)) return;
    std::memcpy(&head, frame.data(), sizeof(head));
    if (head.packet.turn != head_.packet.turn) return;
    // data_ holds MTU bytes, and the interface may let through longer frames.
    const std::size_t payload =
        std::min({std::size_t{head.packet.length}, frame.size() - sizeof(head), data_.size()});
    std::memcpy(data_.data(), frame.data() + sizeof(head), payload);
    if (take(head.packet, payload) && !client_) std::memcpy(head_.to, head.from, sizeof(head.from));
  }

  void check_errno() {
    if (errno != EAGAIN && errno != ENOBUFS && errno != EINTR) failure_ = std::strerror(errno);
  }

  const Interface interface_;
  RawHead head_;
  // Two sockets, because a socket that has a ring to send from sends from nowhere else.
  const UniqueFd socket_ = packet_socket(), stream_socket_ = packet_socket();
  FrameRing in_{socket_, PACKET_RX_RING, sizeof(RawHead) + interface_.mtu};
  FrameRing out_{stream_socket_, PACKET_TX_RING, sizeof(RawHead) + interface_.mtu};
  std::string failure_;
  std::vector<std::byte> data_, frame_;  // the program's data; a frame for send()
};

const RegisterLayer<PacketSocket> register_packet{
    90,
    {"packet", "the kernel's packet sockets, unreliable: the most that an af_packet port could do",
     Over::kernel}};

}  // namespace

}  // namespace viaduct::pingpong
