// Packets in and out: PIO, the cacheable queues, and the sorting of received messages into receive
// queues. Messages of remote DMA are passed on to rdma.cpp; link/ makes all of it reliable.
#include "drivers/startx_emul/niu.hpp"

#include <bit>

#include "drivers/port/port.hpp"
#include "drivers/sim/sim_network.hpp"
#include "drivers/startx_emul/payload.hpp"

namespace viaduct::startx {

namespace {

using link::Incoming;
using link::Lane;
using link::RxResult;
using link::SendStatus;

// Packets of one transmit queue that one poll sends at most, so that a poll stays short and the
// owner comes to receive.
constexpr std::size_t kDrainBurst = 256;

constexpr std::size_t kTagBytes = sizeof(std::uint32_t);
constexpr std::size_t kMinBytes = kMinWords * sizeof(std::uint32_t);
constexpr std::size_t kMaxBytes = kMaxWords * sizeof(std::uint32_t);

constexpr Lane lane_of(Priority p) {
  return p == Priority::high ? Lane::high : Lane::low;
}

// The counters of the mechanisms lie in the order pio high, pio low, queue high, queue low.
constexpr Counter counter_of(Counter first, std::size_t mechanism, std::size_t priority) {
  return static_cast<Counter>(static_cast<std::size_t>(first) + 2 * mechanism + priority);
}
static_assert(counter_of(Counter::pio_high_sent, 1, 1) == Counter::queue_low_sent);
static_assert(counter_of(Counter::pio_high_received, 1, 1) == Counter::queue_low_received);

std::size_t checked_depth(std::size_t depth) {
  if (!std::has_single_bit(depth) || depth > kMaxQueueDepth)
    throw base::SetupError("a StarT-X queue cannot have " + std::to_string(depth) +
                           " entries: queue_depth must be a power of two up to " +
                           std::to_string(kMaxQueueDepth));
  return depth;
}

}  // namespace

template <link::PacketDevice D>
Niu<D>::Niu(Link& link, const NiuConfig& config)
    : link_(link),
      pio_{base::RingBuffer<Received>(checked_depth(config.queue_depth)),
           base::RingBuffer<Received>(config.queue_depth)},
      queue_{base::RingBuffer<Received>(config.queue_depth),
             base::RingBuffer<Received>(config.queue_depth)},
      transmit_{base::RingBuffer<Outgoing>(config.queue_depth),
                base::RingBuffer<Outgoing>(config.queue_depth)},
      events_(link.config().max_peers),
      rdma_(link, config.rdma, counters_) {
  link_.attach(link::Protocol::startx, this);
}

template <link::PacketDevice D>
Niu<D>::~Niu() {
  link_.attach(link::Protocol::startx, nullptr);
}

template <link::PacketDevice D>
inline SendStatus Niu<D>::send(link::PeerId to, Priority priority, Mechanism mechanism,
                               link::Order order, std::span<const std::byte> head,
                               std::span<const std::byte> body, link::Urgency urgency,
                               link::Time now) {
  // One comparison for both limits: below the minimum the unsigned difference wraps to a huge
  // number.
  if (head.size() + body.size() - kTagBytes - kMinBytes > kMaxBytes - kMinBytes)
    return SendStatus::too_big;
  const SendStatus status =
      link_.try_send(to, lane_of(priority), order,
                     message_type(mechanism == Mechanism::pio ? Kind::pio : Kind::queue), head,
                     body, urgency, now);
  if (status == SendStatus::sent) [[likely]]
    counters_.add(
        counter_of(Counter::pio_high_sent, static_cast<std::size_t>(mechanism), index(priority)));
  return status;
}

template <link::PacketDevice D>
SendStatus Niu<D>::try_send(link::PeerId to, Priority priority, const Packet& packet,
                            link::Urgency urgency, link::Time now) {
  return send(to, priority, Mechanism::pio, packet, urgency, now);
}

template <link::PacketDevice D>
SendStatus Niu<D>::try_send(link::PeerId to, Priority priority, std::span<const std::uint32_t> head,
                            std::span<const std::byte> body, link::Time now) {
  if (body.size() % sizeof(std::uint32_t) != 0) [[unlikely]]
    return SendStatus::too_big;
  return send(to, priority, Mechanism::pio, link::Order::ordered, std::as_bytes(head), body,
              link::Urgency::now, now);
}

template <link::PacketDevice D>
void Niu<D>::drain_queue(Priority priority, link::Time now) {
  base::RingBuffer<Outgoing>& queue = transmit_[index(priority)];
  for (std::size_t n = 0; n < kDrainBurst; ++n) {
    const Outgoing* entry = queue.front();
    if (entry == nullptr) return;
    switch (send(entry->to, priority, Mechanism::queue, entry->packet, link::Urgency::batch, now)) {
      case SendStatus::sent: break;
      // The entry stays first: the queue is a FIFO.
      case SendStatus::try_again: return counters_.add(Counter::transmit_waits);
      case SendStatus::too_big: counters_.add(Counter::drop_outgoing); break;
      case SendStatus::peer_down: counters_.add(Counter::drop_peer_down); break;
    }
    queue.pop();
  }
}

template <link::PacketDevice D>
RxResult Niu<D>::on_message(const Incoming& message) {
  if (message.kind > static_cast<std::uint8_t>(Kind::queue)) [[unlikely]] {
    if (message.kind < kKinds) return rdma_.on_message(message);
    counters_.add(Counter::drop_kind);
    return RxResult::consumed;
  }
  if (message.lane == Lane::bulk) [[unlikely]] {
    counters_.add(Counter::drop_lane);
    return RxResult::consumed;
  }
  // A message of less than a tag wraps to a huge number of words, and is dropped with the others.
  const std::size_t words = (message.bytes.size() - kTagBytes) / sizeof(std::uint32_t);
  if (message.bytes.size() % sizeof(std::uint32_t) != 0 || words < kMinWords || words > kMaxWords)
      [[unlikely]] {
    counters_.add(Counter::drop_length);
    return RxResult::consumed;
  }
  const auto priority = static_cast<std::size_t>(message.lane);
  base::RingBuffer<Received>& queue =
      message.kind == static_cast<std::uint8_t>(Kind::pio) ? pio_[priority] : queue_[priority];
  // A full queue answers busy: the link keeps the message and grants the sender no more credit.
  Received* entry = queue.back();
  if (entry == nullptr) [[unlikely]] {
    counters_.add(Counter::receive_queue_full);
    return RxResult::backpressure;
  }
  entry->from = message.from;
  std::memcpy(&entry->tag, message.bytes.data(), kTagBytes);
  entry->words = static_cast<std::uint8_t>(words);
  entry->order = message.order;
  // The smallest packets are the most frequent ones: a copy of known length needs no call.
  const std::byte* payload = message.bytes.data() + kTagBytes;
  std::memcpy(entry->payload, payload, kMinBytes);
  if (words > kMinWords)
    copy_payload(entry->payload + kMinWords, payload + kMinBytes,
                 (words - kMinWords) * sizeof(std::uint32_t));
  queue.push();
  counters_.add(counter_of(Counter::pio_high_received, message.kind, priority));
  return RxResult::consumed;
}

template <link::PacketDevice D>
void Niu<D>::remember(const Event& event) {
  if (!events_.remember(event)) counters_.add(Counter::events_lost);
}

template <link::PacketDevice D>
void Niu<D>::on_peer_up(link::PeerId peer, const link::Address& address) {
  remember({Event::Kind::peer_up, peer, address, {}});
}

template <link::PacketDevice D>
void Niu<D>::on_peer_down(link::PeerId peer, const link::Address& address,
                          link::DownReason reason) {
  rdma_.on_peer_down(peer);
  remember({Event::Kind::peer_down, peer, address, reason});
}

// The two packet devices: a DPDK port, and a port of the simulated network that tests run on.
template class Niu<port::Port>;
template class Niu<sim::SimPort>;

}  // namespace viaduct::startx
