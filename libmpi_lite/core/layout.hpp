// Where the bytes of one item of a datatype lie, in the order in which they are sent: a tree of
// strided pieces. What is regular stays small whatever its counts, and any byte of the packed form
// is found in the time that the depth of the tree takes.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "libmpi_lite/core/ref.hpp"

namespace viaduct::mpi {

// What the elements of a predefined type are: what a reduction and a conversion have to know.
enum class Elementary : std::uint8_t {
  none,  // not predefined
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  int128,
  float32,
  float64,
  float80,
  float128,
  complex32,
  complex64,
  complex80,
  complex128,
  logical,    // C_BOOL, CXX_BOOL, LOGICAL*: size tells
  character,  // CHAR, CHARACTER, WCHAR: no arithmetic (MPI 5.0, section 6.9.2)
  byte,
  packed,
  pair,    // value and index, for MINLOC and MAXLOC
  marker,  // MPI_LB, MPI_UB: no bytes
};

// One basic element: what type maps are made of.
struct Basic {
  Elementary kind;
  std::uint8_t size;
  std::uint8_t external_size;  // in "external32" (MPI 5.0, section 14.5.2)
  std::uint8_t alignment;
  bool operator==(const Basic&) const = default;
};
inline constexpr Basic kByte{Elementary::byte, 1, 1, 1};

class Layout final : public Counted {
 public:
  // `unit` bytes again and again, `stride` bytes apart; it ends where the next piece begins.
  struct Piece {
    MPI_Count displacement;  // of the first unit in memory
    MPI_Count begin;         // of the first unit in the packed form
    MPI_Count stride;        // equals `unit` if there is one unit
    MPI_Count unit;          // packed bytes
    Ref<Layout> of;          // what a unit looks like; nothing: it is bytes in a row
    Basic basic;             // what these bytes are
  };

  // Typed layouts keep basic types apart. The others see bytes only, and join what is adjacent.
  explicit Layout(bool typed) : typed_(typed) {}
  // The same without types.
  static Ref<Layout> untyped_copy(const Layout& typed);

  // Adds `count` copies of a layout, the first at `displacement`, each `stride` bytes further. All
  // positions must be less than 2^62 away from 0.
  void append(const Ref<Layout>& of, MPI_Count displacement, MPI_Count count, MPI_Count stride);
  void append(const Basic& basic);
  void shrink() { pieces_.shrink_to_fit(); }

  bool empty() const { return size_ == 0; }
  MPI_Count size() const { return size_; }  // bytes of packed form
  MPI_Count elements() const { return elements_; }
  MPI_Count external_size() const { return external_size_; }
  std::span<const Piece> pieces() const { return pieces_; }
  // The only basic type in it, or nullptr.
  const Basic* only_basic() const { return mixed_ || empty() ? nullptr : &first_basic_; }
  // Nothing but bytes in a row.
  bool one_block() const {
    return pieces_.size() == 1 && !pieces_[0].of && pieces_[0].unit == size_;
  }

  // Whole basic elements in the first `bytes` of packed form; -1 if they end within one.
  MPI_Count elements_in(MPI_Count bytes) const;
  // The packed bytes of the first `elements`, which must be there.
  MPI_Count bytes_of(MPI_Count elements) const;

  // Calls leaf(address, piece, from, to) for each piece of bytes of one item at `address`, in
  // order: [from, to) of its packed bytes are in [from, to) of the item's.
  template <class Leaf>
  void visit(std::uintptr_t address, MPI_Count from, MPI_Count to, Leaf& leaf) const;

 private:
  MPI_Count end_of(std::size_t piece) const {
    return piece + 1 < pieces_.size() ? pieces_[piece + 1].begin : size_;
  }
  std::size_t piece_at(MPI_Count packed) const;
  void add(Piece piece, MPI_Count bytes);
  bool join(Piece& last, const Piece& next, MPI_Count bytes) const;

  std::vector<Piece> pieces_;
  MPI_Count size_ = 0, elements_ = 0, external_size_ = 0;
  Basic first_basic_ = kByte;
  bool typed_, mixed_ = false;
};

// Calls leaf() for the range [from, to) of the packed bytes of one piece at `address`.
template <class Leaf>
void visit_piece(std::uintptr_t address, const Layout::Piece& piece, MPI_Count from, MPI_Count to,
                 Leaf& leaf) {
  if (!piece.of) return leaf(address, piece, from, to);
  MPI_Count unit = from / piece.unit;
  while (from < to) {
    const MPI_Count begin = unit * piece.unit, end = std::min(to, begin + piece.unit);
    piece.of->visit(address + static_cast<std::uintptr_t>(unit * piece.stride), from - begin,
                    end - begin, leaf);
    from = end;
    ++unit;
  }
}

template <class Leaf>
void Layout::visit(std::uintptr_t address, MPI_Count from, MPI_Count to, Leaf& leaf) const {
  for (std::size_t p = from == 0 ? 0 : piece_at(from); from < to; ++p) {
    const Piece& piece = pieces_[p];
    const MPI_Count end = std::min(to, end_of(p));
    visit_piece(address + static_cast<std::uintptr_t>(piece.displacement), piece,
                from - piece.begin, end - piece.begin, leaf);
    from = end;
  }
}

}  // namespace viaduct::mpi
