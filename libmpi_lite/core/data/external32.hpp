// "external32" (MPI 5.0, section 14.5.2): data in the same form on every machine, for
// MPI_Pack_external: big-endian, IEEE, with the sizes of the standard's table.
#pragma once

#include "libmpi_lite/core/data/datatype.hpp"

namespace viaduct::mpi {

// Converts `count` items at `buffer`. The external form has count * type.type_map().external_size()
// bytes, all of which `out` has room for.
void pack_external32(const void* buffer, MPI_Count count, const Datatype& type, std::byte* out);
// The reverse; what lies between the elements of the items is not touched.
void unpack_external32(const std::byte* in, void* buffer, MPI_Count count, const Datatype& type);

}  // namespace viaduct::mpi
