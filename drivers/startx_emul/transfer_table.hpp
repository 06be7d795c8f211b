// The book-keeping of RDMA: every transfer and every unanswered request, in tables made once. Who
// is in which list is decided here; what is sent when is decided in rdma.cpp.
#pragma once

#include <array>

#include "drivers/base/slot_list.hpp"
#include "drivers/startx_emul/rdma_types.hpp"

namespace viaduct::startx {

using base::kNoSlot;
using base::Slot;
using base::SlotLinks;

enum class TransferState : std::uint8_t {
  free,
  // receiving
  posted,   // waits for a request
  matched,  // waits until it may be open
  open,     // the peer has the right to write
  // sending
  asked,    // waits for the answer
  sending,  // has the right, bytes are left to send
  sent,     // waits for the peer's done
  // both
  complete,  // the user has not taken the completion, or the peer has not been told
};

// A message that we owe the peer because the link had no room for it, or no call has come by yet.
enum class Owed : std::uint8_t { nothing, grant, refusal, done };

struct Transfer {
  base::SlotLinks state_links;  // in the list of its state
  base::SlotLinks owed_links;   // in the list of those with something owed

  TransferState state = TransferState::free;
  Owed owed = Owed::nothing;
  RdmaStatus status = RdmaStatus::ok;
  bool receiving = false;
  bool taken = false;       // the user has the completion
  bool by_request = false;  // a receive that answers a request, not a grant of the user's own
  std::uint16_t generation = 0;

  link::PeerId peer;  // PeerId{}: posted for anybody
  std::uint32_t tag = 0;
  RegionId region;
  std::byte* memory = nullptr;
  std::uint64_t length = 0;          // may be transferred; exact once the sender is known
  std::uint64_t moved = 0;           // bytes placed, or handed to the link
  bool length_known = false;         // receive: the last piece has told the length
  std::uint32_t their_transfer = 0;  // receive: the sender's name for it
  std::uint32_t slot = 0, key = 0;   // the right: ours (receive) or the peer's (send)
};

// A request that came before its post.
struct Request {
  base::SlotLinks links;
  link::PeerId from;
  std::uint32_t tag = 0;
  std::uint32_t transfer = 0;
  std::uint64_t length = 0;
};

using TransferList = base::SlotList<Transfer, &Transfer::state_links>;
using OwedList = base::SlotList<Transfer, &Transfer::owed_links>;
using RequestList = base::SlotList<Request, &Request::links>;

class TransferTable {
 public:
  explicit TransferTable(std::size_t most);

  Transfer& operator[](Slot slot) { return transfers_[slot]; }
  Transfer* data() { return transfers_.data(); }
  std::size_t size() const { return transfers_.size(); }
  TransferId id(Slot slot) const;
  // The transfer of that name if it is there and in `state`, else kNoSlot.
  Slot find(TransferId id, TransferState state) const;

  // A fresh transfer in no list, or kNoSlot when all of its direction are in use. Fill it in, then
  // enter() the list of its first state.
  Slot add(bool receiving);
  void enter(Slot slot, TransferState first);
  // Takes it from the list of its state and puts it at the end of that of `next`.
  void move(Slot slot, TransferState next);
  // The user has everything and the peer too: the slot may be used again.
  void release_if_over(Slot slot);

  void owe(Slot slot, Owed what);
  void settle(Slot slot);  // nothing is owed any more

  // The oldest post that takes a request, or kNoSlot.
  Slot find_post(link::PeerId from, std::uint32_t tag) const;

  // Requests without a post. add_request: false when there is no room.
  bool add_request(const Request& request);
  // The oldest request that a post takes, removed; false when there is none.
  bool take_request(link::PeerId from_or_anybody, std::uint32_t tag, Request& request);
  void drop_requests(link::PeerId from);

  TransferList& matched() { return matched_; }
  TransferList& sending() { return sending_; }
  TransferList& sent() { return sent_; }
  TransferList& complete() { return complete_; }
  OwedList& owing() { return owing_; }
  const TransferList& sending() const { return sending_; }
  const OwedList& owing() const { return owing_; }
  std::size_t open() const { return open_.size(); }
  Slot first_open() const { return open_.first(); }

 private:
  static constexpr std::size_t kBuckets = 256;
  static std::size_t bucket(std::uint32_t tag) { return tag * 0x9e3779b1u >> 24; }
  TransferList& list_of(Slot slot);

  std::vector<Transfer> transfers_;  // first half sends, second half receives
  TransferList free_sends_, free_receives_;
  TransferList matched_, open_, asked_, sending_, sent_, complete_;
  OwedList owing_;
  std::array<TransferList, kBuckets> posts_;  // by tag, each in the order posted

  std::vector<Request> requests_;
  RequestList free_requests_;
  std::array<RequestList, kBuckets> waiting_;  // by tag, each in order of arrival
};

}  // namespace viaduct::startx
