// The processes of a subgroup as vertices of a hypercube, for any number of them. Algorithms that
// send along its edges only have the same few partners in all operations.
#pragma once

#include <bit>

namespace viaduct::mpi {

// The first processes form groups of two, as many as make the number of groups a power of two; the
// others are groups of their own. The label of a group's first member is the number of the group,
// that of the second one is larger by the number of groups. So labels go from 0 to size - 1.
// Processes whose labels differ in one bit are neighbours.
//
//    6 processes, by label:   4 --- 5    the second members of groups 0 and 1 (index 1 and 3)
//                             |     |
//                             0 --- 1    the first members (index 0 and 2)
//                             |     |
//                             2 --- 3    groups of one (index 4 and 5)
class Hypercube {
 public:
  explicit Hypercube(int size)
      : groups_(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))),
        pairs_(size - groups_) {}

  int groups() const { return groups_; }
  int pairs() const { return pairs_; }  // that many groups, the first ones, have two members
  // Of an index in the subgroup, and back.
  int label(int index) const {
    return index >= 2 * pairs_ ? index - pairs_ : index / 2 + index % 2 * groups_;
  }
  int index(int label) const {
    if (label >= groups_) return 2 * (label - groups_) + 1;
    return label < pairs_ ? 2 * label : label + pairs_;
  }

 private:
  int groups_, pairs_;
};

}  // namespace viaduct::mpi
