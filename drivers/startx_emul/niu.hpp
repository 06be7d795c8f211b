// The StarT-X network interface unit (NIU) on Ethernet: two message mechanisms in two priorities,
// and remote DMA (MPI-StarT, SC98, section 2; docs/startx.md tells what the original had).
//
//  * PIO: try_send puts one packet on the wire before it returns. Lowest latency. While four frames
//    (link::kMaxAlone) of that priority are unacknowledged, packets share a frame that leaves with
//    the next poll.
//  * Cacheable queues: packets are written into a transmit queue in memory, leave in batches at the
//    next poll, and are read in place from a receive queue in memory. Highest message rate.
//  * RDMA: memory to memory between registered regions; see rdma.hpp.
//
// High priority may delay low, never the reverse: each priority has its own queues, lane, window
// and credits. A full receive queue pushes back on its senders (flow control); nothing is dropped.
//
// The NIU owns its queues and its Rdma; the link belongs to the caller. The NIU is the link's
// receive handler for protocol `startx`. Thread rule: that of the link; one owner thread. No call
// blocks.
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
class Niu final : private link::ReceiveHandler {
 public:
  using Link = link::Link<Device>;
  using Outgoing = startx::Outgoing;

  // Attaches itself to the link, which must outlive the NIU. Throws SetupError on an impossible
  // configuration.
  Niu(Link& link, const NiuConfig& config);
  ~Niu();
  Niu(const Niu&) = delete;
  Niu& operator=(const Niu&) = delete;

  // PIO. `sent`, or why not (link::SendStatus): the packet is copied, and delivered exactly once
  // unless the peer goes down. too_big: a word count outside 2..22. try_again: poll first.
  // Urgency::batch: the packet shares a frame with those that follow and leaves with the next
  // urgent one that leaves at once, or the next poll.
  link::SendStatus try_send(link::PeerId to, Priority priority, const Packet& packet,
                            link::Time now) {
    return try_send(to, priority, packet, link::Urgency::now, now);
  }
  link::SendStatus try_send(link::PeerId to, Priority priority, const Packet& packet,
                            link::Urgency urgency, link::Time now);
  // PIO of an ordered packet that lies in two places, which saves the caller a copy (gather):
  // `head` is header word 1 and the first payload words, `body` the payload words behind them.
  // too_big also if `body` is no whole number of words.
  link::SendStatus try_send(link::PeerId to, Priority priority, std::span<const std::uint32_t> head,
                            std::span<const std::byte> body, link::Time now);
  // The oldest packet in the PIO receive queue of that priority, in place, or nullptr. The packet
  // is the queue's: pop() frees its entry, and the pointer is void from then on.
  const Received* peek(Priority priority) const { return pio_[index(priority)].front(); }
  void pop(Priority priority) { pio_[index(priority)].pop(); }

  // Cacheable queues. reserve() gives the next free entry of the transmit queue, or nullptr when
  // the queue is full. The user fills all fields in place (the entry holds an old packet); commit()
  // hands it over. poll() sends the committed entries in order. An entry whose destination's lane
  // is full holds up all entries behind it in its queue (head-of-line blocking), as in the
  // hardware.
  Outgoing* reserve(Priority priority) { return transmit_[index(priority)].back(); }
  void commit(Priority priority) { transmit_[index(priority)].push(); }
  const Received* queue_peek(Priority priority) const { return queue_[index(priority)].front(); }
  void queue_pop(Priority priority) { queue_[index(priority)].pop(); }
  // Packets committed and not yet sent.
  std::size_t queued(Priority priority) const { return transmit_[index(priority)].size(); }

  Rdma<Device>& rdma() { return rdma_; }
  const Rdma<Device>& rdma() const { return rdma_; }

  // Takes the oldest event of a peer that connected or went down; false when there is none. If the
  // user does not take events, the oldest are overwritten and counted; memory does not grow.
  bool next_event(Event& event) { return events_.next(event); }

  // All progress: sends from the transmit queues, high first, then from RDMA, then polls the link.
  // The link comes last, so that the frames filled here leave in this poll.
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

  // The link's receive handler, called from link_.poll() on the owner thread.
  link::RxResult on_message(const link::Incoming& message) override;
  void on_peer_up(link::PeerId peer, const link::Address& address) override;
  void on_peer_down(link::PeerId peer, const link::Address& address,
                    link::DownReason reason) override;

  // `head` begins with header word 1 (the tag); head ++ body is what goes behind header word 0.
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
  Counters counters_;  // before rdma_, which counts in them
  // One of each for each priority. PIO needs no transmit queue: the link takes its packets at once.
  std::array<base::RingBuffer<Received>, kPriorities> pio_, queue_;  // received
  std::array<base::RingBuffer<Outgoing>, kPriorities> transmit_;
  link::EventQueue events_;
  Rdma<Device> rdma_;
};

}  // namespace viaduct::startx
