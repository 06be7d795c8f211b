// What a reduction does with items: combine them in rank order, in parts if need be.
#pragma once

#include "libmpi_lite/collective/buffers.hpp"

namespace viaduct::mpi {

struct Range {  // of the items of a vector
  MPI_Count first, count;
};
using Ranges = PoolVector<Range>;

// `count` items in `parts` ranges of nearly the same size.
Ranges even_ranges(MPI_Count count, int parts);

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

  // right[i] = left[i] op right[i]; nothing once the vectors are not there for want of a process.
  void combine(const void* left, void* right, MPI_Count count) const;

  // Room for vectors of `count` items, such as the user's own buffers have it. Each has memory of
  // its own: items may reach further than their extent, as columns of a matrix do.
  class Room {
   public:
    Room(const Reduction& reduction, MPI_Count count, int vectors = 1);
    void* data() const { return vector(0); }
    void* vector(int k) const;

   private:
    MPI_Count from_, width_;
    Scratch memory_;
  };

 private:
  Collective* op_;
  const Op* function_;
  Datatype* type_;
  MPI_Datatype handle_;
  MPI_Count count_;
};

}  // namespace viaduct::mpi
