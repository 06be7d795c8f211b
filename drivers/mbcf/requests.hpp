// Requests of ours whose completion has not been taken, in a table made once.
#pragma once

#include <array>
#include <vector>

#include "drivers/base/slot_list.hpp"
#include "drivers/mbcf/types.hpp"
#include "drivers/mbcf/wire.hpp"

namespace viaduct::mbcf {

using base::kNoSlot;
using base::Slot;

enum class RequestState : std::uint8_t {
  free,
  waiting,   // in a list of its peer: not wholly sent
  sent,      // the answer is due
  complete,  // the user has not taken the completion
};

struct Request {
  base::SlotLinks links;  // in one list at most: of its peer, or of the complete ones
  RequestState state = RequestState::free;
  Kind kind = Kind::write;
  bool silent = false;
  bool lasting = false;  // a fence issued later has to wait for it
  Status status = Status::ok;
  std::uint16_t generation = 0;
  link::PeerId peer;
  std::uint64_t context = 0;
  std::uint64_t serial = 0;  // in the order of issue
  std::uint64_t value = 0;   // result

  // Long requests: what is to be sent from or received into local memory.
  Key key;
  std::uint64_t offset = 0;
  std::byte* local = nullptr;
  std::uint64_t length = 0, moved = 0;
  bool carries = false;      // `then` and `entry` follow the data
  std::uint32_t writer = 0;  // the name of the one that paid for the entry
  ThenHead then{};
  std::array<std::byte, kMaxCarried> entry;

  std::uint64_t behind = 0;  // a fence: lasting requests issued before it and not complete
  bool answered = false;     // a fence: by the peer
};

using RequestList = base::SlotList<Request, &Request::links>;

class RequestTable {
 public:
  explicit RequestTable(std::size_t most) : requests_(most) {
    for (Slot s = 0; s < most; ++s) free_.push_back(requests_.data(), s);
  }

  Request& operator[](Slot slot) { return requests_[slot]; }
  Request* data() { return requests_.data(); }
  std::size_t size() const { return requests_.size(); }
  // With the upper bit clear, so that it differs from those of silent requests.
  RequestId id(Slot slot) const {
    return {static_cast<std::uint32_t>(requests_[slot].generation) << 16 | slot};
  }
  // The request that this peer may answer, or kNoSlot.
  Slot find(std::uint32_t id, link::PeerId peer) const {
    const Slot slot = id & 0xffff;
    if (slot >= requests_.size()) return base::kNoSlot;
    const Request& r = requests_[slot];
    const bool open = r.state == RequestState::waiting || r.state == RequestState::sent;
    return open && r.peer == peer && this->id(slot).value == id ? slot : base::kNoSlot;
  }

  // A request in no list, or kNoSlot when all are in use.
  Slot add(Kind kind, link::PeerId peer, const Options& options) {
    const Slot slot = free_.take_first(requests_.data());
    if (slot == base::kNoSlot) return base::kNoSlot;
    Request& r = requests_[slot];
    r.state = RequestState::sent;
    r.kind = kind;
    r.silent = options.silent;
    r.lasting = false;
    r.peer = peer;
    r.context = options.context;
    r.serial = ++serial_;
    r.value = 0;
    r.moved = 0;
    r.carries = false;
    r.answered = false;
    return slot;
  }
  void release(Slot slot) {
    Request& r = requests_[slot];
    r.state = RequestState::free;
    r.generation = (r.generation + 1) & 0x7fff;
    free_.push_back(requests_.data(), slot);
  }

 private:
  std::vector<Request> requests_;
  RequestList free_;
  std::uint64_t serial_ = 0;
};

}  // namespace viaduct::mbcf
