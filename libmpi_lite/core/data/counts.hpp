// Arrays of integers that a program passes: counts, block lengths, displacements. Their elements
// are ints in MPI_X, and have 64 bits in its twin with large counts, MPI_X_c (MPI 5.0,
// section 2.5.8). Whatever takes these views is written once for both.
//
// Views: the arrays stay the program's, and must stay valid as long as the view is used.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>
#include <type_traits>

namespace viaduct::mpi {

static_assert(std::is_same_v<MPI_Aint, MPI_Count>, "displacements of MPI_X_c are counts");

// An array whose length its user knows. A null pointer: there is none.
class Counts {
 public:
  Counts(std::nullptr_t = nullptr) {}
  Counts(const int* values) : values_(values) {}
  Counts(const MPI_Count* values) : values_(values), large_(true) {}

  MPI_Count operator[](std::size_t i) const {
    return large_ ? static_cast<const MPI_Count*>(values_)[i]
                  : MPI_Count{static_cast<const int*>(values_)[i]};
  }
  MPI_Count operator[](int i) const { return (*this)[static_cast<std::size_t>(i)]; }
  explicit operator bool() const { return values_ != nullptr; }
  bool large() const { return large_; }

 private:
  const void* values_ = nullptr;
  bool large_ = false;
};

// An array with its length.
class CountList {
 public:
  CountList(Counts values, std::size_t size) : values_(values), size_(size) {}
  template <class Range>
  requires std::is_convertible_v<const Range&, std::span<const int>> CountList(const Range& range) {
    const std::span<const int> values = range;
    values_ = values.data();
    size_ = values.size();
  }

  MPI_Count operator[](std::size_t i) const { return values_[i]; }
  std::size_t size() const { return size_; }
  bool large() const { return values_.large(); }

 private:
  Counts values_;
  std::size_t size_ = 0;
};

// Which of the two functions a datatype was made with: that is what MPI_Type_get_contents_c tells.
enum class CountKind : bool { ints, large };

}  // namespace viaduct::mpi
