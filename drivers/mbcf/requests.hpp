// The initiator's open requests: those whose completion has not been taken, in a table that is
// allocated once. Engine owns the table and uses it on its owner thread.
//
// A short silent request has no place in the table: only a refusal comes back, and its number is
// enough to report that (Engine::issue).
#pragma once

#include <array>

#include "drivers/base/slot_map.hpp"
#include "drivers/mbcf/types.hpp"
#include "drivers/mbcf/wire.hpp"

namespace viaduct::mbcf {

using base::kNoSlot;
using base::Slot;

// A request at its initiator:
//
//            long                 the link has taken all of it
//    free ----------> waiting ---------------------------------> sent
//     ^ ^ |              |                                       ^ | |
//     | | |              | refused, or the peer has ended        | | |
//     | | |              |                                       | | |
//     | | +--------------|---------------------------------------+ | |
//     | |   one message, |  which the link has taken               | |
//     | |                v                                         | |
//     | +---------- complete <-------------------------------------+ |
//     |   next_completion     answered, refused, or the peer ended   |
//     |                                                              |
//     +--------------------------------------------------------------+
//                  silent, and answered as executed
//
// The answer of a fence counts only when the long requests before the fence are complete, too
// (`open_before` == 0). A read and an atomic operation are answered by what they ask for. A free
// slot of the table has no state.
enum class RequestState : std::uint8_t {
  waiting,   // in a list of its peer: not wholly sent
  sent,      // the answer is due
  complete,  // the user has not taken the completion
};

struct Request {
  base::SlotLinks links;  // in one list at most: one of its peer's, or the completion queue
  RequestState state = RequestState::sent;
  Kind kind = Kind::write;
  bool silent = false;         // no completion on success
  bool segmented = false;      // in several messages: a fence that was issued later waits for it
  Status status = Status::ok;  // complete: the result
  link::PeerId peer;           // the target
  std::uint64_t context = 0;
  std::uint64_t serial = 0;  // counts all requests of the table, in the order of issue
  std::uint64_t value = 0;   // complete: what the word of an atomic operation held before

  // Long requests: what is to be sent from or received into local memory. Short reads use `local`,
  // `length` and `moved` as well.
  Key key;
  std::uint64_t offset = 0;             // in the target's segment, bytes
  std::byte* local = nullptr;           // the caller's memory, valid until the completion
  std::uint64_t length = 0, moved = 0;  // bytes at `local`; how many have been sent or received
  bool chained_unsent = false;          // a second part, `then` and `entry`, has still to be sent
  std::uint32_t writer = 0;  // the name of the FIFO writer that paid for the entry; 0: none
  ThenHead then{};
  std::array<std::byte, kMaxChainedEntry> entry;

  std::uint64_t open_before = 0;  // a fence: segmented requests issued before it and not complete
  bool answered = false;          // a fence: the target has answered
};

using RequestList = base::SlotList<Request, &Request::links>;

class RequestTable {
 public:
  // Room for `max_requests` requests, at most kMaxRequests.
  explicit RequestTable(std::size_t max_requests) : requests_(max_requests) {}

  Request& operator[](Slot slot) { return requests_[slot]; }
  const Request& operator[](Slot slot) const { return requests_[slot]; }
  // The number that goes to the user and to the target.
  RequestId id(Slot slot) const { return requests_.id(slot); }
  // The request with this number, or kNoSlot.
  Slot find(RequestId id) const { return requests_.find(id); }
  // The open request that an answer from `peer` with this number belongs to, or kNoSlot. `id` comes
  // from the wire: it may name no slot, an older request, or a request to another peer.
  Slot find_open(std::uint32_t id, link::PeerId peer) const {
    const Slot slot = find({id});
    if (slot == base::kNoSlot) return base::kNoSlot;
    const Request& r = requests_[slot];
    return r.state != RequestState::complete && r.peer == peer ? slot : base::kNoSlot;
  }
  // Calls visit(slot, request) for each request. `visit` may release any of them.
  template <class Visit>
  void for_each(Visit visit) {
    requests_.for_each(visit);
  }

  // A new request, in no list and in state `sent`: the caller sends it and, if it is long, sets
  // `waiting` and the fields of long requests. kNoSlot when all are in use.
  Slot add(Kind kind, link::PeerId peer, const Options& options) {
    const Slot slot = requests_.insert();
    if (slot == base::kNoSlot) return base::kNoSlot;
    Request& r = requests_[slot];
    r.state = RequestState::sent;
    r.kind = kind;
    r.silent = options.silent;
    r.segmented = false;
    r.peer = peer;
    r.context = options.context;
    r.serial = ++serial_;
    r.value = 0;
    r.moved = 0;
    r.chained_unsent = false;
    r.answered = false;
    return slot;
  }
  // The slot is free again; the request's number finds nothing from now on.
  void release(Slot slot) { requests_.erase(slot); }

 private:
  // Generations have 15 bits: the upper bit of a number is set for short silent requests (kSilent).
  base::SlotMap<Request, RequestId, 15> requests_;
  std::uint64_t serial_ = 0;
};

}  // namespace viaduct::mbcf
