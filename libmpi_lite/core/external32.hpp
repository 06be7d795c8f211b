// "external32": data in the same form on every machine (MPI 5.0, section 14.5.2): big-endian, IEEE,
// with the sizes of the standard's table.
#pragma once

#include "libmpi_lite/core/datatype.hpp"

namespace viaduct::mpi {

// `count` items at `buffer`, as count * type.type_map().external_size() bytes at `out`.
void pack_external32(const void* buffer, MPI_Count count, const Datatype& type, std::byte* out);
void unpack_external32(const std::byte* in, void* buffer, MPI_Count count, const Datatype& type);

}  // namespace viaduct::mpi
