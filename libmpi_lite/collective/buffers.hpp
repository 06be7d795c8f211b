// Buffers as the algorithms see them: items for each rank, parts of a vector, packed bytes.
#pragma once

#include "libmpi_lite/collective/collective_request.hpp"

namespace viaduct::mpi {

// `n` items further on.
inline void* advance(const void* data, MPI_Count n, const Datatype& type) {
  return byte_at(data, n * type.extent());
}

inline Items bytes_at(const void* data, std::size_t n) {
  return {data, static_cast<MPI_Count>(n), &datatype(MPI_BYTE)};
}
inline const Items nothing_at(const void* data = nullptr) {
  return bytes_at(data, 0);
}

inline std::size_t length(const Items& items) {
  return static_cast<std::size_t>(items.bytes());
}

// Packed forms; `bytes` has room for length(items).
void pack(const Items& items, std::byte* bytes);
void unpack(const std::byte* bytes, const Items& items);
// As if sent to itself; like a receive it ends the operation with MPI_ERR_TRUNCATE if the lengths
// differ.
void copy(Collective& op, const Items& from, const Items& to);

// What a collective sends to, or receives from, each rank: all forms that the arguments have.
class Spread {
 public:
  Spread(Collective& op, const Part& part);
  Spread(Collective& op, const Parts& parts);
  Spread(Collective& op, const MixedParts& parts, int ranks);

  Items operator[](int rank) const {
    if (!counts_) return {advance(data_, rank * count_, *type_), count_, type_};
    if (!types_) return {advance(data_, displacements_[rank], *type_), counts_[rank], type_};
    return {byte_at(data_, displacements_[rank]), counts_[rank],
            held_[static_cast<std::size_t>(rank)]};
  }

 private:
  const void* data_;
  MPI_Count count_ = 0;
  Datatype* type_ = nullptr;
  const int* counts_ = nullptr;
  const int* displacements_ = nullptr;
  const MPI_Datatype* types_ = nullptr;
  PoolVector<Datatype*> held_;  // behind types_: the user may free the handles
};

// Items as a row of bytes: the user's memory if it is one already, else a copy.
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
