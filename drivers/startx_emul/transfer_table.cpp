// Moves transfers and requests between the lists of transfer_table.hpp. enter() and move() set
// every state, so that a transfer is in the list of its state and list_of() finds that list.
#include "drivers/startx_emul/transfer_table.hpp"

namespace viaduct::startx {

TransferTable::TransferTable(std::size_t most)
    : most_(most), transfers_(2 * most), requests_(most) {
  for (Slot slot = 0; slot < most; ++slot) free_requests_.push_back(requests_, slot);
}

Slot TransferTable::find(TransferId id, TransferState state) const {
  const Slot slot = transfers_.find(id);
  return slot != base::kNoSlot && transfers_[slot].state == state ? slot : base::kNoSlot;
}

// A free transfer is in no list.
TransferList& TransferTable::list_of(Slot slot) {
  const Transfer& t = transfers_[slot];
  switch (t.state) {
    case TransferState::posted: return posts_[bucket(t.tag)];
    case TransferState::matched: return matched_;
    case TransferState::open: return open_;
    case TransferState::requested: return requested_;
    case TransferState::sending: return sending_;
    case TransferState::sent: return sent_;
    case TransferState::complete:
    case TransferState::free: break;
  }
  return complete_;
}

Slot TransferTable::add(bool receiving) {
  if (in_use_[receiving] == most_) return base::kNoSlot;
  ++in_use_[receiving];
  const Slot slot = transfers_.insert();  // there is room for as many of both directions
  transfers_[slot] = Transfer{};
  transfers_[slot].receiving = receiving;
  return slot;
}

void TransferTable::enter(Slot slot, TransferState first) {
  transfers_[slot].state = first;
  list_of(slot).push_back(transfers_, slot);
}

void TransferTable::move(Slot slot, TransferState next) {
  list_of(slot).remove(transfers_, slot);
  enter(slot, next);
}

void TransferTable::remove(Slot slot) {
  list_of(slot).remove(transfers_, slot);
  free(slot);
}

void TransferTable::free(Slot slot) {
  Transfer& t = transfers_[slot];
  t.state = TransferState::free;
  --in_use_[t.receiving];
  transfers_.erase(slot);
}

Slot TransferTable::take_complete() {
  return complete_.take_first(transfers_);
}

void TransferTable::free_if_finished(Slot slot) {
  Transfer& t = transfers_[slot];
  // take_complete() has taken the transfer out of its list when `taken` is set.
  if (t.taken && t.pending_control == PendingControl::none) free(slot);
}

void TransferTable::set_pending_control(Slot slot, PendingControl control) {
  Transfer& t = transfers_[slot];
  if (t.pending_control == PendingControl::none) pending_controls_.push_back(transfers_, slot);
  t.pending_control = control;
}

void TransferTable::clear_pending_control(Slot slot) {
  Transfer& t = transfers_[slot];
  if (t.pending_control == PendingControl::none) return;
  t.pending_control = PendingControl::none;
  pending_controls_.remove(transfers_, slot);
}

// Different tags may share a bucket, so the tag is compared as well.
Slot TransferTable::find_post(link::PeerId from, std::uint32_t tag) const {
  const TransferList& posts = posts_[bucket(tag)];
  for (Slot slot = posts.first(); slot != base::kNoSlot;
       slot = TransferList::after(transfers_, slot)) {
    const Transfer& t = transfers_[slot];
    if (t.tag == tag && (!t.peer || t.peer == from)) return slot;
  }
  return base::kNoSlot;
}

bool TransferTable::add_unexpected(const Request& request) {
  const Slot slot = free_requests_.take_first(requests_);
  if (slot == base::kNoSlot) return false;
  requests_[slot] = request;
  unexpected_[bucket(request.tag)].push_back(requests_, slot);
  return true;
}

bool TransferTable::take_unexpected(link::PeerId from_or_any, std::uint32_t tag, Request& request) {
  RequestList& list = unexpected_[bucket(tag)];
  for (Slot slot = list.first(); slot != base::kNoSlot;
       slot = RequestList::after(requests_, slot)) {
    const Request& r = requests_[slot];
    if (r.tag != tag || (from_or_any && r.from != from_or_any)) continue;
    request = r;
    list.remove(requests_, slot);
    free_requests_.push_back(requests_, slot);
    return true;
  }
  return false;
}

void TransferTable::drop_unexpected(link::PeerId from) {
  for (RequestList& list : unexpected_) {
    for (Slot slot = list.first(); slot != base::kNoSlot;) {
      const Slot next = RequestList::after(requests_, slot);
      if (requests_[slot].from == from) {
        list.remove(requests_, slot);
        free_requests_.push_back(requests_, slot);
      }
      slot = next;
    }
  }
}

}  // namespace viaduct::startx
