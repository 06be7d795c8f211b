// What a task offers to others, by key: segments, FIFOs and signals. The only way from a request's
// key to an address.
#pragma once

#include <memory>
#include <vector>

#include "drivers/base/random.hpp"
#include "drivers/base/ring_buffer.hpp"
#include "drivers/mbcf/fifo.hpp"
#include "drivers/mbcf/types.hpp"

namespace viaduct::mbcf {

struct Signal {
  SignalHandler handler;      // either this...
  int fd = -1;                // ... or an eventfd
  std::uint64_t pending = 0;  // raised and not yet told
  bool withdrawn = false;

  Signal() = default;
  ~Signal();
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
};

class KeyTable {
 public:
  explicit KeyTable(std::size_t most);

  // Key{} when the table is full.
  Key add_segment(std::span<std::byte> memory, Rights rights);
  Key add(std::unique_ptr<Fifo> fifo);
  Key add(std::unique_ptr<Signal> signal);
  bool full() const { return free_.empty(); }
  // Takes the key back; false when it is not in use. What it named is left in `fifo` or `signal`.
  bool remove(Key key, std::unique_ptr<Fifo>& fifo, std::unique_ptr<Signal>& signal);

  // The address of bytes in a segment, or why not. Nothing about the range may be believed.
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
  struct Object {
    Key key;
    std::byte* base = nullptr;
    std::uint64_t size = 0;
    Kind kind = Kind::none;
    Rights rights = Rights::none;
    Key withdrawn;  // named this place last
    std::unique_ptr<Fifo> fifo;
    std::unique_ptr<Signal> signal;
  };
  Object* place(Kind kind);
  Status missing(Key key) const;

  // One for each value of a key's lower 16 bits would waste memory: those beyond `most` share the
  // last one, which is never in use.
  std::vector<Object> storage_;
  struct Index {
    const Object* base;
    std::size_t last;
    const Object& operator[](std::size_t i) const { return base[i < last ? i : last]; }
  } objects_;
  base::RandomBits random_;
  base::RingBuffer<std::uint16_t> free_;  // the one withdrawn longest ago first
};

}  // namespace viaduct::mbcf
