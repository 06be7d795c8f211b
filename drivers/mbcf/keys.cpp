// KeyTable: making and withdrawing keys. Allocation-free lookups, which the data path uses, are
// inline in keys.hpp.
#include "drivers/mbcf/keys.hpp"

#include <bit>
#include <string>
#include <utility>

#include "drivers/base/prefetch.hpp"

namespace viaduct::mbcf {

namespace {

std::size_t checked(std::size_t max_keys) {
  if (max_keys == 0 || max_keys > kMaxKeys)
    throw base::SetupError("MBCF cannot work with max_keys = " + std::to_string(max_keys) +
                           ": choose 1 to " + std::to_string(kMaxKeys));
  return max_keys;
}

}  // namespace

KeyTable::KeyTable(std::size_t max_keys)
    : storage_(checked(max_keys) + 1),
      objects_{storage_.data(), max_keys},
      free_(std::bit_ceil(max_keys)) {
  for (std::size_t i = 0; i < max_keys; ++i) {
    *free_.back() = static_cast<std::uint16_t>(i);
    free_.push();
  }
}

// Takes a free place and draws a key for it; nullptr when there is none.
KeyTable::Object* KeyTable::place(Kind kind) {
  const std::uint16_t* slot = free_.front();
  if (slot == nullptr) return nullptr;
  Object& o = storage_[*slot];
  do {
    o.key = {(random_.next() & ~std::uint64_t{0xffff}) | *slot};
    // Zero random bits could make Key{}. The last key must go on being answered `withdrawn`.
  } while (o.key.value >> 16 == 0 || o.key == o.withdrawn);
  o.kind = kind;
  free_.pop();
  // The place that was used longest ago comes next, so it is in no near cache.
  if (const std::uint16_t* next = free_.front()) base::prefetch_for_write(&storage_[*next]);
  return &o;
}

Key KeyTable::add_segment(std::span<std::byte> memory, Rights rights) {
  Object* o = place(Kind::segment);
  if (o == nullptr) return {};
  o->base = memory.data();
  o->size = memory.size();
  o->rights = rights;
  return o->key;
}

Key KeyTable::add(std::unique_ptr<Fifo> fifo) {
  Object* o = place(Kind::fifo);
  if (o == nullptr) return {};
  fifo->name(o->key);
  o->fifo = std::move(fifo);
  return o->key;
}

Key KeyTable::add(std::unique_ptr<Signal> signal) {
  Object* o = place(Kind::signal);
  if (o == nullptr) return {};
  o->signal = std::move(signal);
  return o->key;
}

// The object with that key; nullptr: there is none.
KeyTable::Object* KeyTable::find(Key key) {
  const std::size_t slot = key.value & 0xffff;
  // The last place in storage_ is never in use. Key{} would match a free place.
  if (slot + 1 >= storage_.size() || !key || storage_[slot].key != key) return nullptr;
  return &storage_[slot];
}

void KeyTable::free(Object& o) {
  *free_.back() = static_cast<std::uint16_t>(o.key.value & 0xffff);
  free_.push();
  o.withdrawn = o.key;
  o.key = {};
  o.kind = Kind::none;
  o.base = nullptr;
  o.size = 0;
}

bool KeyTable::remove(Key key, std::unique_ptr<Fifo>& fifo, std::unique_ptr<Signal>& signal) {
  Object* const o = find(key);
  if (o == nullptr) return false;
  fifo = std::move(o->fifo);
  signal = std::move(o->signal);
  free(*o);
  return true;
}

bool KeyTable::remove_segment(Key key) {
  Object* const o = find(key);
  if (o == nullptr || o->kind != Kind::segment) return false;
  free(*o);
  return true;
}

// Why the lookup of a key failed: there is a key, but of another kind; or the key was withdrawn; or
// there is no such key.
Status KeyTable::missing(Key key) const {
  const Object& o = objects_[key.value & 0xffff];
  if (!key) return Status::no_key;
  if (o.key == key) return Status::wrong_kind;
  return o.withdrawn == key ? Status::withdrawn : Status::no_key;
}

}  // namespace viaduct::mbcf
