// Functions that exist twice (MPI 5.0, section 2.5.8): MPI_X, whose counts are ints, and MPI_X_c,
// whose counts have 64 bits. Each is written once, with Count for the type of its counts and Disp
// for the type of displacements in arrays of the v-forms:
//
//   VIADUCT_MPI_COUNTED(Send,
//                       (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag,
//                        MPI_Comm comm),
//                       send_call(function, SendMode::standard, buf, count, ...));
//
// The expression is what both return; `function` is the name of the one that was called. It works
// because a C function that is declared in two namespaces is one function, so that the compiler
// compares both with their declarations in mpi.h.
#pragma once

#include "libmpi_lite/api/call.hpp"
#include "libmpi_lite/core/data/counts.hpp"

namespace viaduct::mpi::int_counts {
using Count = int;
using Disp = int;
inline constexpr CountKind kCounts = CountKind::ints;
}  // namespace viaduct::mpi::int_counts

namespace viaduct::mpi::large_counts {
using Count = MPI_Count;
using Disp = MPI_Aint;
inline constexpr CountKind kCounts = CountKind::large;
}  // namespace viaduct::mpi::large_counts

// One of the two: `counts` names the namespace, and `name` the function.
#define VIADUCT_MPI_COUNTED_BY(counts, name, parameters, ...) \
  namespace viaduct::mpi::counts {                            \
  extern "C" int PMPI_##name parameters {                     \
    [[maybe_unused]] constexpr auto function = "MPI_" #name;  \
    return __VA_ARGS__;                                       \
  }                                                           \
  }                                                           \
  VIADUCT_MPI(name)

#define VIADUCT_MPI_COUNTED(name, parameters, ...)                   \
  VIADUCT_MPI_COUNTED_BY(int_counts, name, parameters, __VA_ARGS__); \
  VIADUCT_MPI_COUNTED_BY(large_counts, name##_c, parameters, __VA_ARGS__)
