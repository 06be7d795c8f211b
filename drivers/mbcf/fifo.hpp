// A Memory-Based FIFO at its owner: a queue in the owner's memory that many tasks append to
// ("MPI/MBCF with the NAS Parallel Benchmarks", section 2.1; the credit is ours). Each entry is
// whole and contiguous, and the owner reads it in place.
//
// Flow control: the owner grants space to the writers ahead of time as credit, counted in blocks,
// and a writer sends an entry only with credit for it. So an entry that is on its way always finds
// room, and a full FIFO exerts back-pressure on its own writers alone. (The writers' half is Writer
// in engine.hpp; the messages between the two are in impl/fifo_credit.hpp.) Each block is at any
// time in one of three states:
//
//            grant: send_updates()         entry begins: begin()
//     free -----------------------> lent -----------------------> in the queue
//      ^ ^                           |                                 |
//      | | give_back, remove_peer,   |                                 | entry over, and all
//      | | release_prepaid           |                                 | before it: reclaim()
//      | +---------------------------+                                 |
//      +---------------------------------------------------------------+
//
// Writers can reach only the bytes of entries. Where entries begin and end is noted in memory of
// its own.
//
// Ownership: the key table owns the FIFO, the FIFO owns its memory. Thread rule: the engine's owner
// thread makes all calls, the reader's included.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "drivers/base/slot_list.hpp"
#include "drivers/mbcf/mirrored_memory.hpp"
#include "drivers/mbcf/types.hpp"

namespace viaduct::mbcf {

inline constexpr std::size_t kBlock = 64;  // bytes; an entry takes at least one block
// The price of an entry of `bytes`. No sum that could overflow: a length may come from the wire.
constexpr std::uint64_t blocks_of(std::uint64_t bytes) {
  return bytes == 0 ? 1 : bytes / kBlock + (bytes % kBlock != 0);
}
inline constexpr std::size_t kMaxFifoBytes = std::size_t{1} << 36;  // 2^30 blocks fit 32 bits

// A received entry, in place: valid until it is popped or the FIFO is withdrawn.
struct Entry {
  link::PeerId from;
  std::span<const std::byte> bytes;
};

class Fifo {
 public:
  // At least `bytes` large, for writers in `max_peers` slots of the link. The FIFO adds itself to
  // `pending_updates` when it has credit messages to send; the caller has reserved room in that
  // vector, which must outlive the FIFO. Throws SetupError for an impossible size or lack of
  // memory.
  Fifo(std::size_t bytes, std::size_t max_peers, std::vector<Fifo*>& pending_updates);

  Key key() const { return key_; }
  std::size_t capacity() const { return blocks_.size() * kBlock; }  // bytes

  // The oldest entry, in place, until pop().
  std::optional<Entry> front() const {
    if (ready_ == kNone) return std::nullopt;
    const Block& entry = blocks_[ready_];
    return Entry{entry.from, {memory_.data() + ready_ * kBlock, entry.length}};
  }
  // Frees the oldest entry; the engine's next poll grants its space to writers again. Without an
  // entry it does nothing.
  void pop();

  // ---- for the engine --------------------------------------------------------------------------

  void name(Key key) { key_ = key; }

  // Whether an entry of `length` bytes from writer `from` may begin: ok, too_long or no_credit.
  Status check(link::PeerId from, std::uint64_t length) const;
  // Checks, takes the credit for the entry from the writer, and reserves the entry's blocks from
  // block `at` on. The caller then fills bytes(at) and calls finish() or abandon().
  Status begin(link::PeerId from, std::uint64_t length, std::uint32_t& at);
  std::byte* bytes(std::uint32_t at) const { return memory_.data() + std::size_t{at} * kBlock; }
  // Frees the credit for an entry that its writer has paid for and that will not come, because the
  // write that it was chained to was refused.
  void release_prepaid(link::PeerId from, std::uint64_t length);
  // The entry's bytes are all there: the reader may have it.
  void finish(std::uint32_t at);
  // The entry's bytes will never all be there: its writer has ended.
  void abandon(std::uint32_t at);

