// Fifo: the ring of entries, and the book-keeping of credit for its writers. It sends nothing;
// Engine::send_credit_updates (impl/fifo_credit.hpp) sends what Fifo::send_updates decides.
#include "drivers/mbcf/fifo.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <string>

namespace viaduct::mbcf {

using base::Slot;
using link::PeerId;

namespace {

// Powers of two, so that a position in the ring is a mask away; whole pages, so that it can be
// mirrored.
std::size_t ring_size(std::size_t bytes) {
  if (bytes == 0 || bytes > kMaxFifoBytes)
    throw base::SetupError("a FIFO cannot have " + std::to_string(bytes) + " bytes: choose 1 to " +
                           std::to_string(kMaxFifoBytes));
  return std::bit_ceil(std::max<std::size_t>(bytes, static_cast<std::size_t>(::getpagesize())));
}

}  // namespace

Fifo::Fifo(std::size_t bytes, std::size_t max_peers, std::vector<Fifo*>& pending_updates)
    : pending_updates_(&pending_updates),
      memory_(ring_size(bytes)),
      blocks_(memory_.size() / kBlock),
      writers_(max_peers) {}

void Fifo::pop() {
  if (ready_ == kNone) return;
  Block& entry = blocks_[ready_];
  ready_ = entry.next_ready;
  if (ready_ == kNone) last_ready_ = kNone;
  entry.state = State::over;
  reclaim();
  // Renewing only below half of the allotment saves messages: one grant for many entries.
  if (WriterCredit* w = find(entry.from); w && !w->closed && w->lent < (allotment() + 1) / 2)
    start_renewing(static_cast<Slot>(w - writers_.data()));
}

// Frees the space of entries that are over. The reader pops entries in the order in which they
// became complete, but the ring frees their space in the order in which they began: an entry that
// is still filling keeps the space of those behind it.
void Fifo::reclaim() {
  const auto mask = static_cast<std::uint32_t>(blocks_.size() - 1);
  while (used_ != 0 && blocks_[head_].state == State::over) {
    Block& entry = blocks_[head_];
    entry.state = State::free;
    used_ -= entry.blocks;
    head_ = (head_ + entry.blocks) & mask;
  }
}

Status Fifo::check(PeerId from, std::uint64_t length) const {
  if (length > capacity()) return Status::too_long;
  const WriterCredit* w = find(from);
  return w && blocks_of(length) <= w->lent ? Status::ok : Status::no_credit;
}

Status Fifo::begin(PeerId from, std::uint64_t length, std::uint32_t& at) {
  if (const Status status = check(from, length); status != Status::ok) return status;
  const auto blocks = static_cast<std::uint32_t>(blocks_of(length));
  unlend(*find(from), blocks);
  at = static_cast<std::uint32_t>((head_ + used_) & (blocks_.size() - 1));
  used_ += blocks;
  blocks_[at] = {from, kNone, length, blocks, State::filling};
  return Status::ok;
}

void Fifo::release_prepaid(PeerId from, std::uint64_t length) {
  WriterCredit* w = find(from);
  // A broken writer may claim an entry that it had no credit for.
  if (w && blocks_of(length) <= w->lent) unlend(*w, static_cast<std::uint32_t>(blocks_of(length)));
}

void Fifo::finish(std::uint32_t at) {
  blocks_[at].state = State::ready;
  (last_ready_ == kNone ? ready_ : blocks_[last_ready_].next_ready) = at;
  last_ready_ = at;
}

void Fifo::abandon(std::uint32_t at) {
  blocks_[at].state = State::over;
  reclaim();
}

const Fifo::WriterCredit* Fifo::find(PeerId peer) const {
  const std::size_t slot = slot_of(peer);
  return slot < writers_.size() && writers_[slot].peer == peer ? &writers_[slot] : nullptr;
}

// The credit, in blocks, that a writer is granted without asking: an equal share of half of the
// FIFO. The other half stays for writers that ask, so that a large entry need not wait for recalls.
std::uint32_t Fifo::allotment() const {
  const std::size_t share = blocks_.size() / (2 * std::max<std::size_t>(active_, 1));
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(share, 1, ~0u));
}

// How many blocks may be granted to the writer now to fill its allotment; 0 while half of the FIFO
// is lent.
std::uint32_t Fifo::top_up(const WriterCredit& w) const {
  const std::uint32_t target = allotment();
  const std::uint64_t half = blocks_.size() / 2;
  if (target <= w.lent || half <= lent_) return 0;
  return static_cast<std::uint32_t>(
      std::min({std::uint64_t{target - w.lent}, half - lent_, free_blocks()}));
}

bool Fifo::want(PeerId from, std::uint32_t name, std::uint32_t blocks) {
  const std::size_t slot = slot_of(from);
  if (slot >= writers_.size() || blocks > blocks_.size()) return false;
  WriterCredit& w = writers_[slot];
  if (w.peer != from) {  // a new writer, perhaps in the slot of a peer that has ended
    remove_peer(w.peer);
    w.peer = from;
    w.closed = true;  // opened below, as one that comes back
    known_ = std::max(known_, slot + 1);
  }
  if (std::exchange(w.closed, false)) {
    ++active_;
    recalling_ = false;  // recall() has not asked this one
  }
  w.name = name;
  stop_renewing(static_cast<Slot>(slot));
  // A writer that already waits keeps its place in the line and changes only what it needs.
  if (!w.wanting) start_wanting(static_cast<Slot>(slot), blocks);
  w.need = blocks;
  return true;
}

bool Fifo::give_back(PeerId from, std::uint32_t blocks, bool closing) {
  WriterCredit* w = find(from);
  if (!w || blocks > w->lent) return false;
  unlend(*w, blocks);
  w->recalled = false;
  if (closing && !std::exchange(w->closed, true)) {
    const auto slot = static_cast<Slot>(w - writers_.data());
    --active_;
    stop_wanting(slot);
    stop_renewing(slot);
    // A writer may close, open again and close before it is told: one acknowledgement for each
    // close.
    if (w->pending_close_acks++ == 0) close_acks_due_.push_back(writers_, slot);
    queue_update();
  }
  return true;
}

void Fifo::remove_peer(PeerId peer) {
  WriterCredit* w = peer ? find(peer) : nullptr;
  if (!w) return;
  const auto slot = static_cast<Slot>(w - writers_.data());
  stop_wanting(slot);
  stop_renewing(slot);
  if (w->pending_close_acks != 0) close_acks_due_.remove(writers_, slot);
  unlend(*w, w->lent);
  active_ -= !w->closed;
  *w = {};
}

void Fifo::start_wanting(Slot slot, std::uint32_t need) {
  writers_[slot].need = need;
  writers_[slot].wanting = true;
  wanting_.push_back(writers_, slot);
  queue_update();
}

// If the first in line leaves it, the next one has credit recalled on its own behalf.
void Fifo::stop_wanting(Slot slot) {
  if (!std::exchange(writers_[slot].wanting, false)) return;
  if (wanting_.first() == slot) recalling_ = false;
  wanting_.remove(writers_, slot);
}

void Fifo::start_renewing(Slot slot) {
  if (std::exchange(writers_[slot].renewing, true)) return;
  renewing_.push_back(writers_, slot);
  queue_update();
}

void Fifo::stop_renewing(Slot slot) {
  if (std::exchange(writers_[slot].renewing, false)) renewing_.remove(writers_, slot);
}

}  // namespace viaduct::mbcf
