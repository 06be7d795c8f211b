// A reduction's operation, type and count, and buffers for its vectors. The algorithms (reduce.cpp
// and others) decide which vectors are combined; the order of operands is theirs to keep.
#pragma once

#include "libmpi_lite/collective/buffers.hpp"

namespace viaduct::mpi {

struct Range {  // of consecutive items of a vector
  MPI_Count first, count;
};
using Ranges = PoolVector<Range>;

// Divides `count` items into `parts` ranges, whose sizes differ by one item at most.
Ranges even_ranges(MPI_Count count, int parts);

// Cheap to copy: refers to objects that the Collective holds.
class Reduction {
 public:
  Reduction(Collective& op, const Op& function, MPI_Datatype type, MPI_Count count);

  MPI_Count count() const { return count_; }
  std::size_t bytes() const { return static_cast<std::size_t>(count_ * type_->size()); }
  bool commutative() const { return function_->commutative(); }
  Items items(const void* data) const { return {data, count_, type_}; }
  Items items(const void* data, const Range& r) const {
    return {advance(data, r.first, *type_), r.count, type_};
  }

  // right[i] = left[i] op right[i] for `count` items. Does nothing once the collective lacks data,
  // as a vector may be uninitialised then.
  void combine(const void* left, void* right, MPI_Count count) const;

  // Buffers for vectors of `count` items, laid out as in the program's own buffers, since user
  // functions see them. Each vector has memory of its own: items may reach further than their
  // extent, as columns of a matrix do, so vectors must not be packed by extent.
  class VectorBuffers {
   public:
    VectorBuffers(const Reduction& reduction, MPI_Count count, int vectors = 1);
    void* data() const { return vector(0); }
    void* vector(int k) const;  // a buffer's address; its data may start before or behind it

   private:
    MPI_Count from_, width_;  // bytes: where data starts, seen from the address; memory of a vector
    Scratch memory_;
  };

 private:
  Collective* op_;
  const Op* function_;
  Datatype* type_;
  MPI_Datatype handle_;  // of type_, for user functions; the program may have freed it
  MPI_Count count_;      // items of the whole vector
};

}  // namespace viaduct::mpi
