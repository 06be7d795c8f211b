// Packing and unpacking (MPI 5.0, sections 5.2 and 5.3) and arithmetic on addresses (section
// 5.1.5).
//
// Choices: MPI_Pack makes the bytes of the data one after another, without a header, so
// MPI_Pack_size is exact and a packed message may be received with the type itself. "external32" is
// big-endian (core/data/external32.cpp) and the only representation that MPI_Pack_external knows.
#include <cstring>

#include "libmpi_lite/api/counted.hpp"
#include "libmpi_lite/api/give_count.hpp"
#include "libmpi_lite/core/data/external32.hpp"

using namespace viaduct::mpi;

namespace {

// `count` times `each` in bytes; MPI_UNDEFINED if 64 bits cannot hold the product.
MPI_Count total_bytes(MPI_Count count, MPI_Count each) {
  MPI_Count bytes;
  return __builtin_mul_overflow(count, each, &bytes) ? MPI_UNDEFINED : bytes;
}

// The place in a packed buffer where `bytes` may be read or written; `*position` moves behind them.
// Throws MPI_ERR_TRUNCATE if they do not fit, and then `*position` is as it was.
template <class Position, class Byte>
Byte* take(Byte* buffer, Position size, Position* position, MPI_Count bytes,
           const char* buffer_argument, const char* size_argument) {
  check_pointer(position, "position");
  if (size < 0)
    fail(MPI_ERR_ARG, "argument %s is %lld; it must not be negative", size_argument,
         static_cast<long long>(size));
  if (*position < 0 || *position > size)
    fail(MPI_ERR_ARG, "argument position is %lld; it must be in 0 to %lld (%s)",
         static_cast<long long>(*position), static_cast<long long>(size), size_argument);
  if (bytes == MPI_UNDEFINED || bytes > size - *position)
    fail(MPI_ERR_TRUNCATE, "%lld bytes do not fit between position %lld and %lld (%s)",
         static_cast<long long>(bytes), static_cast<long long>(*position),
         static_cast<long long>(size), size_argument);
  // Nothing is read or written, so a null pointer is allowed.
  if (bytes == 0) return buffer;
  if (!buffer) fail(MPI_ERR_BUFFER, "argument %s is a null pointer", buffer_argument);
  Byte* place = buffer + *position;
  *position += static_cast<Position>(bytes);
  return place;
}

auto* bytes_at(void* buffer) {
  return static_cast<std::byte*>(buffer);
}
const auto* bytes_at(const void* buffer) {
  return static_cast<const std::byte*>(buffer);
}

MPI_Count packed_bytes(const Items& items) {
  return total_bytes(items.count, items.type->size());
}

void check_external32(const char* datarep) {
  if (std::strcmp(check_pointer(datarep, "datarep"), "external32") != 0)
    fail(MPI_ERR_UNSUPPORTED_DATAREP, "argument datarep is \"%s\"; it must be \"external32\"",
         datarep);
}
MPI_Count external_bytes(MPI_Count count, const Datatype& type) {
  return total_bytes(count, type.type_map().external_size());
}

}  // namespace

VIADUCT_MPI_COUNTED(Pack,
                    (const void* inbuf, Count incount, MPI_Datatype datatype, void* outbuf,
                     Count outsize, Count* position, MPI_Comm comm),
                    call(function, comm, [&](Comm&) {
                      const Items items = check_items(inbuf, incount, datatype, "inbuf");
                      const MPI_Count bytes = packed_bytes(items);
                      std::byte* to =
                          take(bytes_at(outbuf), outsize, position, bytes, "outbuf", "outsize");
                      items.type->pack(inbuf, 0, {to, static_cast<std::size_t>(bytes)});
                    }));

VIADUCT_MPI_COUNTED(Unpack,
                    (const void* inbuf, Count insize, Count* position, void* outbuf, Count outcount,
                     MPI_Datatype datatype, MPI_Comm comm),
                    call(function, comm, [&](Comm&) {
                      const Items items = check_items(outbuf, outcount, datatype, "outbuf");
                      const MPI_Count bytes = packed_bytes(items);
                      const std::byte* from =
                          take(bytes_at(inbuf), insize, position, bytes, "inbuf", "insize");
                      items.type->unpack(outbuf, 0, {from, static_cast<std::size_t>(bytes)});
                    }));

VIADUCT_MPI_COUNTED(Pack_size, (Count incount, MPI_Datatype datatype, MPI_Comm comm, Count* size),
                    call(function, comm, [&](Comm&) {
                      check_count(incount, "incount");
                      const Datatype& t = check_type(datatype);
                      give_count(size, "size", total_bytes(incount, t.size()));
                    }));

VIADUCT_MPI_COUNTED(Pack_external,
                    (const char* datarep, const void* inbuf, Count incount, MPI_Datatype datatype,
                     void* outbuf, MPI_Aint outsize, MPI_Aint* position),
                    call(function, [&] {
                      check_external32(datarep);
                      const Items items = check_items(inbuf, incount, datatype, "inbuf");
                      std::byte* to =
                          take(bytes_at(outbuf), outsize, position,
                               external_bytes(incount, *items.type), "outbuf", "outsize");
                      pack_external32(inbuf, incount, *items.type, to);
                    }));

VIADUCT_MPI_COUNTED(Unpack_external,
                    (const char* datarep, const void* inbuf, MPI_Aint insize, MPI_Aint* position,
                     void* outbuf, Count outcount, MPI_Datatype datatype),
                    call(function, [&] {
                      check_external32(datarep);
                      const Items items = check_items(outbuf, outcount, datatype, "outbuf");
                      const std::byte* from =
                          take(bytes_at(inbuf), insize, position,
                               external_bytes(outcount, *items.type), "inbuf", "insize");
                      unpack_external32(from, outbuf, outcount, *items.type);
                    }));

VIADUCT_MPI_COUNTED(Pack_external_size,
                    (const char* datarep, Count incount, MPI_Datatype datatype, MPI_Aint* size),
                    call(function, [&] {
                      check_external32(datarep);
                      check_count(incount, "incount");
                      give_count(size, "size", external_bytes(incount, check_type(datatype)));
                    }));

// ---- addresses ---------------------------------------------------------------------------------

int PMPI_Get_address(const void* location, MPI_Aint* address) {
  return call("MPI_Get_address",
              [&] { *check_pointer(address, "address") = reinterpret_cast<MPI_Aint>(location); });
}
VIADUCT_MPI(Get_address);

int PMPI_Address(void* location, MPI_Aint* address) {
  return call("MPI_Address",
              [&] { *check_pointer(address, "address") = reinterpret_cast<MPI_Aint>(location); });
}
VIADUCT_MPI(Address);

// Computed without a sign: addresses wrap, and signed overflow is undefined in C++. These two
// functions return a value and no error code, so they check nothing.
MPI_Aint PMPI_Aint_add(MPI_Aint base, MPI_Aint disp) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(base) +
                               static_cast<std::uintptr_t>(disp));
}
VIADUCT_MPI(Aint_add);

MPI_Aint PMPI_Aint_diff(MPI_Aint addr1, MPI_Aint addr2) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(addr1) -
                               static_cast<std::uintptr_t>(addr2));
}
VIADUCT_MPI(Aint_diff);
