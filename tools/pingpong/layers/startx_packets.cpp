// Layers startx-pio and startx-queue: messages in StarT-X packets of 8 to 88 bytes, by programmed
// I/O or through the cacheable queues. A larger message is several packets, one after the other.
#include "tools/pingpong/layers/startx.hpp"
#include "tools/pingpong/layers/transport.hpp"

namespace viaduct::pingpong {

namespace {

using startx::Priority;

// How the two mechanisms send and receive one packet. All data goes with low priority.
//
// Programmed I/O: each packet leaves at once.
struct Pio {
  using Niu = StartxSide::Niu;
  explicit Pio(link::PeerId to) : to_(to) {
    packet_.tag = kTagData;
    std::memset(packet_.payload, 0x5a, sizeof(packet_.payload));
  }
  bool try_send(Niu& niu, std::uint8_t words, link::Time now) {
    packet_.words = words;
    return niu.try_send(to_, Priority::low, packet_, now) == link::SendStatus::sent;
  }
  static const startx::Received* peek(Niu& niu) { return niu.peek(Priority::low); }
  static void pop(Niu& niu) { niu.pop(Priority::low); }

 private:
  link::PeerId to_;
  startx::Packet packet_;
};

// Cacheable queues: packets are written into the queue and leave in a batch with the next poll.
struct Queue {
  using Niu = StartxSide::Niu;
  explicit Queue(link::PeerId to) : to_(to) { std::memset(payload_, 0x5a, sizeof(payload_)); }
  bool try_send(Niu& niu, std::uint8_t words, link::Time) {
    startx::Outgoing* out = niu.reserve(Priority::low);
    if (out == nullptr) return false;
    out->to = to_;
    out->packet.tag = kTagData;
    out->packet.words = words;
    out->packet.order = link::Order::ordered;
    std::memcpy(out->packet.payload, payload_, words * sizeof(std::uint32_t));
    niu.commit(Priority::low);
    return true;
  }
  static const startx::Received* peek(Niu& niu) { return niu.queue_peek(Priority::low); }
  static void pop(Niu& niu) { niu.queue_pop(Priority::low); }

 private:
  link::PeerId to_;
  std::uint32_t payload_[startx::kMaxWords];
};

template <class Mechanism>
class StartxPackets {
 public:
  static constexpr bool kLossy = false;

  explicit StartxPackets(const TurnConfig& config) : side_(config), mechanism_(link::PeerId{}) {}

  bool ready() const { return side_.ready(); }
  // The link is idle and no packet waits in the queue above it.
  bool drained() const { return side_.drained() && queue_empty(); }
  std::string_view failure() const { return side_.failure(); }

  void begin(const Point& point) {
    bytes_ = point.bytes;
    packets_ = Packets(point.bytes);
    mechanism_ = Mechanism(side_.peer());
  }

  void poll() {
    now_ = port::now();
    side_.poll(now_);
    while (Mechanism::peek(side_.niu()) != nullptr) {
      Mechanism::pop(side_.niu());
      if (++received_in_message_ == packets_.count) {
        received_in_message_ = 0;
        ++arrived_;
      }
    }
  }

  // Uses the time of the poll that brought the message which this answers: reading the clock once
  // more would delay the answer.
  bool try_send() {
    while (next_ < packets_.count) {
      if (!send_one(now_)) return false;
    }
    next_ = 0;
    flush(now_);
    return true;
  }

  std::uint64_t stream(std::uint64_t max_messages) {
    const link::Time now = port::now();
    std::uint64_t completed = 0;
    for (std::uint32_t i = 0; i < kBurst && completed < max_messages && send_one(now); ++i) {
      if (next_ == packets_.count) {
        next_ = 0;
        ++completed;
      }
    }
    side_.poll(now);
    return completed;
  }

  bool try_finish() {
    const link::Time now = port::now();
    while (next_ != 0) {  // the rest of a message that the end of the time has cut
      if (!send_one(now)) return false;
      if (next_ == packets_.count) next_ = 0;
    }
    return side_.try_finish(sent_, now);
  }

  std::uint64_t arrived() const { return arrived_; }
  std::uint64_t bytes() const { return arrived_ * bytes_; }
  bool finished() const { return side_.finished(arrived_ * packets_.count + received_in_message_); }

 private:
  static constexpr std::uint32_t kBurst = 32;

  bool send_one(link::Time now) {
    if (!mechanism_.try_send(side_.niu(), packets_.words(next_), now)) return false;
    ++next_;
    ++sent_;
    return true;
  }
  // Committed packets leave with a poll; PIO ones have left.
  void flush(link::Time now) {
    if constexpr (std::same_as<Mechanism, Queue>) side_.poll(now);
  }
  bool queue_empty() const {
    return std::same_as<Mechanism, Pio> || side_.niu().queued(Priority::low) == 0;
  }

  StartxSide side_;
  Mechanism mechanism_;
  Packets packets_;
  link::Time now_{};  // of the last poll
  std::size_t bytes_ = 0;
  std::uint32_t next_ = 0;  // packet of the current message to be sent next
  std::uint32_t received_in_message_ = 0;
  std::uint64_t sent_ = 0, arrived_ = 0;
};

const RegisterLayer<StartxPackets<Pio>> register_startx_pio{
    20, {"startx-pio", "StarT-X programmed I/O: every packet leaves at once; lowest latency"}};
const RegisterLayer<StartxPackets<Queue>> register_startx_queue{
    30, {"startx-queue", "StarT-X cacheable queues: packets leave in batches; highest rate"}};

}  // namespace

}  // namespace viaduct::pingpong
