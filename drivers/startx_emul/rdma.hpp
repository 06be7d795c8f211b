// StarT-X remote DMA: memory to memory between registered regions (MPI-StarT, SC98, section 2). The
// sender of the data is the initiator, the receiver is the target. It is a rendezvous: messages
// give the initiator the right to write (slot and remote key), the driver sends the data and places
// it, and both sides see a completion. The Niu owns this class and calls it from its own poll.
//
//   receiver (target)                                          sender (initiator)
//   post(peer, tag, region bytes)                              request(peer, tag, region bytes)
//     posted                                                   requested
//        | <------ REQUEST(transfer, tag, length) ----- low lane   |  ready-to-send
//     matched                                                      |
//        |  (waits for max_open, and for its turn)                 |
//     open ------- GRANT(transfer, slot, key) --------> high lane  |  clear-to-send
//        |                                                       sending
//        | <====== DATA(slot, key, offset, bytes) ===== bulk lane  |  unordered, placed on arrival
//        | <====== LAST(slot, key, offset, bytes) ===== bulk lane  |  tells the length
//        |                                                       sent
//     complete --- DONE(transfer, slot, key) ---------> high lane  |
//                                                                complete
//
// REFUSAL comes instead of GRANT when the request is longer than the post, and instead of DONE when
// the right is gone. Callers that carry the right in a message of their own skip REQUEST and GRANT:
// grant() begins with `open`, write() with `sending`. transfer_table.hpp draws all states.
//
// Calls refer to regions and transfers by name, never by address, and each range is checked before
// the driver uses it. A data message outside its right is counted and ignored; the sender hears of
// it at the end of its transfer.
//
// Thread rule: that of the link; one owner thread. No call blocks, and no call but the constructor
// allocates.
#pragma once

#include <optional>

#include "drivers/base/random.hpp"
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

  // Throws SetupError on impossible configuration. All memory is allocated here. The link and the
  // counters belong to the caller and must outlive this object.
  Rdma(Link& link, const RdmaConfig& config, Counters& counters);
  Rdma(const Rdma&) = delete;
  Rdma& operator=(const Rdma&) = delete;

  // The memory stays the user's, who keeps it alive until it is deregistered. RegionId{} when
  // max_regions are registered.
  RegionId register_memory(std::span<std::byte> memory) { return regions_.add(memory); }
  // False while a transfer uses the region, and for an unknown region; then nothing changes.
  bool deregister(RegionId region) { return regions_.remove(region); }

  bool registered(RegionId region) const { return regions_.contains(region); }

  // Receiver: accept one transfer with this tag into `into`, from the peer `from`, or from any peer
  // if that is PeerId{}. Posts meet requests in the order of the posts.
  Started post(link::PeerId from, std::uint32_t tag, RegionBytes into);
  // Takes a post back that no request has met; no completion follows. False when a request has met
  // the post already, or there is no such post.
  bool cancel(TransferId post);
  // Sender: transfer `from` into the oldest post with this tag at the peer `to`. A request that
  // comes before its post waits there. The memory must not change until the completion.
  Started request(link::PeerId to, std::uint32_t tag, RegionBytes from, link::Time now);

  // The same in one step at each side, for callers that carry the right in a message of their own.
  // A grant is open at once: no_room when max_open transfers are. A write may be shorter than its
  // right.
  Started grant(link::PeerId to, RegionBytes into, Right& right);
  // Takes the right back; no completion follows here. Data that still comes is dropped and counted,
  // and the write that sent it completes with no_right. False: there is no such grant, or it is
  // complete.
  bool revoke(TransferId grant);
  Started write(link::PeerId to, const Right& right, RegionBytes from, link::Time now);

  // Finished transfers, oldest first; false when there is none.
  bool next_completion(Completion& completion) {
    return !table_.complete().empty() && take_completion(completion);
  }
  // This side has nothing to send: no grant, refusal, done or data waits for poll().
  bool idle() const { return table_.pending_controls().empty() && table_.sending().empty(); }

  // The three below are for the NIU that owns this object. on_message takes any rdma_... kind.
  link::RxResult on_message(const link::Incoming& message);
  void on_peer_down(link::PeerId peer);
  // Sends grants, refusals and dones that are due, then data, as far as the link takes them.
  void poll(link::Time now) {
    if (!table_.pending_controls().empty()) send_pending_controls(now);
    if (!table_.sending().empty()) send_data(now);
  }

 private:
  bool take_completion(Completion& completion);
  link::RxResult on_request(const link::Incoming& message);
  void on_grant(const link::Incoming& message);
  void on_refuse(const link::Incoming& message);
  link::RxResult on_data(const link::Incoming& message);
  // Drops data without a right or outside it, and refuses it if it was the last piece.
  link::RxResult reject_data(const link::Incoming& message, const DataHead& head, Counter why);
  void on_done(const link::Incoming& message);

  bool peer_lives(link::PeerId peer) const;
  // Takes a slot for a transfer over these bytes, or says why not. The region counts as used from
  // here on. The caller enters the slot into the list of its first state.
  Started start(bool receiving, link::PeerId peer, std::uint32_t tag, const RegionBytes& bytes,
                Slot& slot);
  // A post has met a request: both become one transfer.
  void match(Slot post, const Request& request);
  // Opens matched transfers, as far as max_open and the order of turns let them. To be called
  // whenever a receive has left `open` or a send has completed: others may have waited for it.
  void open_matched();
  bool defers_grant(const Transfer& t);
  bool defers_data(const Transfer& t);

  void send_pending_controls(link::Time now);
  link::SendStatus send_control(const Transfer& t, link::Time now);
  void send_data(link::Time now);
  // Sends one piece of a transfer. The bytes that the link took, or nothing when the link took no
  // message.
  std::optional<std::size_t> send_piece(Slot slot, link::Time now);
  void complete(Slot slot, RdmaStatus status);

  Link& link_;
  Counters& counters_;
  const std::size_t max_open_;
  Regions regions_;
  TransferTable table_;
  // Source of remote keys. A key only tells stale rights from valid ones, so it need not be secret:
  // the link checks that a message comes from its peer.
  base::SeededRandom random_;
};

}  // namespace viaduct::startx
