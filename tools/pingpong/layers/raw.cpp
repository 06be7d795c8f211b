// Layer raw: bare Ethernet frames over the ethdev, the yardstick for everything above it. No
// reliability, no flow control, and no payload is written or read: the least a DPDK program can do.
// raw-fetch is the same with the prefetches that the link makes on a memif (drivers/port,
// memif_rings.hpp), so that the cost of the link itself shows beside raw-fetch.
#include <algorithm>

#include "tools/pingpong/layers/raw_frame.hpp"
#include "tools/pingpong/layers/transport.hpp"

namespace viaduct::pingpong {

namespace {

using port::Port;

template <bool kFetch>
class Raw : public UnreliableMessages {
 public:
  explicit Raw(const TurnConfig& config)
      : UnreliableMessages(config.client),
        port_(*config.port),
        mtu_(config.mtu),
        head_(raw_head(config.port->address(), config.peer, PacketKind::data, config.turn)) {}
  ~Raw() {
    while (held_ > 0) port::Port::release(burst_[--held_]);
  }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  std::string_view failure() const { return {}; }

  void begin(const Point& point) { begin_messages(point.bytes, mtu_ - sizeof(PacketHead)); }

  void poll() {
    // As the link does: to ask is cheaper than a receive() that finds nothing.
    if (kFetch && !port_.may_receive()) return;
    port::Port::Frame* frames[kBurst];
    const std::uint16_t n = port_.receive(frames, kBurst);
    if (kFetch && n > 0) port_.expect_transmit();
    for (std::uint16_t i = 0; i < n; ++i) {
      take_frame(frames[i]);
      port::Port::release(frames[i]);
    }
  }

  // Builds the frames of a message and hands them over, burst after burst. Frames that the device
  // does not take stay in burst_ for the next call; `next_` counts frames that were built.
  bool try_send() {
    number_message();
    do {
      while (next_ < split_.packets && held_ < kBurst) {
        if (!add(PacketKind::data, split_.size(next_))) break;
        ++next_;
      }
      if (held_ == 0 || !flush()) return false;
    } while (next_ < split_.packets);
    next_ = 0;
    return true;
  }

  std::uint64_t stream(std::uint64_t max_messages) {
    std::uint64_t completed = 0;
    while (held_ < kBurst && completed < max_messages) {
      if (!add(PacketKind::data, split_.size(next_))) break;
      if (advance()) ++completed;
    }
    // A port without room may need a poll to get some (injected faults, a memif's peer).
    if (!flush()) poll();
    return completed;
  }

  bool try_finish() { return flush() && add(PacketKind::finish, 0) && flush(); }

 private:
  static constexpr std::uint16_t kBurst = 32;

  void take_frame(port::Port::Frame* frame) {
    const auto* head = reinterpret_cast<const RawHead*>(port::Port::bytes(frame));
    if (port::Port::length(frame) < sizeof(RawHead) || head->ether_type != kRawEtherType ||
        head->packet.turn != head_.packet.turn) [[unlikely]]
      return;
    take(head->packet, port::Port::length(frame) - sizeof(RawHead));
  }

  // Appends a frame to the burst; false when the pool is empty.
  bool add(PacketKind kind, std::uint16_t payload) {
    port::Port::Frame* frame = port_.allocate();
    if (frame == nullptr) [[unlikely]]
      return false;
    auto* head = reinterpret_cast<RawHead*>(port::Port::bytes(frame));
    *head = head_;
    head->packet.kind = kind;
    head->packet.length = payload;
    head->packet.message = message_;
    port::Port::set_length(frame, sizeof(RawHead) + payload);
    burst_[held_++] = frame;
    return true;
  }

  // Hands over the burst. False: the device has not taken all of it, and the rest stays.
  bool flush() {
    const std::uint16_t n = port_.transmit(burst_, held_);
    if (n < held_) [[unlikely]]
      std::copy(burst_ + n, burst_ + held_, burst_);
    held_ = static_cast<std::uint16_t>(held_ - n);
    return held_ == 0;
  }

  port::Port& port_;
  const std::size_t mtu_;
  RawHead head_;
  std::uint16_t held_ = 0;  // frames of the burst that the device has not taken yet
  port::Port::Frame* burst_[kBurst];
};

const RegisterLayer<Raw<false>> register_raw{
    10, {"raw", "bare Ethernet frames over the DPDK port, unreliable: the yardstick"}};
const RegisterLayer<Raw<true>> register_raw_fetching{
    11, {"raw-fetch", "raw with the prefetches that the link makes on a memif"}};

}  // namespace

}  // namespace viaduct::pingpong
