// The rounds in which a short allgather moves blocks: with whom, and which ones.
#pragma once

#include <algorithm>
#include <bit>

#include "libmpi_lite/collective/subgroup.hpp"

namespace viaduct::mpi {

// In each round a process sends blocks that it has to one process, and receives as many from one.
// So what it has doubles, and ceil(log2(size)) rounds are enough; the last one may be for fewer
// blocks. Each further process that it talks to costs a connection, so there are few:
//
//    size              partners of a process
//    a power of two    log2(size): its neighbours in the hypercube (recursive doubling)
//    another even one  floor(log2(size)), in a Knoedel graph: even processes talk to odd ones,
//    those
//                      1, 3, 7, ... after them, and in the last round to the first one again
//    odd               up to 2 ceil(log2(size)): those 1, 2, 4, ... before and after (Bruck)
//
// A process has its blocks in a row, which starts with the block of index first() and goes on in
// the order of indices, cyclically. Positions count in the row, from 0 on. What a process has at a
// time, sends or receives, are consecutive blocks.
class Doubling {
 public:
  explicit Doubling(const Subgroup& subgroup)
      : subgroup_(subgroup),
        shape_(std::has_single_bit(static_cast<unsigned>(subgroup.size)) ? Shape::cube
               : subgroup.size % 2 != 0                                  ? Shape::cyclic
               : subgroup.me % 2 == 0                                    ? Shape::upward
                                                                         : Shape::downward) {}

  bool done() const { return have_ >= subgroup_.size; }
  void next() { have_ *= 2; }
  // Indices in the subgroup.
  int to() const { return shape_ == Shape::cyclic ? subgroup_.after(me(), -have_) : from(); }
  int from() const {
    const int distance = last() ? 1 : 2 * have_ - 1;
    switch (shape_) {
      case Shape::cube: return me() ^ have_;
      case Shape::upward: return subgroup_.after(me(), distance);
      case Shape::downward: return subgroup_.after(me(), -distance);
      default: return subgroup_.after(me(), have_);
    }
  }
  int first() const {
    return shape_ == Shape::cube ? 0 : shape_ == Shape::downward ? subgroup_.after(me(), 1) : me();
  }
  int own() const {  // position of this process's block
    return subgroup_.after(me(), -first());
  }
  // Of the blocks that are sent, and of those that are received: how many, and the first position.
  int count() const { return std::min(have_, subgroup_.size - have_); }
  int sent() const {
    switch (shape_) {
      case Shape::cube: return me() & -have_;
      // The partner of the last round has had this process's first blocks since the first round.
      case Shape::upward: return last() ? 2 : 0;
      case Shape::downward: return subgroup_.size - count() - (last() ? 2 : 0);
      default: return 0;
    }
  }
  int received() const {
    switch (shape_) {
      case Shape::cube: return from() & -have_;
      case Shape::downward: return subgroup_.size - have_ - count();
      default: return have_;
    }
  }

 private:
  // Where the row of a process grows: in halves of an aligned row twice as long, at its end, or at
  // its start.
  enum class Shape : unsigned char { cube, upward, downward, cyclic };

  int me() const { return subgroup_.me; }
  bool last() const { return 2 * have_ > subgroup_.size; }  // not of a cube

  const Subgroup& subgroup_;
  int have_ = 1;  // blocks that this process has before the round
  const Shape shape_;
};

}  // namespace viaduct::mpi
