// Moves transfers and requests between the lists of transfer_table.hpp. enter() and move() set
// every state, so that a transfer is in the list of its state and list_of() finds that list.
#include "drivers/startx_emul/transfer_table.hpp"

namespace viaduct::startx {

TransferTable::TransferTable(std::size_t most) : transfers_(2 * most), requests_(most) {
  for (Slot slot = 0; slot < transfers_.size(); ++slot) {
    transfers_[slot].receiving = slot >= most;
    (slot < most ? free_sends_ : free_receives_).push_back(data(), slot);
  }
  for (Slot slot = 0; slot < most; ++slot) free_requests_.push_back(requests_.data(), slot);
}

TransferId TransferTable::id(Slot slot) const {
  return {static_cast<std::uint32_t>(transfers_[slot].generation) << 16 | slot};
}

// Slots and names: the generation is in the upper half, the index in the lower one.
Slot TransferTable::find(TransferId id, TransferState state) const {
  const Slot slot = id.value & 0xffff;
  if (slot >= transfers_.size()) return base::kNoSlot;
  const Transfer& t = transfers_[slot];
  return t.state == state && t.generation == id.value >> 16 ? slot : base::kNoSlot;
}

TransferList& TransferTable::list_of(Slot slot) {
  const Transfer& t = transfers_[slot];
  switch (t.state) {
    case TransferState::posted: return posts_[bucket(t.tag)];
    case TransferState::matched: return matched_;
    case TransferState::open: return open_;
    case TransferState::requested: return requested_;
    case TransferState::sending: return sending_;
    case TransferState::sent: return sent_;
    case TransferState::complete: return complete_;
    case TransferState::free: break;
  }
  return t.receiving ? free_receives_ : free_sends_;
}

Slot TransferTable::add(bool receiving) {
  const Slot slot = (receiving ? free_receives_ : free_sends_).take_first(data());
  if (slot == base::kNoSlot) return base::kNoSlot;
  // All is cleared but the generation, which must go on so that old names stay invalid.
  const std::uint16_t before = transfers_[slot].generation;
  transfers_[slot] = Transfer{};
  Transfer& t = transfers_[slot];
  t.generation = before == 0xffff ? 1 : before + 1;  // never 0: no name may be 0
  t.receiving = receiving;
  return slot;
}

void TransferTable::enter(Slot slot, TransferState first) {
  transfers_[slot].state = first;
  list_of(slot).push_back(data(), slot);
}

void TransferTable::move(Slot slot, TransferState next) {
  list_of(slot).remove(data(), slot);
  enter(slot, next);
}

void TransferTable::free_if_finished(Slot slot) {
  Transfer& t = transfers_[slot];
  // next_completion() has taken the transfer out of the list of `complete` when `taken` is set, so
  // it is in no list and only has to enter one.
  if (!t.taken || t.pending_control != PendingControl::none) return;
  enter(slot, TransferState::free);
}

void TransferTable::set_pending_control(Slot slot, PendingControl control) {
  Transfer& t = transfers_[slot];
  if (t.pending_control == PendingControl::none) pending_controls_.push_back(data(), slot);
  t.pending_control = control;
}

void TransferTable::clear_pending_control(Slot slot) {
  Transfer& t = transfers_[slot];
  if (t.pending_control == PendingControl::none) return;
  t.pending_control = PendingControl::none;
  pending_controls_.remove(data(), slot);
}

// Different tags may share a bucket, so the tag is compared as well.
Slot TransferTable::find_post(link::PeerId from, std::uint32_t tag) const {
  const TransferList& posts = posts_[bucket(tag)];
  for (Slot slot = posts.first(); slot != base::kNoSlot;
       slot = TransferList::after(transfers_.data(), slot)) {
    const Transfer& t = transfers_[slot];
    if (t.tag == tag && (!t.peer || t.peer == from)) return slot;
  }
  return base::kNoSlot;
}

bool TransferTable::add_unexpected(const Request& request) {
  const Slot slot = free_requests_.take_first(requests_.data());
  if (slot == base::kNoSlot) return false;
  requests_[slot] = request;
  unexpected_[bucket(request.tag)].push_back(requests_.data(), slot);
  return true;
}

bool TransferTable::take_unexpected(link::PeerId from_or_any, std::uint32_t tag, Request& request) {
  RequestList& list = unexpected_[bucket(tag)];
  for (Slot slot = list.first(); slot != base::kNoSlot;
       slot = RequestList::after(requests_.data(), slot)) {
    const Request& r = requests_[slot];
    if (r.tag != tag || (from_or_any && r.from != from_or_any)) continue;
    request = r;
    list.remove(requests_.data(), slot);
    free_requests_.push_back(requests_.data(), slot);
    return true;
  }
  return false;
}

void TransferTable::drop_unexpected(link::PeerId from) {
  for (RequestList& list : unexpected_) {
    for (Slot slot = list.first(); slot != base::kNoSlot;) {
      const Slot next = RequestList::after(requests_.data(), slot);
      if (requests_[slot].from == from) {
        list.remove(requests_.data(), slot);
        free_requests_.push_back(requests_.data(), slot);
      }
      slot = next;
    }
  }
}

}  // namespace viaduct::startx
