// What the tests of the collectives share: buffers that notice when something is written beside the
// data, and calls in their blocking and nonblocking forms.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "job.hpp"

namespace collective {

using job::rank_in;
using job::size_of;

// Ints as plain MPI_INTs, or in pairs with gaps: (int, gap, int, gap) is one item.
enum class Form { plain, gapped };

inline MPI_Datatype gapped_pair() {
  static MPI_Datatype type = [] {
    MPI_Datatype with_gap, whole;
    MPI_Type_vector(2, 1, 2, MPI_INT, &with_gap);
    MPI_Type_create_resized(with_gap, 0, 4 * sizeof(int), &whole);
    MPI_Type_commit(&whole);
    MPI_Type_free(&with_gap);
    return whole;
  }();
  return type;
}

class Buffer {
 public:
  // `ints`: even in gapped form.
  Buffer(Form form, int ints)
      : form_(form), ints_(ints), memory_(static_cast<std::size_t>(ints * step() + 2), kCanary) {}

  MPI_Datatype type() const { return form_ == Form::plain ? MPI_INT : gapped_pair(); }
  int count(int ints) const { return form_ == Form::plain ? ints : ints / 2; }
  int count() const { return count(ints_); }
  // In items, as displacements are.
  int displacement(int ints) const { return count(ints); }
  void* at(int i) { return &(*this)[i]; }
  void* data() { return at(0); }
  int& operator[](int i) { return memory_[static_cast<std::size_t>(i * step() + 1)]; }
  int size() const { return ints_; }

  template <class Value>
  Buffer& fill(Value value) {
    for (int i = 0; i < ints_; ++i) (*this)[i] = value(i);
    return *this;
  }
  // Whether the ints from..from+n are what they should be.
  template <class Value>
  bool holds(int from, int n, Value value) {
    for (int i = 0; i < n; ++i)
      if ((*this)[from + i] != value(i)) return false;
    return true;
  }
  bool untouched(int from, int n) {
    return holds(from, n, [](int) { return kCanary; });
  }
  // Nothing in the gaps, before and behind.
  bool gaps_intact() {
    if (memory_.front() != kCanary || memory_.back() != kCanary) return false;
    for (std::size_t i = 2; step() == 2 && i + 1 < memory_.size(); i += 2)
      if (memory_[i] != kCanary) return false;
    return true;
  }

 private:
  static constexpr int kCanary = 0x5a5a5a5a;
  int step() const { return form_ == Form::plain ? 1 : 2; }

  Form form_;
  int ints_;
  std::vector<int> memory_;
};

// What rank `from` has for rank `to`, at place `i`.
inline int value(int from, int to, int i) {
  return (from * 131 + to) * 100003 + i * 7;
}

template <class Start>
int wait_for(Start start) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int started = start(&request);
  if (started != MPI_SUCCESS) return started;
  return MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// The communicators that everything is tried on: all ranks in order; so that the ranks of a node do
// not follow one another, the even ranks and then the odd ones; pairs; and each rank alone.
class Communicators {
 public:
  Communicators() {
    const int rank = job::rank();
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank % 2 * 1000 + rank, &mixed_);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, 0, &pair_);
  }
  ~Communicators() {
    MPI_Comm_free(&mixed_);
    MPI_Comm_free(&pair_);
  }
  std::vector<MPI_Comm> all() const { return {MPI_COMM_WORLD, mixed_, pair_, MPI_COMM_SELF}; }

 private:
  MPI_Comm mixed_, pair_;
};

}  // namespace collective

// COLLECTIVE(nonblocking, bcast, Bcast, arguments...)
#define COLLECTIVE(nonblocking, lower, upper, ...)                                          \
  ((nonblocking)                                                                            \
       ? collective::wait_for([&](MPI_Request* r) { return MPI_I##lower(__VA_ARGS__, r); }) \
       : MPI_##upper(__VA_ARGS__))
