// A Memory-Based FIFO at its owner: a queue in the owner's memory that many tasks append to. Each
// entry is whole and contiguous and is read in place.
//
// Space is lent to the writers ahead of time as credit, counted in blocks, and an entry is sent
// only with credit for it. So an entry that is on its way always finds room, and a full FIFO holds
// up nobody but those who write to it. All space is at any time one of: free, lent, or in the
// queue.
//
// Only the bytes of entries lie where writers write. What says where entries begin and end is the
// driver's own.
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
constexpr std::uint64_t blocks_of(std::uint64_t bytes) {
  return bytes == 0 ? 1 : bytes / kBlock + (bytes % kBlock != 0);
}
inline constexpr std::size_t kMaxFifoBytes = std::size_t{1} << 36;

// A received entry, in place: valid until popped.
struct Entry {
  link::PeerId from;
  std::span<const std::byte> bytes;
};

class Fifo {
 public:
  // At least `bytes` large. Adds itself to `news` when it has something to tell its writers; there
  // is room. Throws SetupError.
  Fifo(std::size_t bytes, std::size_t max_peers, std::vector<Fifo*>& news);

  Key key() const { return key_; }
  std::size_t capacity() const { return blocks_.size() * kBlock; }  // bytes

  // The oldest entry, in place, until pop().
  std::optional<Entry> front() const {
    if (ready_ == kNone) return std::nullopt;
    const Block& entry = blocks_[ready_];
    return Entry{entry.from, {memory_.data() + ready_ * kBlock, entry.length}};
  }
  void pop();

  // ---- for the engine --------------------------------------------------------------------------

  void name(Key key) { key_ = key; }

  // Whether an entry of `length` bytes from `from` may begin: it has the credit for it...
  Status check(link::PeerId from, std::uint64_t length) const;
  // ... and it does, at `at`, paid for with that.
  Status begin(link::PeerId from, std::uint64_t length, std::uint32_t& at);
  std::byte* bytes(std::uint32_t at) const { return memory_.data() + std::size_t{at} * kBlock; }
  // An entry that was paid for will not come, as what it was to follow was refused.
  void forgo(link::PeerId from, std::uint64_t length);
  // It is all there: the reader may have it...
  void finish(std::uint32_t at);
  // ... or never will be.
  void abandon(std::uint32_t at);

  // A writer needs that many blocks more than it has; what it said before no longer counts. `name`
  // is its name for this FIFO. False: impossible.
  bool want(link::PeerId from, std::uint32_t name, std::uint32_t blocks);
  // `closing`: it wants no more, and hears a farewell behind all it was sent before.
  bool give_back(link::PeerId from, std::uint32_t blocks, bool closing);
  // The writer has ended; what it was lent is free again.
  void forget(link::PeerId peer);
  // Calls tell(peer, name) for each writer that waits to hear something: credit or a farewell. At
  // most most_waiting() times.
  std::size_t most_waiting() const { return wanting_.size() + leaving_.size(); }
  template <class Tell>
  void each_waiting(Tell tell) const {
    for (std::size_t slot = 0; slot < known_; ++slot)
      if (const Writer& w = writers_[slot]; w.wanting || w.farewells != 0) tell(w.peer, w.name);
  }

  // What writers are to be told. Calls send_grant(peer, name, blocks), send_recall(peer, name) and
  // send_farewell(peer, name), which say whether the message could be sent.
  bool has_news() {
    listed_ = !wanting_.empty() || !renewing_.empty() || !leaving_.empty();
    return listed_;
  }
  template <class SendGrant, class SendRecall, class SendFarewell>
  void tell(SendGrant send_grant, SendRecall send_recall, SendFarewell send_farewell) {
    for (std::size_t left = leaving_.size(); left != 0; --left) {
      const base::Slot slot = leaving_.take_first(writers_.data());
      Writer& w = writers_[slot];
      w.farewells -= send_farewell(w.peer, w.name);
      if (w.farewells != 0) leaving_.push_back(writers_.data(), slot);
    }
    serve_wanting(send_grant);
    if (wanting_.empty())
      renew(send_grant);
    else
      recall(send_recall);
  }

