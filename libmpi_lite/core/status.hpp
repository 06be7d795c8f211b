// What MPI_Status holds. The ABI fixes the fields for source, tag and error; MPI_internal is the
// library's:
//
//   [0..1]  length of the message in bytes, 64 bits
//   [2]     whether the operation was cancelled
//   [3..4]  upper 64 bits of the length, only of lengths that a program has set
//           (MPI_Status_set_elements): no message is so long
//
// memcpy, because MPI_internal is an array of int and need not be aligned for 64 bits.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstring>

namespace viaduct::mpi {

inline std::int64_t status_bytes(const MPI_Status& s) {
  std::int64_t bytes;
  std::memcpy(&bytes, s.MPI_internal, sizeof bytes);
  return bytes;
}
inline void set_status_bytes(MPI_Status& s, std::int64_t bytes) {
  std::memcpy(s.MPI_internal, &bytes, sizeof bytes);
}
// A length that can hold any MPI_Count of any basic type.
__extension__ using WideBytes = __int128;
inline WideBytes status_wide_bytes(const MPI_Status& s) {
  std::int64_t high;
  std::memcpy(&high, s.MPI_internal + 3, sizeof high);
  return static_cast<WideBytes>(high) << 64 | static_cast<std::uint64_t>(status_bytes(s));
}
inline void set_status_wide_bytes(MPI_Status& s, WideBytes bytes) {
  const auto high = static_cast<std::int64_t>(bytes >> 64);
  set_status_bytes(s, static_cast<std::int64_t>(bytes));
  std::memcpy(s.MPI_internal + 3, &high, sizeof high);
}
inline bool status_cancelled(const MPI_Status& s) {
  return s.MPI_internal[2] != 0;
}
inline void set_status_cancelled(MPI_Status& s, bool cancelled) {
  s.MPI_internal[2] = cancelled;
}

// Copies all fields but MPI_ERROR, which only calls on several requests set (section 3.2.5).
inline void copy_status(const MPI_Status& from, MPI_Status& to) {
  const int error = to.MPI_ERROR;
  to = from;
  to.MPI_ERROR = error;
}

// The empty status (MPI 5.0, section 3.7.3), of null and inactive requests; with MPI_PROC_NULL as
// its source, that of operations with MPI_PROC_NULL.
inline MPI_Status empty_status(int source = MPI_ANY_SOURCE) {
  MPI_Status s{};
  s.MPI_SOURCE = source;
  s.MPI_TAG = MPI_ANY_TAG;
  s.MPI_ERROR = MPI_SUCCESS;
  return s;
}

}  // namespace viaduct::mpi
