// Packing and unpacking: copies between the items of a buffer and a packed stream, for any part of
// the packed form, so that long messages can go in pieces. layout.hpp finds the bytes; here they
// move.
#include "libmpi_lite/core/data/datatype.hpp"

#include <cstring>

namespace viaduct::mpi {

namespace {

// Copies between memory, at the places that a layout tells, and a packed stream, in either
// direction. It is the leaf function of Layout::visit(). Addresses are numbers, not pointers,
// because buffers may start at MPI_BOTTOM.
template <bool kPack>
class Copier {
 public:
  using Stream = std::conditional_t<kPack, std::byte, const std::byte>;
  explicit Copier(Stream* stream) : stream_(stream) {}

  // Bytes [from, to) of the packed bytes of a piece at `at`: the rest of a unit that was begun,
  // whole units, and the beginning of a last one. Any of the three may be missing.
  void operator()(std::uintptr_t at, const Layout::Piece& piece, MPI_Count from, MPI_Count to) {
    if (to <= piece.unit) return copy(at, from, to - from);
    const MPI_Count first = from / piece.unit;
    at += static_cast<std::uintptr_t>(first * piece.stride);
    from -= first * piece.unit;
    to -= first * piece.unit;
    if (from > 0) {
      const MPI_Count end = std::min(to, piece.unit);
      copy(at, from, end - from);
      if (end == to) return;
      at += static_cast<std::uintptr_t>(piece.stride);
      to -= piece.unit;
    }
    const MPI_Count units = to / piece.unit;
    copy_units(at, piece, units);
    copy(at + static_cast<std::uintptr_t>(units * piece.stride), 0, to % piece.unit);
  }

 private:
  void copy(std::uintptr_t at, MPI_Count from, MPI_Count bytes) {
    if (bytes == 0) return;
    move(at + static_cast<std::uintptr_t>(from), static_cast<std::size_t>(bytes));
    stream_ += bytes;
  }
  void copy_units(std::uintptr_t at, const Layout::Piece& piece, MPI_Count units) {
    switch (piece.unit) {  // with a known size the compiler makes a load and a store of memcpy
      case 1: return copy_each(at, piece.stride, units, std::integral_constant<std::size_t, 1>());
      case 2: return copy_each(at, piece.stride, units, std::integral_constant<std::size_t, 2>());
      case 4: return copy_each(at, piece.stride, units, std::integral_constant<std::size_t, 4>());
      case 8: return copy_each(at, piece.stride, units, std::integral_constant<std::size_t, 8>());
      case 16: return copy_each(at, piece.stride, units, std::integral_constant<std::size_t, 16>());
      default: return copy_each(at, piece.stride, units, static_cast<std::size_t>(piece.unit));
    }
  }
  template <class Size>
  void copy_each(std::uintptr_t at, MPI_Count stride, MPI_Count units, Size size) {
    for (MPI_Count u = 0; u < units; ++u) {
      move(at, size);
      at += static_cast<std::uintptr_t>(stride);
      stream_ += size;
    }
  }
  template <class Size>
  void move(std::uintptr_t at, Size size) {
    if constexpr (kPack)
      std::memcpy(stream_, reinterpret_cast<const std::byte*>(at), size);
    else
      std::memcpy(reinterpret_cast<std::byte*>(at), stream_, size);
  }

  Stream* stream_;
};

// Calls leaf() for the bytes [from, to) of the packed form of many items in a row, each `extent`
// bytes behind the one before.
template <class Leaf>
void visit_items(std::uintptr_t buffer, const Ref<Layout>& item, MPI_Count extent, MPI_Count from,
                 MPI_Count to, Leaf leaf) {
  if (from >= to) return;
  // Only the first item.
  if (to <= item->size()) return item->visit(buffer, from, to, leaf);
  // The items are the units of one piece: one call of the leaf instead of one for each item.
  if (item->one_block()) {
    Layout::Piece piece = item->pieces()[0];
    piece.stride = extent;
    return leaf(buffer + static_cast<std::uintptr_t>(piece.displacement), piece, from, to);
  }
  // In general: a piece whose units are items.
  visit_piece(buffer, {0, 0, extent, item->size(), item, kByte}, from, to, leaf);
}

// Collects strips; the leaf function of Layout::visit() for an item at address 0.
class StripCollector {
 public:
  explicit StripCollector(std::vector<Strip>& strips) : strips_(strips), first_(strips.size()) {}

