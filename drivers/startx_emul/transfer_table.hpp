// The book-keeping of RDMA: every transfer, and every request that has met no post, in tables made
// once. This file decides which list an entry is in; rdma.cpp decides what is sent, and when.
//
// Lists are linked by index through the entries, so an entry leaves the middle of a list in
// constant time and nothing is allocated. Thread rule: that of the link; one owner thread. Rdma
// owns the table.
#pragma once

#include <array>

#include "drivers/base/slot_map.hpp"
#include "drivers/startx_emul/rdma_types.hpp"

namespace viaduct::startx {

using base::kNoSlot;
using base::Slot;
using base::SlotLinks;

// The states of a transfer. name() is a call of the user's, CAPITALS are a message of the peer's.
//
//   receiving:  free --post()--> posted --REQUEST--> matched --room, its turn--> open
//                                  |                                             ^  |
//                                  | REQUEST too long         free --grant()-----'  | all bytes
//                                  v                                                v placed
//                               complete <------------------------------------------'
//
//               posted --cancel()--> free         open --revoke(), of a grant()--> free
//
//   sending:    free --request()--> requested --GRANT--> sending --last piece sent--> sent
//                                     |                    ^                            |
//                                     | REFUSAL            '--write()-- free            | DONE or
//                                     v                                                 v REFUSAL
//                                  complete <-------------------------------------------'
//
//   both:       complete --completion taken, no pending control message--> free
//               the peer goes down: any state with this peer --> complete
//
// "Room, its turn": max_open, and with max_open = 1 the order of turns (Rdma::open_matched).
enum class TransferState : std::uint8_t {
  free,
  // receiving
  posted,   // waits for a request
  matched,  // has met a request, waits until it may be open
  open,     // the peer has the right to write, or will have when the grant is sent
  // sending
  requested,  // request sent (ready-to-send), waits for grant or refusal
  sending,    // has the right, the last piece is still to be sent
  sent,       // all is with the link, waits for done or refusal
  // both
  complete,  // the user has still to take the completion, or the peer to be told
};

// A control message that is still to be sent to the peer: the link had no room for it, or none of
// the calls that send has run yet. A transfer has at most one: data, and with it the done, comes
// only after the grant was sent.
enum class PendingControl : std::uint8_t { none, grant, refusal, done };

// One transfer, of either direction. What a peer sends is compared with it before memory is
// touched.
struct Transfer {
  base::SlotLinks state_links;    // in the list of its state
  base::SlotLinks pending_links;  // in the list of those with a pending control message

  TransferState state = TransferState::free;
  PendingControl pending_control = PendingControl::none;
  RdmaStatus status = RdmaStatus::ok;
  bool receiving = false;
  bool taken = false;       // the user has taken the completion
  bool by_request = false;  // a receive that answers a request, not a grant() of the user's

  link::PeerId peer;  // PeerId{}: posted for anybody
  std::uint32_t tag = 0;
  RegionId region;                     // in use until complete
  std::byte* memory = nullptr;         // start of the range, checked once when the transfer starts
  std::uint64_t length = 0;            // bytes: of the range, then of the data once that is known
  std::uint64_t moved = 0;             // bytes placed, or handed to the link
  bool length_known = false;           // receive: the last piece has arrived and told the length
  std::uint32_t peer_transfer_id = 0;  // receive: the sender's name for the transfer
  std::uint32_t slot = 0, key = 0;     // the right: ours (receive) or the peer's (send)
};

// A request that came before its post (an unexpected ready-to-send).
struct Request {
  base::SlotLinks links;
  link::PeerId from;
  std::uint32_t tag = 0;
  std::uint32_t transfer = 0;  // the sender's name for the transfer
  std::uint64_t length = 0;    // bytes
};

using TransferList = base::SlotList<Transfer, &Transfer::state_links>;
using PendingList = base::SlotList<Transfer, &Transfer::pending_links>;
using RequestList = base::SlotList<Request, &Request::links>;

class TransferTable {
 public:
  // Room for `most` sends, as many receives and as many requests without a post.
  explicit TransferTable(std::size_t most);

  // The slot must be one of a transfer, or below slots(): then the transfer may be free.
  Transfer& operator[](Slot slot) { return transfers_[slot]; }
  const Transfer& operator[](Slot slot) const { return transfers_[slot]; }
  std::size_t slots() const { return 2 * most_; }
  TransferId id(Slot slot) const { return transfers_.id(slot); }
  // The transfer with this name if the transfer exists and is in `state`, else kNoSlot. Names come
  // from the user and from the wire, so any number is allowed.
  Slot find(TransferId id, TransferState state) const;

  // A cleared transfer in no list, or kNoSlot when all of its direction are in use. The caller
  // fills it in, then calls enter() for its first state.
  Slot add(bool receiving);
  void enter(Slot slot, TransferState first);
  // Takes the transfer from the list of its state and puts it at the end of that of `next`.
  void move(Slot slot, TransferState next);
  // Takes the transfer from the list of its state and frees it.
  void remove(Slot slot);
  // Frees a transfer that is in no list.
  void free(Slot slot);
  // Takes the oldest one from the list of complete transfers; kNoSlot: there is none.
  Slot take_complete();
  // Frees the slot if the user has taken the completion and no control message is pending.
  void free_if_finished(Slot slot);

  // Notes a control message for the transfer's peer; Rdma::send_pending_controls() sends it.
  void set_pending_control(Slot slot, PendingControl control);
  void clear_pending_control(Slot slot);  // sent, or the peer has gone down

  // The oldest post that matches a request, or kNoSlot.
  Slot find_post(link::PeerId from, std::uint32_t tag) const;

  // Keeps a request that has met no post. False when there is no room.
  bool add_unexpected(const Request& request);
  // Removes the oldest request that matches a post. False when there is none.
  bool take_unexpected(link::PeerId from_or_any, std::uint32_t tag, Request& request);
  // Forgets all requests of a peer that has gone down.
  void drop_unexpected(link::PeerId from);

  TransferList& matched() { return matched_; }
  TransferList& sending() { return sending_; }
  TransferList& sent() { return sent_; }
  TransferList& complete() { return complete_; }
  PendingList& pending_controls() { return pending_controls_; }
  const TransferList& sending() const { return sending_; }
  const PendingList& pending_controls() const { return pending_controls_; }
  std::size_t open() const { return open_.size(); }
  Slot first_open() const { return open_.first(); }

 private:
  static constexpr std::size_t kBuckets = 256;
  // Fibonacci hashing: the upper 8 bits of a multiple of 2^32 divided by the golden ratio.
  static std::size_t bucket(std::uint32_t tag) { return tag * 0x9e3779b1u >> 24; }
  TransferList& list_of(Slot slot);

  const std::size_t most_;
  std::array<std::size_t, 2> in_use_{};  // sends, receives
  base::SlotMap<Transfer, TransferId> transfers_;
  TransferList matched_, open_, requested_, sending_, sent_, complete_;
  PendingList pending_controls_;              // oldest first
  std::array<TransferList, kBuckets> posts_;  // hashed by tag, each in the order posted

  std::vector<Request> requests_;
  RequestList free_requests_;
  std::array<RequestList, kBuckets> unexpected_;  // hashed by tag, in order of arrival
};

}  // namespace viaduct::startx