  std::uint64_t free_blocks() const { return blocks_.size() - used_ - lent_; }
  std::uint64_t lent_blocks() const { return lent_; }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  enum class State : std::uint8_t { free, filling, ready, over };

  // The first block of an entry speaks for all of them.
  struct Block {
    link::PeerId from;
    std::uint32_t next_ready;
    std::uint64_t length;
    std::uint32_t blocks;
    State state = State::free;
  };
  struct Writer {
    base::SlotLinks wanting_links, renewing_links, leaving_links;
    link::PeerId peer;
    std::uint32_t name = 0;
    std::uint32_t lent = 0;  // credit that it has or that is under way in either direction
    std::uint32_t need = 0;  // while wanting: more than it has
    bool wanting = false, renewing = false, recalled = false;
    bool closed = false;
    std::uint32_t farewells = 0;  // due: in leaving_
  };

  std::size_t slot_of(link::PeerId peer) const { return peer.value & 0xffff; }
  const Writer* find(link::PeerId peer) const;
  Writer* find(link::PeerId peer) {
    return const_cast<Writer*>(static_cast<const Fifo*>(this)->find(peer));
  }
  std::uint32_t allotment() const;
  void reclaim();
  void lend(Writer& w, std::uint32_t blocks) {
    w.lent += blocks;
    lent_ += blocks;
    w.recalled = false;  // an answer that is on its way does not give this back
  }
  void unlend(Writer& w, std::uint32_t blocks) {
    w.lent -= blocks;
    lent_ -= blocks;
  }
  void stop_wanting(base::Slot slot);
  void stop_renewing(base::Slot slot);
  std::uint32_t top_up(const Writer& w) const;

  // In turn: whoever needs much is not passed by those who need little.
  template <class SendGrant>
  void serve_wanting(SendGrant send) {
    for (std::size_t left = wanting_.size(); left != 0; --left) {
      const base::Slot slot = wanting_.first();
      Writer& w = writers_[slot];
      const std::uint32_t whole = w.need;
      // Not more than there can be beside what it has: that may have come since it asked.
      const auto need =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(whole, blocks_.size() - w.lent));
      if (need > free_blocks()) return;
      stop_wanting(slot);
      const std::uint32_t blocks = std::max(need, top_up(w));
      if (send(w.peer, w.name, blocks)) {
        lend(w, blocks);
      } else {  // the link is full: to the end, others may have room
        start_wanting(slot, whole);
      }
    }
  }
  template <class SendGrant>
  void renew(SendGrant send) {
    for (std::size_t left = renewing_.size(); left != 0; --left) {
      const base::Slot slot = renewing_.first();
      Writer& w = writers_[slot];
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
  // The first in line needs more than is free: others give back what they have not spent.
  template <class SendRecall>
  void recall(SendRecall send) {
    if (recalling_) return;
    bool all = true;
    for (base::Slot slot = 0; slot < known_; ++slot) {
      Writer& w = writers_[slot];
      if (slot == wanting_.first() || w.lent == 0 || w.recalled || w.closed) continue;
      w.recalled = send(w.peer, w.name);
      all = all && w.recalled;
    }
    recalling_ = all;
  }
  void start_wanting(base::Slot slot, std::uint32_t need);
  void start_renewing(base::Slot slot);

  void list() {
    if (!std::exchange(listed_, true)) news_->push_back(this);
  }

  Key key_;
  std::vector<Fifo*>* news_;
  bool listed_ = false;  // in news_
  MirroredMemory memory_;
  std::vector<Block> blocks_;
  std::vector<Writer> writers_;  // by the slot in their PeerId
  std::uint32_t head_ = 0;       // block of the oldest entry
  std::uint64_t used_ = 0, lent_ = 0;
  std::uint32_t ready_ = kNone, last_ready_ = kNone;  // complete entries, in order of completion
  std::size_t known_ = 0;                             // slots below this one may be in use
  std::uint32_t active_ = 0;                          // writers there are
  bool recalling_ = false;  // the others have been asked on behalf of the first in line
  base::SlotList<Writer, &Writer::wanting_links> wanting_;
  base::SlotList<Writer, &Writer::renewing_links> renewing_;
  base::SlotList<Writer, &Writer::leaving_links> leaving_;
};

}  // namespace viaduct::mbcf
