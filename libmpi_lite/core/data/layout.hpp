// Layout: where the bytes of one item of a datatype lie, in the order in which they are sent. It is
// a tree of strided pieces, with the same purpose as the type map of MPI 5.0, section 5.1, but
// small: whatever is regular takes one piece, however large its counts are. Any byte of the packed
// form is found in the time that the depth of the tree takes (and a binary search at each level).
//
// For example, MPI_Type_vector(3, 2, 4, MPI_INT) is one piece, with unit 8 and stride 16:
//
//   memory   AAAAAAAA........BBBBBBBB........CCCCCCCC      A, B, C: the units; a letter is a byte
//   packed   AAAAAAAABBBBBBBBCCCCCCCC
//
// Layouts are shared by the types that contain them (Ref) and are immutable once their type is
// finished.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "libmpi_lite/core/ref.hpp"

namespace viaduct::mpi {

// What the elements of a predefined type are: all that a reduction or a conversion has to know.
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
  logical,    // C_BOOL, CXX_BOOL, LOGICAL*: the size tells which
  character,  // CHAR, CHARACTER, WCHAR: no arithmetic (MPI 5.0, section 6.9.2)
  byte,
  packed,
  pair,    // value and index, for MINLOC and MAXLOC
  marker,  // MPI_LB, MPI_UB: no bytes
};

// One basic element: what type maps are made of. Sizes in bytes.
struct Basic {
  Elementary kind;
  std::uint8_t size;           // in memory
  std::uint8_t external_size;  // in "external32" (MPI 5.0, section 14.5.2)
  std::uint8_t alignment;
  bool operator==(const Basic&) const = default;
};
// Blocks of memory of the same length at equal distances: what travels in place of a type where
// another process has to know where data lies. In bytes.
struct Strip {
  MPI_Count displacement;  // of the first block
  MPI_Count length;        // of each block
  MPI_Count stride;        // from one block to the next; any number if there is one block
  MPI_Count count;         // blocks
  MPI_Count bytes() const { return length * count; }
};

inline constexpr Basic kByte{Elementary::byte, 1, 1, 1};  // the element of layouts without types

class Layout final : public Counted {
 public:
  // Units of the same shape, `stride` bytes apart in memory and without gaps in the packed form.
  // The piece ends where the next one begins, which tells the number of units.
  struct Piece {
    MPI_Count displacement;  // of the first unit in memory, from the item's address
    MPI_Count begin;         // of the first unit in the packed form
    MPI_Count stride;  // in memory, from one unit to the next; equals `unit` if there is one unit
    MPI_Count unit;    // packed bytes of one unit
    Ref<Layout> of;    // what a unit looks like; nothing: it is bytes in a row
    Basic basic;       // without `of`: what these bytes are
  };

  // A typed layout keeps basic elements of different types in different pieces. One without types
  // sees bytes only, and joins what is adjacent.
  explicit Layout(bool typed) : typed_(typed) {}
  // The same layout without types.
  static Ref<Layout> untyped_copy(const Layout& typed);

  // Appends `count` copies of a layout, the first at `displacement`, each `stride` bytes behind the
  // one before. The caller makes sure that all positions are less than 2^62 away from 0.
  void append(const Ref<Layout>& of, MPI_Count displacement, MPI_Count count, MPI_Count stride);
  // One element at displacement 0; only for an empty layout.
  void append(const Basic& basic);
  void shrink() { pieces_.shrink_to_fit(); }  // when nothing more will be appended

  bool empty() const { return size_ == 0; }
  MPI_Count size() const { return size_; }          // bytes of packed form
  MPI_Count elements() const { return elements_; }  // basic elements; without types: bytes
  MPI_Count external_size() const { return external_size_; }  // bytes in "external32"
  std::span<const Piece> pieces() const { return pieces_; }
  // The basic type of all elements, or nullptr if there are several types or no elements.
  const Basic* only_basic() const { return mixed_ || empty() ? nullptr : &first_basic_; }
  // The item is one row of bytes without gaps.
  bool one_block() const {
    return pieces_.size() == 1 && !pieces_[0].of && pieces_[0].unit == size_;
  }

  // How many whole basic elements are in the first `bytes` of packed form; -1 if these end within
  // one.
  MPI_Count elements_in(MPI_Count bytes) const;
  // How many packed bytes the first `elements` take; the layout must have so many.
  MPI_Count bytes_of(MPI_Count elements) const;

  // Calls leaf(address, piece, from, to) for each piece of plain bytes of one item, in order, that
  // has a part in the packed bytes [from, to) of the item. `address` is where the piece's first
  // unit is in memory if the item is at `address`; from and to are relative to the piece's packed
  // bytes.
  template <class Leaf>
  void visit(std::uintptr_t address, MPI_Count from, MPI_Count to, Leaf& leaf) const;

 private:
  // Where a piece ends in the packed form.
  MPI_Count end_of(std::size_t piece) const {
    return piece + 1 < pieces_.size() ? pieces_[piece + 1].begin : size_;
  }
  // The piece that the packed byte belongs to.
  std::size_t piece_at(MPI_Count packed) const;
  // Appends a piece of so many packed bytes, or lets the last piece grow by it (join).
  void add(Piece piece, MPI_Count bytes);
  bool join(Piece& last, const Piece& next, MPI_Count bytes) const;

  std::vector<Piece> pieces_;  // in the order of the packed form
  MPI_Count size_ = 0, elements_ = 0, external_size_ = 0;
  Basic first_basic_ = kByte;   // of the first element
  bool typed_, mixed_ = false;  // mixed_: there are elements of several basic types
};

// Calls leaf() for the range [from, to) of the packed bytes of one piece at `address`, unit by unit
// if a unit is a layout.
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
