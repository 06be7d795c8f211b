// What MPI_Status holds. The ABI fixes source, tag and error; the rest is ours:
// MPI_internal[0..1] the length in bytes (64 bits), [2] whether the operation was cancelled, [3..4]
// higher bits of the length, of lengths that a program has set: no message is so long.
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
// Of any count of any basic type.
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

// All fields but MPI_ERROR, which only calls on several requests set (section 3.2.5).
inline void copy_status(const MPI_Status& from, MPI_Status& to) {
  const int error = to.MPI_ERROR;
  to = from;
  to.MPI_ERROR = error;
}

// Of a null or inactive request (MPI 5.0, section 3.7.3), and, with its source, of MPI_PROC_NULL.
inline MPI_Status empty_status(int source = MPI_ANY_SOURCE) {
  MPI_Status s{};
  s.MPI_SOURCE = source;
  s.MPI_TAG = MPI_ANY_TAG;
  s.MPI_ERROR = MPI_SUCCESS;
  return s;
}

}  // namespace viaduct::mpi