  // The writer needs `blocks` more than it has. This replaces what it asked for before. `name` is
  // its name for this FIFO. Registers the writer if it is new, or opens it again if it had closed.
  // False: the FIFO is not that large.
  bool want(link::PeerId from, std::uint32_t name, std::uint32_t blocks);
  // The writer returns unspent credit. `closing`: it wants no more, and is due an acknowledgement
  // that it gets behind all grants. False: it does not have so many blocks.
  bool give_back(link::PeerId from, std::uint32_t blocks, bool closing);
  // The writer's peer has ended: its credit is free again, and nothing is due to it.
  void remove_peer(link::PeerId peer);
  // Calls visit(peer, name) for each writer that waits for credit or for the acknowledgement of its
  // close, at most max_waiting() times: the FIFO is being withdrawn.
  std::size_t max_waiting() const { return wanting_.size() + close_acks_due_.size(); }
  template <class Visit>
  void each_waiting(Visit visit) const {
    for (std::size_t slot = 0; slot < known_; ++slot)
      if (const WriterCredit& w = writers_[slot]; w.wanting || w.pending_close_acks != 0)
        visit(w.peer, w.name);
  }

  // Whether credit messages are left to be sent. If not, the engine takes the FIFO out of its
  // pending_updates_.
  bool has_updates() {
    update_queued_ = !wanting_.empty() || !renewing_.empty() || !close_acks_due_.empty();
    return update_queued_;
  }
  // Sends the credit messages that can be sent now. Calls send_grant(peer, name, blocks),
  // send_recall(peer, name) and send_close_ack(peer, name), which return whether the link took the
  // message. Writers that wait come before those that are only topped up.
  template <class SendGrant, class SendRecall, class SendCloseAck>
  void send_updates(SendGrant send_grant, SendRecall send_recall, SendCloseAck send_close_ack) {
    for (std::size_t left = close_acks_due_.size(); left != 0; --left) {
      const base::Slot slot = close_acks_due_.take_first(writers_);
      WriterCredit& w = writers_[slot];
      w.pending_close_acks -= send_close_ack(w.peer, w.name);
      if (w.pending_close_acks != 0) close_acks_due_.push_back(writers_, slot);
    }
    grant_wanting(send_grant);
    if (wanting_.empty())
      renew(send_grant);
    else
      recall(send_recall);
  }

  std::uint64_t free_blocks() const { return blocks_.size() - used_ - lent_; }
  std::uint64_t lent_blocks() const { return lent_; }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  // An entry, as the reader's side sees it:
  //
  //          begin()            finish()            pop()
  //    free --------> filling ----------> ready ----------> over
  //     ^                |           (front() shows         ^  |
  //     |                |            the first one)        |  |
  //     |                +------ abandon(): peer ended -----+  |
  //     |                                                      |
  //     +------------------------------------------------------+
  //             reclaim(): when it is the first in the ring
  //
  // Entries become ready in the order in which they are finished, which the list from ready_ on
  // keeps. Their space is a ring, and becomes free in the order in which they began.
  enum class State : std::uint8_t { free, filling, ready, over };

  // Book-keeping for a block of the ring. Only that of an entry's first block is in use.
  struct Block {
    link::PeerId from;
    std::uint32_t next_ready;  // ready: the first block of the entry after this one, or kNone
    std::uint64_t length;      // bytes
    std::uint32_t blocks;      // that the entry takes
    State state = State::free;
  };
  // A writer as the owner knows it; PeerId{}: none in this slot.
  //
  //    none --want--> open, wanting --grant--> open --want--> open, wanting
  //    open --give_back, closing--> closed, close ack is due     closed --want--> open, wanting
  //    any --remove_peer--> none
  //
  // `renewing` is set beside that, when pop() finds that an open writer has less than half of its
  // allotment.
  struct WriterCredit {
    base::SlotLinks wanting_links, renewing_links, close_ack_links;
    link::PeerId peer;
    std::uint32_t name = 0;  // the writer's name for this FIFO, repeated in all messages to it
    std::uint32_t lent = 0;  // blocks of credit that it has or that are under way, either way
    std::uint32_t need = 0;  // while wanting: blocks beyond what it has
    // wanting: it has asked for credit and waits, in wanting_. renewing: to be topped up without
    // having asked, in renewing_. recalled: asked to give back what it has not spent.
    bool wanting = false, renewing = false, recalled = false;
    bool closed = false;                   // it gets no more credit
    std::uint32_t pending_close_acks = 0;  // of its closes, still to be sent: in close_acks_due_
  };

