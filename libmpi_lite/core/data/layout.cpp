// How layouts are built, so that they stay small: pieces are joined where one piece says the same,
// small layouts are copied into the larger one, large ones are referred to.
#include "libmpi_lite/core/data/layout.hpp"

#include <utility>

namespace viaduct::mpi {

namespace {

// A layout of up to this many pieces is copied into the one that it becomes a part of. That saves a
// level of the tree at the price of memory.
constexpr std::size_t kFewPieces = 8;

__extension__ using Wide = __int128;  // the place behind the last unit may be beyond 64 bits

bool same_unit(const Layout::Piece& a, const Layout::Piece& b) {
  return a.unit == b.unit && a.of == b.of;
}

}  // namespace

Ref<Layout> Layout::untyped_copy(const Layout& typed) {
  auto copy = make<Layout>(false);
  copy->pieces_ = typed.pieces_;
  for (Piece& p : copy->pieces_)
    if (!p.of) p.basic = kByte;
  copy->size_ = copy->elements_ = copy->external_size_ = typed.size_;
  return copy;
}

void Layout::append(const Basic& basic) {
  add({0, 0, basic.size, basic.size, nullptr, basic}, basic.size);
  ++elements_;
  external_size_ += basic.external_size;
  first_basic_ = basic;
}

void Layout::append(const Ref<Layout>& of, MPI_Count displacement, MPI_Count count,
                    MPI_Count stride) {
  if (count == 0 || of->empty()) return;
  mixed_ = mixed_ || of->mixed_ || (!empty() && first_basic_ != of->first_basic_);
  if (empty()) first_basic_ = of->first_basic_;
  elements_ += count * of->elements_;
  external_size_ += count * of->external_size_;

  if (count == 1) {
    // Data is moved by the layout without types. The type map of a struct only serves conversions
    // and counts of elements, so its speed matters less than the memory that copies of it take.
    const std::size_t few = typed_ && of->mixed_ ? 1 : kFewPieces;
    if (of->pieces_.size() <= few) {
      for (std::size_t p = 0; p < of->pieces_.size(); ++p) {
        Piece piece = of->pieces_[p];
        piece.displacement += displacement;
        add(std::move(piece), of->end_of(p) - of->pieces_[p].begin);
      }
      return;
    }
    // One unit: its stride says nothing, and equals the unit by convention.
    stride = of->size_;
  } else if (of->pieces_.size() == 1) {
    // Copies of one piece are one piece again if their units follow each other with one stride.
    Piece piece = of->pieces_[0];
    const MPI_Count units = of->size_ / piece.unit;
    piece.displacement += displacement;
    if (units == 1) piece.stride = stride;
    if (units == 1 || stride == Wide{units} * piece.stride)
      return add(std::move(piece), count * of->size_);
  }
  // In general: a piece whose units are that layout.
  add({displacement, 0, stride, of->size_, of, of->first_basic_}, count * of->size_);
}

void Layout::add(Piece piece, MPI_Count bytes) {
  if (!typed_ && !piece.of) piece.basic = kByte;
  // Adjacent units of bytes are one unit.
  if (!piece.of && piece.stride == piece.unit) piece.stride = piece.unit = bytes;
  piece.begin = size_;
  if (pieces_.empty() || !join(pieces_.back(), piece, bytes)) pieces_.push_back(std::move(piece));
  size_ += bytes;
}

// Lets `last` grow by `next` (of `bytes` packed bytes) if one piece can describe both. Either both
// are single rows of bytes and adjacent; or their units are the same and go on with the same
// stride.
bool Layout::join(Piece& last, const Piece& next, MPI_Count bytes) const {
  if (!last.of && !next.of && last.basic != next.basic) return false;
  const MPI_Count last_units = (size_ - last.begin) / last.unit, next_units = bytes / next.unit;
  if (last_units == 1 && next_units == 1 && !last.of && !next.of &&
      last.displacement + last.unit == next.displacement) {
    last.unit += next.unit;
    last.stride = last.unit;
    return true;
  }
  if (!same_unit(last, next)) return false;
  // A single unit has no stride of its own: the distance to the next piece may serve as one.
  const MPI_Count step = last_units > 1 ? last.stride : next.displacement - last.displacement;
  if (next.displacement != last.displacement + Wide{last_units} * step) return false;
  if (next_units > 1 && next.stride != step) return false;
  last.stride = step;
  return true;
}

std::size_t Layout::piece_at(MPI_Count packed) const {
  const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), packed,
                                      [](MPI_Count at, const Piece& p) { return at < p.begin; });
  return static_cast<std::size_t>(after - pieces_.begin()) - 1;
}

MPI_Count Layout::elements_in(MPI_Count bytes) const {
  // All elements have the same size: no need to look at the pieces.
  if (const Basic* basic = only_basic()) return bytes % basic->size ? -1 : bytes / basic->size;
  MPI_Count elements = 0;
  for (std::size_t p = 0; p < pieces_.size() && bytes > pieces_[p].begin; ++p) {
    const Piece& piece = pieces_[p];
    const MPI_Count part = std::min(bytes, end_of(p)) - piece.begin;
    MPI_Count rest = part % piece.unit;
    if (piece.of) {
      elements += part / piece.unit * piece.of->elements_;
      rest = piece.of->elements_in(rest);
      if (rest < 0) return -1;
      elements += rest;
    } else {
      if (part % piece.basic.size) return -1;
      elements += part / piece.basic.size;
    }
  }
  return elements;
}

MPI_Count Layout::bytes_of(MPI_Count elements) const {
  if (const Basic* basic = only_basic()) return elements * basic->size;
  MPI_Count bytes = 0;
  for (std::size_t p = 0; p < pieces_.size() && elements > 0; ++p) {
    const Piece& piece = pieces_[p];
    const MPI_Count here = end_of(p) - piece.begin;
    const MPI_Count in_unit = piece.of ? piece.of->elements_ : piece.unit / piece.basic.size;
    const MPI_Count part = std::min(elements, here / piece.unit * in_unit);
    elements -= part;
    bytes += piece.of ? part / in_unit * piece.unit + piece.of->bytes_of(part % in_unit)
                      : part * piece.basic.size;
  }
  return bytes;
}

}  // namespace viaduct::mpi
