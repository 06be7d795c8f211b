// Where the elements of a message lie in a buffer, as MPI sees it (a datatype) and as the model
// does (a list of pieces).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stress {

// What a message consists of. Both sides must agree on it (MPI 5.0, section 3.3.1), not on the
// layout.
enum class Element : std::uint8_t { byte, integer, real, pair };  // pair: an int, then a double
std::size_t size_of(Element element);
int basic_items(Element element);  // in one element, as MPI_Get_elements counts

class Layout {
 public:
  // `elements` of that kind, laid out as `seed` says; derived ones come with gaps.
  Layout(Element element, int elements, std::uint64_t seed);
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  ~Layout() { free_type(); }

  std::size_t span() const { return span_; }  // bytes of a buffer that holds it all

  // What an MPI call is given for a buffer that starts at `memory`. Absolute layouts make their
  // type for that buffer, so the buffer must not move.
  struct Arguments {
    void* buffer;
    int count;
    MPI_Datatype type;
  };
  Arguments arguments(std::byte* memory);
  // The type may go as soon as the operation has been started (section 4.1.9).
  void free_type();

  // Puts the stream of bytes that the message is to its places.
  void scatter(const std::vector<std::byte>& stream, std::byte* memory) const;

 private:
  struct Piece {
    std::size_t at, bytes;
  };

  void make_plain();
  void make_blocks(std::uint64_t seed);
  void make_vector(std::uint64_t seed);
  void make_struct(std::uint64_t seed);
  void make_pairs(std::uint64_t seed);
  void add_piece(std::size_t at, std::size_t bytes);

  MPI_Datatype base() const;

  Element element_;
  int elements_;
  int count_ = 1;
  bool absolute_ = false;  // used with MPI_BOTTOM
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  bool derived_ = false;  // type_ is ours to free
  std::vector<Piece> pieces_;
  std::size_t span_ = 0;
};

}  // namespace stress
