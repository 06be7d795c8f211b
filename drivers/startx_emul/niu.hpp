// The StarT-X network interface unit (NIU) on Ethernet: two message mechanisms and remote DMA, each
// in two priorities where the original had them (facts in docs/startx.md).
//
//  * PIO: try_send puts one packet on the wire before it returns. Lowest latency.
//  * Cacheable queues: packets are written into a transmit queue in memory, leave in batches at the
//    next poll, and are read in place from a receive queue in memory. Highest message rate.
//  * RDMA: memory to memory between registered regions; see rdma.hpp.
//
// High priority may delay low, never the reverse: each priority has its own queues, lane, window
// and credits. A full receive queue pushes back on its senders; nothing is dropped.
//
// Thread rule: that of the link; one owner thread. No call blocks.
#pragma once

#include <memory>

#include "drivers/link/link.hpp"
#include "drivers/startx_emul/packet.hpp"
#include "drivers/startx_emul/packet_queue.hpp"
#include "drivers/startx_emul/rdma.hpp"

namespace viaduct::startx {

struct NiuConfig {
  std::size_t queue_depth = 1024;  // packets in each receive and transmit queue; a power of two
  RdmaConfig rdma;
};

// A connection that came or went. Kept until taken by next_event().
struct Event {
  enum class Kind : std::uint8_t { peer_up, peer_down } kind;
  link::PeerId peer;
  link::Address address;
  link::DownReason reason;  // peer_down only
};

template <link::PacketDevice Device>
class Niu final : private link::MessageSink {
 public:
  using Link = link::Link<Device>;

  Niu(Link& link, const NiuConfig& config);
  ~Niu();

  // PIO. `sent`, or why not (link::SendStatus); too_big also for a word count outside 2..22.
  link::SendStatus try_send(link::PeerId to, Priority priority, const Packet& packet,
                            link::Time now);
  // The oldest packet in the PIO receive queue of that priority, in place, or nullptr. pop() frees
  // its entry.
  const Received* peek(Priority priority) const { return pio_[index(priority)].front(); }
  void pop(Priority priority) { pio_[index(priority)].pop(); }

  // Cacheable queues. reserve() gives the next free entry of the transmit queue to be filled in
  // place, or nullptr when it is full; commit() hands it over. poll() sends what was committed.
  struct Outgoing {
    link::PeerId to;
    Packet packet;
  };
  Outgoing* reserve(Priority priority) { return transmit_[index(priority)].back(); }
  void commit(Priority priority) { transmit_[index(priority)].push(); }
  const Received* queue_peek(Priority priority) const { return queue_[index(priority)].front(); }
  void queue_pop(Priority priority) { queue_[index(priority)].pop(); }

  Rdma<Device>& rdma() { return rdma_; }

  // Connections that came or went, oldest first; false when there is none.
  bool next_event(Event& event);

  // Drains the transmit queues and RDMA, then polls the link.
  void poll(link::Time now);
  Link& link() { return link_; }
};

}  // namespace viaduct::startx
