// The StarT-X network interface unit (NIU) on Ethernet: two message mechanisms and remote DMA, each
// in two priorities where the original had them (facts in docs/startx.md).
//
//  * PIO: try_send puts one packet on the wire before it returns. Lowest latency. While four frames
//    of that priority are unacknowledged, packets share a frame that leaves with the next poll.
//  * Cacheable queues: packets are written into a transmit queue in memory, leave in batches at the
//    next poll, and are read in place from a receive queue in memory. Highest message rate.
//  * RDMA: memory to memory between registered regions; see rdma.hpp.
//
// High priority may delay low, never the reverse: each priority has its own queues, lane, window
// and credits. A full receive queue pushes back on its senders; nothing is dropped.
//
// Thread rule: that of the link; one owner thread. No call blocks.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "drivers/link/event_queue.hpp"
#include "drivers/link/link.hpp"
#include "drivers/startx_emul/packet.hpp"
#include "drivers/startx_emul/rdma.hpp"

namespace viaduct::startx {

struct NiuConfig {
  std::size_t queue_depth = 1024;  // packets in each receive and transmit queue; a power of two
  RdmaConfig rdma;
};
inline constexpr std::size_t kMaxQueueDepth = 1u << 20;

using link::Event;

template <link::PacketDevice Device>
class Niu final : private link::MessageSink {
 public:
  using Link = link::Link<Device>;
  using Outgoing = startx::Outgoing;

  // Attaches itself to the link, which must outlive it. Throws SetupError on an impossible
  // configuration.
  Niu(Link& link, const NiuConfig& config);
  ~Niu();
  Niu(const Niu&) = delete;
  Niu& operator=(const Niu&) = delete;

  // PIO. `sent`, or why not (link::SendStatus); too_big also for a word count outside 2..22.
  // Urgency::batch: the packet shares a frame with those that follow and leaves with the next
  // urgent one that leaves at once, or the next poll.
  link::SendStatus try_send(link::PeerId to, Priority priority, const Packet& packet,
                            link::Time now) {
    return try_send(to, priority, packet, link::Urgency::now, now);
  }
  link::SendStatus try_send(link::PeerId to, Priority priority, const Packet& packet,
                            link::Urgency urgency, link::Time now);
  // PIO of an ordered packet that lies in two places and is not copied together first: `head` is
  // header word 1 and the first payload words, `body` the payload words behind them (too_big as
  // well if those are not whole).
  link::SendStatus try_send(link::PeerId to, Priority priority, std::span<const std::uint32_t> head,
                            std::span<const std::byte> body, link::Time now);
  // The oldest packet in the PIO receive queue of that priority, in place, or nullptr. pop() frees
  // its entry.
  const Received* peek(Priority priority) const { return pio_[index(priority)].front(); }
  void pop(Priority priority) { pio_[index(priority)].pop(); }

  // Cacheable queues. reserve() gives the next free entry of the transmit queue to be filled in
  // place (all fields: it holds an old packet), or nullptr when it is full; commit() hands it over.
  // poll() sends what was committed, in that order: an entry whose destination's lane is full holds
  // up the ones behind it in its own queue.
  Outgoing* reserve(Priority priority) { return transmit_[index(priority)].back(); }
  void commit(Priority priority) { transmit_[index(priority)].push(); }
  const Received* queue_peek(Priority priority) const { return queue_[index(priority)].front(); }
  void queue_pop(Priority priority) { queue_[index(priority)].pop(); }
  // Packets committed and not yet sent.
  std::size_t queued(Priority priority) const { return transmit_[index(priority)].size(); }

  Rdma<Device>& rdma() { return rdma_; }
  const Rdma<Device>& rdma() const { return rdma_; }

  // Connections that came or went, oldest first; false when there is none. A user who never asks
  // loses the oldest ones (counted), not memory.
  bool next_event(Event& event) { return events_.next(event); }

  // Drains the transmit queues and RDMA, then polls the link.
  void poll(link::Time now) {
    drain(Priority::high, now);
    drain(Priority::low, now);
    rdma_.poll(now);
    link_.poll(now);
  }
  Link& link() { return link_; }
  const Counters& counters() const { return counters_; }

 private:
  static constexpr std::size_t index(Priority p) { return static_cast<std::size_t>(p); }

  link::Verdict on_message(const link::Incoming& message) override;
  void on_peer_up(link::PeerId peer, const link::Address& address) override;
  void on_peer_down(link::PeerId peer, const link::Address& address,
                    link::DownReason reason) override;

  link::SendStatus send(link::PeerId to, Priority priority, Mechanism mechanism, link::Order order,
                        std::span<const std::byte> head, std::span<const std::byte> body,
                        link::Urgency urgency, link::Time now);
  link::SendStatus send(link::PeerId to, Priority priority, Mechanism mechanism,
                        const Packet& packet, link::Urgency urgency, link::Time now) {
    return send(to, priority, mechanism, packet.order, bytes_of(packet.tag),
                std::as_bytes(std::span(packet.payload, packet.words)), urgency, now);
  }
  void drain(Priority priority, link::Time now) {
    if (!transmit_[index(priority)].empty()) drain_queue(priority, now);
  }
  void drain_queue(Priority priority, link::Time now);
  void remember(const Event& event);

  Link& link_;
  Counters counters_;
  std::array<base::RingBuffer<Received>, kPriorities> pio_, queue_;  // received, by priority
  std::array<base::RingBuffer<Outgoing>, kPriorities> transmit_;
  link::EventQueue events_;
  Rdma<Device> rdma_;
};

}  // namespace viaduct::startx
