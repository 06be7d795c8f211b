// StarT-X remote DMA: memory to memory from registered regions. The right to write into a receiver
// is arranged by messages; frames are built and placed by the driver; both sides see completion.
//
//   receiver: post(peer, tag, region bytes)        sender: request(peer, tag, region bytes)
//             <- REQUEST(tag, length)  low lane
//             -> GRANT(right, key)     high lane
//             <- DATA(right, key, offset, bytes) bulk lane, unordered, placed on arrival
//             -> DONE                  high lane; completion on both sides
// (REFUSAL instead of GRANT: more than was posted; instead of DONE: the right is gone.)
// Callers that exchange rights by their own messages skip the first two: grant() and write().
//
// Calls refer to regions and transfers by name, never by address, and each range is checked before
// it is used. A data message outside its right is counted and ignored, and the sender hears of it
// at the end of its transfer.
#pragma once

#include <optional>
#include <random>

#include "drivers/link/link.hpp"
#include "drivers/startx_emul/counters.hpp"
#include "drivers/startx_emul/rdma_types.hpp"
#include "drivers/startx_emul/regions.hpp"
#include "drivers/startx_emul/transfer_table.hpp"
#include "drivers/startx_emul/wire.hpp"

namespace viaduct::startx {

template <link::PacketDevice Device>
class Rdma {
 public:
  using Link = link::Link<Device>;

  // Throws SetupError on impossible configuration. All memory is taken here.
  Rdma(Link& link, const RdmaConfig& config, Counters& counters);
  Rdma(const Rdma&) = delete;
  Rdma& operator=(const Rdma&) = delete;

  // RegionId{} when max_regions are registered.
  RegionId register_memory(std::span<std::byte> memory) { return regions_.add(memory); }
  // false while a transfer uses it (nothing changes).
  bool deregister(RegionId region) { return regions_.remove(region); }

  bool registered(RegionId region) const { return regions_.knows(region); }

  // Receiver: take one transfer with this tag, from `from` or (PeerId{}) from anybody, in the
  // order posted.
  Started post(link::PeerId from, std::uint32_t tag, RegionBytes into);
  // Takes a post back that no request has met: there will be no completion. Else false.
  bool cancel(TransferId post);
  // Sender: transfer to whoever posted that tag at `to`. Waits for the post if it comes later.
  Started request(link::PeerId to, std::uint32_t tag, RegionBytes from, link::Time now);

  // The same in one step each, for callers who carry the right in a message of their own. A write
  // may be shorter than its right.
  Started grant(link::PeerId to, RegionBytes into, Right& right);
  // Takes the right back: there will be no completion, and what still comes is dropped (counted)
  // and ends with no_right at its sender. False: there is no such grant, or it is complete.
  bool revoke(TransferId grant);
  Started write(link::PeerId to, const Right& right, RegionBytes from, link::Time now);

  // Finished transfers, oldest first; false when there is none.
  bool next_completion(Completion& completion) {
    return !table_.complete().empty() && take_completion(completion);
  }
  // No peer waits for anything that only a poll here can send.
  bool idle() const { return table_.owing().empty() && table_.sending().empty(); }

  // For the NIU that this belongs to.
  link::Verdict on_message(const link::Incoming& message);
  void on_peer_down(link::PeerId peer);
  // Sends what is owed and what may be sent.
  void poll(link::Time now) {
    if (!table_.owing().empty()) pay(now);
    if (!table_.sending().empty()) pump(now);
  }

 private:
  bool take_completion(Completion& completion);
  link::Verdict on_request(const link::Incoming& message);
  void on_grant(const link::Incoming& message);
  void on_refuse(const link::Incoming& message);
  link::Verdict on_data(const link::Incoming& message);
  // Data without a right or outside it.
  link::Verdict ignore_data(const link::Incoming& message, const DataHead& head, Counter why);
  void on_done(const link::Incoming& message);

  bool peer_lives(link::PeerId peer) const;
  // A transfer over these bytes, or why not. The caller enters it into the list of its state.
  Started start(bool receiving, link::PeerId peer, std::uint32_t tag, const RegionBytes& bytes,
                Slot& slot);
  // A post has met a request.
  void match(Slot post, const Request& request);
  // Opens what waits, as far as max_open and the order of turns let it.
  void open_matched();
  bool must_wait_for_own_transfer(const Transfer& t);
  bool must_let_peer_go_first(const Transfer& t);

  void pay(link::Time now);
  link::SendStatus send_owed(const Transfer& t, link::Time now);
  void pump(link::Time now);
  // Bytes that the link took as one message; nothing when it took none.
  std::optional<std::size_t> send_piece(Transfer& t, link::Time now);
  void complete(Slot slot, RdmaStatus status);

  Link& link_;
  Counters& counters_;
  const std::size_t max_open_;
  Regions regions_;
  TransferTable table_;
  // Keys tell stale rights from live ones; that a message is the peer's own is the link's business.
  std::mt19937_64 random_;
};

}  // namespace viaduct::startx