  void operator()(std::uintptr_t at, const Layout::Piece& piece, MPI_Count from, MPI_Count to) {
    const auto start = static_cast<MPI_Count>(at);
    while (from < to) {
      const MPI_Count unit = from / piece.unit, within = from % piece.unit;
      const MPI_Count displacement = start + unit * piece.stride + within;
      const MPI_Count whole = within == 0 ? (to - from) / piece.unit : 0;
      const MPI_Count length = whole > 0 ? piece.unit : std::min(to - from, piece.unit - within);
      const MPI_Count count = std::max<MPI_Count>(whole, 1);
      add({displacement, length, piece.stride, count});
      from += length * count;
    }
  }

 private:
  void add(const Strip& next) {
    Strip* const last = strips_.size() > first_ ? &strips_.back() : nullptr;
    // One block that goes on where the last one ends.
    if (last && last->count == 1 && next.count == 1 &&
        last->displacement + last->length == next.displacement)
      last->length += next.length;
    else
      strips_.push_back(next);
    if (strips_.size() > first_ + 1 && continues(*(strips_.end() - 2), strips_.back()))
      strips_.pop_back();
  }
  // Lets `strip` have the blocks of `next`, too, if these are of the same length and at the same
  // distance. A single block leaves the distance open.
  static bool continues(Strip& strip, const Strip& next) {
    const MPI_Count distance = next.displacement - strip.displacement;
    const MPI_Count stride = strip.count == 1 ? distance : strip.stride;
    if (strip.length != next.length || distance != strip.count * stride ||
        (next.count > 1 && next.stride != stride))
      return false;
    strip.stride = stride;
    strip.count += next.count;
    return true;
  }

  std::vector<Strip>& strips_;
  const std::size_t first_;
};

}  // namespace

void Datatype::add_strips(MPI_Count from, MPI_Count to, std::vector<Strip>& strips) const {
  if (contiguous_) {
    if (from < to) strips.push_back({true_lb_ + from, to - from, to - from, 1});
    return;
  }
  StripCollector collect(strips);
  visit_items(0, bytes_, extent(), from, to,
              [&](std::uintptr_t at, const Layout::Piece& piece, MPI_Count first, MPI_Count end) {
                collect(at, piece, first, end);
              });
}

const Datatype* Datatype::only_predefined() const {
  if (predefined()) return this;
  const Datatype* only = nullptr;
  for (const Ref<Datatype>& component : shape_->types) {
    if (component->size() == 0) continue;
    const Datatype* const its = component->only_predefined();
    if (!its || (only && only->constant() != its->constant())) return nullptr;
    only = its;
  }
  return only;
}

void Datatype::pack(const void* buffer, MPI_Count offset, std::span<std::byte> out) const {
  const auto bytes = static_cast<MPI_Count>(out.size());
  if (contiguous_) {
    if (bytes > 0) std::memcpy(out.data(), byte_at(buffer, true_lb_ + offset), out.size());
    return;
  }
  visit_items(reinterpret_cast<std::uintptr_t>(buffer), bytes_, extent(), offset, offset + bytes,
              Copier<true>(out.data()));
}

void Datatype::unpack(void* buffer, MPI_Count offset, std::span<const std::byte> in) const {
  const auto bytes = static_cast<MPI_Count>(in.size());
  if (contiguous_) {
    if (bytes > 0) std::memcpy(byte_at(buffer, true_lb_ + offset), in.data(), in.size());
    return;
  }
  visit_items(reinterpret_cast<std::uintptr_t>(buffer), bytes_, extent(), offset, offset + bytes,
              Copier<false>(in.data()));
}

MPI_Count Datatype::elements(WideBytes bytes) const {
  if (size_ == 0) return bytes == 0 ? 0 : MPI_UNDEFINED;
  // All whole items have the same number of elements; the type map counts those of the last part.
  const MPI_Count rest = type_map_->elements_in(static_cast<MPI_Count>(bytes % size_));
  const WideBytes elements = bytes / size_ * type_map_->elements() + rest;
  return rest < 0 || elements > INT64_MAX ? MPI_UNDEFINED : static_cast<MPI_Count>(elements);
}

WideBytes Datatype::bytes_of(MPI_Count elements) const {
  if (size_ == 0) return 0;
  const MPI_Count each = type_map_->elements();
  return WideBytes{elements / each} * size_ + type_map_->bytes_of(elements % each);
}

}  // namespace viaduct::mpi