  std::size_t slot_of(link::PeerId peer) const { return peer.value & 0xffff; }
  const WriterCredit* find(link::PeerId peer) const;
  WriterCredit* find(link::PeerId peer) {
    return const_cast<WriterCredit*>(static_cast<const Fifo*>(this)->find(peer));
  }
  std::uint32_t allotment() const;
  void reclaim();
  void lend(WriterCredit& w, std::uint32_t blocks) {
    w.lent += blocks;
    lent_ += blocks;
    w.recalled = false;  // an answer to the recall that is on its way does not return this grant
  }
  void unlend(WriterCredit& w, std::uint32_t blocks) {
    w.lent -= blocks;
    lent_ -= blocks;
  }
  void stop_wanting(base::Slot slot);
  void stop_renewing(base::Slot slot);
  std::uint32_t top_up(const WriterCredit& w) const;

  // Grants in the order of asking, and stops at the first that cannot be served: otherwise writers
  // of small entries would starve one that needs much.
  template <class SendGrant>
  void grant_wanting(SendGrant send) {
    for (std::size_t left = wanting_.size(); left != 0; --left) {
      const base::Slot slot = wanting_.first();
      WriterCredit& w = writers_[slot];
      const std::uint32_t whole = w.need;
      // The writer counted its need before grants arrived that were on their way. Its need and what
      // it has by now may exceed the FIFO, and it would wait for ever: so limit the need.
      const auto need =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(whole, blocks_.size() - w.lent));
      if (need > free_blocks()) return;
      stop_wanting(slot);
      // Also a grant of no blocks is sent: it tells a new writer the capacity.
      const std::uint32_t blocks = std::max(need, top_up(w));
      if (send(w.peer, w.name, blocks)) {
        lend(w, blocks);
      } else {  // the link is full for this peer: to the end, the link may take others' grants
        start_wanting(slot, whole);
      }
    }
  }
  // Tops up writers that have spent more than half of their allotment.
  template <class SendGrant>
  void renew(SendGrant send) {
    for (std::size_t left = renewing_.size(); left != 0; --left) {
      const base::Slot slot = renewing_.first();
      WriterCredit& w = writers_[slot];
      stop_renewing(slot);
      const std::uint32_t blocks = top_up(w);
      if (blocks == 0) continue;
      if (send(w.peer, w.name, blocks)) {
        lend(w, blocks);
      } else {
        start_renewing(slot);
      }
    }
  }
  // The first writer in wanting_ needs more than is free (or the link did not take its grant):
  // asks all others to give back what they have not spent. Once for each first writer; again at the
  // next poll for those whose message the link did not take.
  template <class SendRecall>
  void recall(SendRecall send) {
    if (recalling_) return;
    bool all = true;
    for (base::Slot slot = 0; slot < known_; ++slot) {
      WriterCredit& w = writers_[slot];
      if (slot == wanting_.first() || w.lent == 0 || w.recalled || w.closed) continue;
      w.recalled = send(w.peer, w.name);
      all = all && w.recalled;
    }
    recalling_ = all;
  }
  void start_wanting(base::Slot slot, std::uint32_t need);
  void start_renewing(base::Slot slot);

  // Has the engine call send_updates() at its next poll.
  void queue_update() {
    if (!std::exchange(update_queued_, true)) pending_updates_->push_back(this);
  }

  Key key_;
  std::vector<Fifo*>* pending_updates_;
  bool update_queued_ = false;         // in pending_updates_
  MirroredMemory memory_;              // the entries' bytes
  std::vector<Block> blocks_;          // one for each block of memory_; a power of two
  std::vector<WriterCredit> writers_;  // by the slot in their PeerId
  std::uint32_t head_ = 0;             // block of the entry that began first
  std::uint64_t used_ = 0, lent_ = 0;  // blocks in the queue; blocks of credit granted
  std::uint32_t ready_ = kNone, last_ready_ = kNone;  // complete entries, in order of completion
  std::size_t known_ = 0;                             // slots below this one may be in use
  std::uint32_t active_ = 0;                          // writers that are open
  bool recalling_ = false;  // all others have been asked on behalf of the first in wanting_
  base::SlotList<WriterCredit, &WriterCredit::wanting_links> wanting_;
  base::SlotList<WriterCredit, &WriterCredit::renewing_links> renewing_;
  base::SlotList<WriterCredit, &WriterCredit::close_ack_links> close_acks_due_;
};

}  // namespace viaduct::mbcf
