// Types of this machine's compilers that standard C++ has no names for, and the structures that
// predefined datatypes describe. named_types.cpp and op.cpp use them.
#pragma once

namespace viaduct::mpi {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;
#ifdef __SIZEOF_FLOAT128__
__extension__ using Float128 = __float128;  // Fortran's REAL(16)
#else
using Float128 = long double;
#endif
static_assert(sizeof(Float128) == 16);

template <class T>
struct Complex {
  T real, imaginary;
};

// What MPI_MINLOC and MPI_MAXLOC work on (MPI 5.0, section 6.9.4), as a C compiler lays it out.
template <class V, class I>
struct Pair {
  V value;
  I index;
};

}  // namespace viaduct::mpi
