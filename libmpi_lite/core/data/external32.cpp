// Conversion of basic elements to and from "external32": byte order, longs of 4 bytes, long doubles
// of 16. Element by element: speed does not matter here.
#include "libmpi_lite/core/data/external32.hpp"

#include <bit>
#include <cstring>

#include "libmpi_lite/core/data/machine_types.hpp"

namespace viaduct::mpi {

namespace {

// Of the largest number: a 128-bit integer or float.
constexpr std::size_t kMaxBytes = 16;  // of a number

// Bytes of a number, from the machine's byte order to big-endian or back.
void reorder(const std::byte* in, std::size_t bytes, std::byte* out) {
  for (std::size_t b = 0; b < bytes; ++b)
    out[b] = in[std::endian::native == std::endian::little ? bytes - 1 - b : b];
}

// Any number but long double: if the external form is shorter, its least significant bytes go
// (section 14.5.2). Floats have the same size in both forms.
void write_integer(const std::byte* in, std::size_t size, std::byte* out, std::size_t out_size) {
  std::byte big[kMaxBytes];
  reorder(in, size, big);
  std::memcpy(out, big + (size - out_size), out_size);
}
void read_integer(const std::byte* in, std::size_t in_size, std::byte* out, std::size_t size,
                  bool is_signed) {
  std::byte big[kMaxBytes];
  // A longer number in memory is filled up with the sign.
  const bool negative = is_signed && (in[0] & std::byte{0x80}) != std::byte{0};
  std::memset(big, negative ? 0xff : 0, size - in_size);
  std::memcpy(big + (size - in_size), in, in_size);
  reorder(big, size, out);
}

// x87's 80-bit format becomes IEEE's 128-bit format: the compiler's conversion does that.
void write_long_double(const std::byte* in, std::byte* out) {
  long double native;
  std::memcpy(&native, in, sizeof native);
  const auto quad = static_cast<Float128>(native);
  std::byte bytes[sizeof quad];
  std::memcpy(bytes, &quad, sizeof quad);
  reorder(bytes, sizeof quad, out);
}
void read_long_double(const std::byte* in, std::byte* out) {
  std::byte bytes[sizeof(Float128)];
  reorder(in, sizeof bytes, bytes);
  Float128 quad;
  std::memcpy(&quad, bytes, sizeof quad);
  const auto native = static_cast<long double>(quad);
  std::memcpy(out, &native, sizeof native);
}

bool has_sign(Elementary kind) {
  using enum Elementary;
  return kind == int8 || kind == int16 || kind == int32 || kind == int64 || kind == int128;
}
bool is_complex(Elementary kind) {
  using enum Elementary;
  return kind == complex32 || kind == complex64 || kind == complex80 || kind == complex128;
}
bool is_long_double(Elementary kind) {
  return kind == Elementary::float80 || kind == Elementary::complex80;
}

// Converts the basic elements of pieces of memory: the leaf function of Layout::visit().
template <bool kPack>
class Converter {
 public:
  using Stream = std::conditional_t<kPack, std::byte, const std::byte>;
  explicit Converter(Stream* stream) : stream_(stream) {}

  void operator()(std::uintptr_t at, const Layout::Piece& piece, MPI_Count from, MPI_Count to) {
    const Basic& b = piece.basic;
    const MPI_Count parts = is_complex(b.kind) ? 2 : 1;  // real and imaginary part are numbers each
    const auto size = static_cast<std::size_t>(b.size / parts);
    const auto external = static_cast<std::size_t>(b.external_size / parts);
    for (; from < to; from += static_cast<MPI_Count>(size)) {
      // Where the element is in memory: its unit, and the offset in the unit.
      const MPI_Count place = from / piece.unit * piece.stride + from % piece.unit;
      convert(at + static_cast<std::uintptr_t>(place), b.kind, size, external);
      stream_ += external;
    }
  }

 private:
  void convert(std::uintptr_t at, Elementary kind, std::size_t size, std::size_t external) {
    if constexpr (kPack) {
      const auto* memory = reinterpret_cast<const std::byte*>(at);
      if (is_long_double(kind)) return write_long_double(memory, stream_);
      write_integer(memory, size, stream_, external);
    } else {
      auto* memory = reinterpret_cast<std::byte*>(at);
      if (is_long_double(kind)) return read_long_double(stream_, memory);
      read_integer(stream_, external, memory, size, has_sign(kind));
    }
  }

  Stream* stream_;
};

template <bool kPack>
void convert_items(std::uintptr_t buffer, MPI_Count count, const Datatype& type,
                   Converter<kPack> convert) {
  if (type.size() == 0) return;
  for (MPI_Count i = 0; i < count; ++i) {
    const auto at = buffer + static_cast<std::uintptr_t>(i * type.extent());
    type.type_map().visit(at, 0, type.size(), convert);
  }
}

}  // namespace

void pack_external32(const void* buffer, MPI_Count count, const Datatype& type, std::byte* out) {
  convert_items(reinterpret_cast<std::uintptr_t>(buffer), count, type, Converter<true>(out));
}

void unpack_external32(const std::byte* in, void* buffer, MPI_Count count, const Datatype& type) {
  convert_items(reinterpret_cast<std::uintptr_t>(buffer), count, type, Converter<false>(in));
}

}  // namespace viaduct::mpi
