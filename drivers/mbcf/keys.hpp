// The table of remote keys: what a task has registered for others (segments, FIFOs, signals). It
// takes the place of the page table, which protected the target task in the original MBCF. The only
// way from a request's key to an address leads through here, with a check of rights and range.
//
// Not a base::SlotMap: keys have 48 random bits where an id has a generation, so that no peer can
// guess one.
//
// Ownership: the table owns FIFOs and signals, and never the memory of segments. Thread rule: the
// engine's owner thread. A lookup allocates nothing.
#pragma once

#include <memory>
#include <vector>

#include "drivers/base/random.hpp"
#include "drivers/base/ring_buffer.hpp"
#include "drivers/base/unique_fd.hpp"
#include "drivers/mbcf/fifo.hpp"
#include "drivers/mbcf/types.hpp"

namespace viaduct::mbcf {

// A Memory-Based Signal at its owner: runs a handler or makes a file descriptor readable.
struct Signal {
  SignalHandler handler;      // either this...
  base::UniqueFd fd;          // ... or an eventfd
  std::uint64_t pending = 0;  // how often it was raised since the handler or eventfd was told
  bool withdrawn = false;     // only kept because Engine::raised_ may point to it
};

class KeyTable {
 public:
  // Room for `max_keys` keys, 1 to kMaxKeys. Throws SetupError for another number.
  explicit KeyTable(std::size_t max_keys);

  // Register something under a new key. Key{} when the table is full; a FIFO or signal that was
  // passed is destroyed then.
  Key add_segment(std::span<std::byte> memory, Rights rights);
  Key add(std::unique_ptr<Fifo> fifo);
  Key add(std::unique_ptr<Signal> signal);
  bool full() const { return free_.empty(); }
  // Deregisters; false when the key is not in use. The FIFO or signal that the key named passes to
  // the caller.
  bool remove(Key key, std::unique_ptr<Fifo>& fifo, std::unique_ptr<Signal>& signal);
  // The same for a segment; false, too, if the key names something else.
  bool remove_segment(Key key);

  // The target's lookups: Status::ok with the result, or the reason of the refusal. The result is
  // valid until the key is withdrawn.
  //
  // segment(): the address of `length` bytes from `offset` on. All arguments come from the wire, so
  // the range is checked without arithmetic that could overflow.
  Status segment(Key key, std::uint64_t offset, std::uint64_t length, Rights wanted,
                 std::byte*& at) const {
    const Object& o = objects_[key.value & 0xffff];
    if (o.key != key || o.kind != Kind::segment) [[unlikely]]
      return missing(key);
    if (!includes(o.rights, wanted)) [[unlikely]]
      return Status::no_right;
    if (offset > o.size || length > o.size - offset) [[unlikely]]
      return Status::out_of_range;
    at = o.base + offset;
    return Status::ok;
  }
  Status fifo(Key key, Fifo*& fifo) const {
    const Object& o = objects_[key.value & 0xffff];
    if (o.key != key || o.kind != Kind::fifo) [[unlikely]]
      return missing(key);
    fifo = o.fifo.get();
    return Status::ok;
  }
  Status signal(Key key, Signal*& signal) const {
    const Object& o = objects_[key.value & 0xffff];
    if (o.key != key || o.kind != Kind::signal) [[unlikely]]
      return missing(key);
    signal = o.signal.get();
    return Status::ok;
  }

 private:
  enum class Kind : std::uint8_t { none, segment, fifo, signal };
  // One place in the table. `kind` says which of the members are in use.
  struct Object {
    Key key;                    // Key{}: the place is free
    std::byte* base = nullptr;  // segment
    std::uint64_t size = 0;     // segment, bytes
    Kind kind = Kind::none;
    Rights rights = Rights::none;  // segment
    Key withdrawn;                 // the key that named this place last, to answer `withdrawn`
    std::unique_ptr<Fifo> fifo;
    std::unique_ptr<Signal> signal;
  };
  Object* place(Kind kind);
  Object* find(Key key);
  void free(Object& object);
  Status missing(Key key) const;

  // `max_keys` places and one more that stays free. A key's lower 16 bits can name places that are
  // not there; the index leads all of those to that last one, where no key matches. So they fail as
  // any wrong key does, and the table needs no 65536 places.
  std::vector<Object> storage_;
  struct Index {
    const Object* base;
    std::size_t last;
    const Object& operator[](std::size_t i) const { return base[i < last ? i : last]; }
  } objects_;
  base::RandomBits random_;  // keys cannot be guessed from other keys
  // Free places, the one withdrawn longest ago first: so `withdrawn` is answered for long.
  base::RingBuffer<std::uint16_t> free_;
};

}  // namespace viaduct::mbcf
