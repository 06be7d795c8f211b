// Buffers as the algorithms see them: items for each rank (Spread), and items as a row of bytes
// (pack, Packed). None of them owns the program's memory; types are held by the Collective.
#pragma once

#include "libmpi_lite/collective/collective_request.hpp"

namespace viaduct::mpi {

// The address of the item `n` places after `data`, in extents of the type.
inline void* advance(const void* data, MPI_Count n, const Datatype& type) {
  return byte_at(data, n * type.extent());
}

inline Items bytes_at(const void* data, std::size_t n) {
  return {data, static_cast<MPI_Count>(n), &datatype(MPI_BYTE)};
}
// No bytes. Messages of a barrier consist of it.
inline const Items nothing_at(const void* data = nullptr) {
  return bytes_at(data, 0);
}

inline std::size_t length(const Items& items) {
  return static_cast<std::size_t>(items.bytes());
}

// To and from the packed form, without gaps; `bytes` has room for length(items).
void pack(const Items& items, std::byte* bytes);
void unpack(const std::byte* bytes, const Items& items);
// Copies as if the rank sent to itself: like a receive, it ends the operation with MPI_ERR_TRUNCATE
// if the lengths differ. Copies nothing once the operation has been aborted.
void copy(Collective& op, const Items& from, const Items& to);

// What a collective sends to, or receives from, each rank. Covers all forms of arguments: one count
// for all ranks; counts and displacements; these and a type for each rank.
class Spread {
 public:
  Spread(Collective& op, const Part& part);
  Spread(Collective& op, const Parts& parts);
  Spread(Collective& op, const MixedParts& parts);

  Items operator[](int rank) const {
    if (!counts_) return {advance(data_, rank * count_, *type_), count_, type_};
    if (!types_) return {advance(data_, displacements_[rank], *type_), counts_[rank], type_};
    return {byte_at(data_, displacements_[rank]), counts_[rank],
            held_[static_cast<std::size_t>(rank)]};
  }

 private:
  const void* data_;
  MPI_Count count_ = 0;       // for each rank, if counts_ is nullptr
  Datatype* type_ = nullptr;  // of all blocks, if types_ is nullptr
  Counts counts_;             // the arrays are the program's
  Counts displacements_;      // in extents of type_; in bytes with types_
  const MPI_Datatype* types_ = nullptr;
  PoolVector<Datatype*> held_;  // the objects behind types_: the program may free the handles
};

// Items as a row of bytes: the program's memory if the type is contiguous, else a copy.
// from_items() and to_items() move the data between the items and the copy.
class Packed {
 public:
  explicit Packed(const Items& items)
      : items_(items),
        copy_(items.type->contiguous() ? 0 : length(items)),
        data_(items.type->contiguous() ? items.first_byte() : copy_.data()) {}

  std::byte* data() const { return data_; }
  std::size_t size() const { return length(items_); }
  Items bytes(std::size_t from, std::size_t n) const { return bytes_at(data_ + from, n); }
  void from_items() {
    if (copy_.data()) pack(items_, data_);
  }
  void to_items() {
    if (copy_.data()) unpack(data_, items_);
  }

 private:
  Items items_;
  Scratch copy_;
  std::byte* data_;
};

}  // namespace viaduct::mpi
