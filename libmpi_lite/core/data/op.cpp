// The reduction kernels: one loop for each predefined operation and type, chosen by kernel(). The
// compiler can vectorise the loops: it knows their element types and operations.
#include "libmpi_lite/core/data/op.hpp"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "libmpi_lite/core/data/machine_types.hpp"

namespace viaduct::mpi {

namespace {

// inout[i] = in[i] op inout[i] for `count` elements of one predefined type.
using Kernel = void (*)(const std::byte* in, std::byte* inout, MPI_Count count);

std::uintptr_t constant(MPI_Op op) {
  return reinterpret_cast<std::uintptr_t>(op);
}

// ---- loops -------------------------------------------------------------------------------------

// memcpy of a constant size is a load or a store: buffers of packed data need not be aligned.
template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// `__restrict`: in and inout are different buffers, so the loop can be vectorised.
template <class T, class Function>
void each(const std::byte* __restrict in, std::byte* __restrict inout, MPI_Count count) {
  for (MPI_Count i = 0; i < count; ++i) {
    const MPI_Count at = i * static_cast<MPI_Count>(sizeof(T));
    const T result = Function()(load<T>(in + at), load<T>(inout + at));
    std::memcpy(inout + at, &result, sizeof result);
  }
}

// Value and index are stored one by one: the padding between and behind them is not the library's.
template <class V, class I, class Better>
void each_pair(const std::byte* __restrict in, std::byte* __restrict inout, MPI_Count count) {
  using P = Pair<V, I>;
  for (MPI_Count i = 0; i < count; ++i) {
    const std::byte* a = in + i * static_cast<MPI_Count>(sizeof(P));
    std::byte* b = inout + i * static_cast<MPI_Count>(sizeof(P));
    const V value = load<V>(a), other = load<V>(b);
    const I index = load<I>(a + offsetof(P, index)), other_index = load<I>(b + offsetof(P, index));
    if (Better()(other, value)) continue;
    // Of equal values the one with the lower index (section 6.9.4).
    const I chosen = value == other ? std::min(index, other_index) : index;
    std::memcpy(b, &value, sizeof value);
    std::memcpy(b + offsetof(P, index), &chosen, sizeof chosen);
  }
}

// ---- functions of two elements -----------------------------------------------------------------

// The type in which sums and products of a type are computed. Overflow of signed integers is
// undefined in C++; programs expect it to wrap, so unsigned integers compute. At least `unsigned`:
// shorter ones would be promoted to int, whose product can overflow.
template <class T>
struct Wrapping {
  using type = T;
};
template <class T>
requires std::is_integral_v<T>
struct Wrapping<T> {
  using type = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
};
template <>
struct Wrapping<Int128> {
  using type = Uint128;
};
template <class T>
using WrappingT = typename Wrapping<T>::type;

struct Sum {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<WrappingT<T>>(a) + static_cast<WrappingT<T>>(b));
  }
  template <class T>
  Complex<T> operator()(Complex<T> a, Complex<T> b) const {
    return {a.real + b.real, a.imaginary + b.imaginary};
  }
};
struct Product {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<WrappingT<T>>(a) * static_cast<WrappingT<T>>(b));
  }
  template <class T>
  Complex<T> operator()(Complex<T> a, Complex<T> b) const {
    return {a.real * b.real - a.imaginary * b.imaginary,
            a.real * b.imaginary + a.imaginary * b.real};
  }
};
struct Min {
  template <class T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Max {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct BitAnd {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct And {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>((a != 0) & (b != 0));
  }
};
struct Or {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>((a != 0) | (b != 0));
  }
};
struct Xor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>((a != 0) ^ (b != 0));
  }
};
struct Less {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct Greater {
  template <class T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};

// ---- which operation for which type (section 6.9.2); nullptr: none -----------------------------

// The operations on complex numbers, which have no order.
template <class T>
Kernel complex_ops(std::uintptr_t op) {
  if (op == constant(MPI_SUM)) return each<T, Sum>;
  if (op == constant(MPI_PROD)) return each<T, Product>;
  return nullptr;
}
// The operations on floating-point numbers.
template <class T>
Kernel real_ops(std::uintptr_t op) {
  if (op == constant(MPI_MIN)) return each<T, Min>;
  if (op == constant(MPI_MAX)) return each<T, Max>;
  return complex_ops<T>(op);
}
template <class T>
Kernel bit_ops(std::uintptr_t op) {
  if (op == constant(MPI_BAND)) return each<T, BitAnd>;
  if (op == constant(MPI_BOR)) return each<T, BitOr>;
  if (op == constant(MPI_BXOR)) return each<T, BitXor>;
  return nullptr;
}
// Logical operations: any value but 0 is true, the result is 0 or 1.
template <class T>
Kernel logical_ops(std::uintptr_t op) {
  if (op == constant(MPI_LAND)) return each<T, And>;
  if (op == constant(MPI_LOR)) return each<T, Or>;
  if (op == constant(MPI_LXOR)) return each<T, Xor>;
  return nullptr;
}
// C integers, Fortran integers, and integers of both (MPI_AINT, MPI_COUNT, MPI_OFFSET). The
// standard has no logical operations on the latter two groups, and no operations at all on
// characters. But programs use them, and other libraries let them.
template <class T>
Kernel integer_ops(std::uintptr_t op) {
  if (const Kernel k = real_ops<T>(op)) return k;
  if (const Kernel k = bit_ops<T>(op)) return k;
  return logical_ops<T>(op);
}
template <class V, class I>
Kernel location_ops(std::uintptr_t op) {
  if (op == constant(MPI_MINLOC)) return each_pair<V, I, Less>;
  if (op == constant(MPI_MAXLOC)) return each_pair<V, I, Greater>;
  return nullptr;
}

Kernel logical_kernel(std::uintptr_t op, MPI_Count size) {
  switch (size) {
    case 1: return logical_ops<std::uint8_t>(op);
    case 2: return logical_ops<std::uint16_t>(op);
    case 4: return logical_ops<std::uint32_t>(op);
    case 8: return logical_ops<std::uint64_t>(op);
    default: return logical_ops<Uint128>(op);
  }
}

// The layout of a pair depends on the type itself, not on Elementary alone.
Kernel pair_kernel(std::uintptr_t op, MPI_Datatype type) {
  if (type == MPI_FLOAT_INT) return location_ops<float, int>(op);
  if (type == MPI_DOUBLE_INT) return location_ops<double, int>(op);
  if (type == MPI_LONG_INT) return location_ops<long, int>(op);
  if (type == MPI_SHORT_INT) return location_ops<short, int>(op);
  if (type == MPI_LONG_DOUBLE_INT) return location_ops<long double, int>(op);
  if (type == MPI_2INT || type == MPI_2INTEGER) return location_ops<int, int>(op);
  if (type == MPI_2REAL) return location_ops<float, float>(op);
  return location_ops<double, double>(op);  // MPI_2DOUBLE_PRECISION
}

// The loop for an operation and a type; nullptr: section 6.9.2 does not allow it.
Kernel kernel(std::uintptr_t op, const Datatype& type) {
  switch (type.elementary()) {
    case Elementary::int8: return integer_ops<std::int8_t>(op);
    case Elementary::uint8: return integer_ops<std::uint8_t>(op);
    case Elementary::int16: return integer_ops<std::int16_t>(op);
    case Elementary::uint16: return integer_ops<std::uint16_t>(op);
    case Elementary::int32: return integer_ops<std::int32_t>(op);
    case Elementary::uint32: return integer_ops<std::uint32_t>(op);
    case Elementary::int64: return integer_ops<std::int64_t>(op);
    case Elementary::uint64: return integer_ops<std::uint64_t>(op);
    case Elementary::int128: return integer_ops<Int128>(op);
    case Elementary::float32: return real_ops<float>(op);
    case Elementary::float64: return real_ops<double>(op);
    case Elementary::float80: return real_ops<long double>(op);
    case Elementary::float128: return real_ops<Float128>(op);
    case Elementary::complex32: return complex_ops<Complex<float>>(op);
    case Elementary::complex64: return complex_ops<Complex<double>>(op);
    case Elementary::complex80: return complex_ops<Complex<long double>>(op);
    case Elementary::complex128: return complex_ops<Complex<Float128>>(op);
    case Elementary::logical: return logical_kernel(op, type.size());
    case Elementary::byte: return bit_ops<std::uint8_t>(op);
    case Elementary::pair: return pair_kernel(op, type.constant());
    // MPI_CHAR and MPI_CHARACTER; MPI_WCHAR has no such use.
    case Elementary::character: return type.size() == 1 ? integer_ops<signed char>(op) : nullptr;
    case Elementary::none:
    case Elementary::packed:
    case Elementary::marker: break;
  }
  return nullptr;
}

}  // namespace

Op::Op(MPI_Op predefined) : constant_(reinterpret_cast<std::uintptr_t>(predefined)) {}
Op::Op(MPI_User_function* function, bool commutative)
    : function_(function), commutative_(commutative) {}

Op::Op(MPI_User_function_c* function, bool commutative)
    : large_function_(function), commutative_(commutative) {}

bool Op::allows(const Datatype& type) const {
  return !predefined() || kernel(constant_, type) != nullptr;
}

void Op::apply(const void* in, void* inout, MPI_Count count, MPI_Datatype type) const {
  const Datatype& t = datatype(type);
  if (predefined())
    return kernel(constant_, t)(static_cast<const std::byte*>(in), static_cast<std::byte*>(inout),
                                count);
  // The functions take their first argument without const, but must not change it (section 6.9.5).
  // They get copies of count and handle, so that they cannot change the library's. Addresses are
  // numbers here: the buffers of a type with absolute displacements start at MPI_BOTTOM.
  if (large_function_) {
    if (count > 0) large_function_(const_cast<void*>(in), inout, &count, &type);
    return;
  }
  auto a = reinterpret_cast<std::uintptr_t>(in), b = reinterpret_cast<std::uintptr_t>(inout);
  while (count > 0) {
    // These count in int: longer buffers go in pieces.
    int piece = static_cast<int>(std::min<MPI_Count>(count, INT_MAX));
    MPI_Datatype handle = type;
    function_(reinterpret_cast<void*>(a), reinterpret_cast<void*>(b), &piece, &handle);
    const auto done = std::min<MPI_Count>(count, INT_MAX);
    a += static_cast<std::uintptr_t>(done * t.extent());
    b += static_cast<std::uintptr_t>(done * t.extent());
    count -= done;
  }
}

void define_ops() {
  for (const MPI_Op op :
       {MPI_SUM, MPI_MIN, MPI_MAX, MPI_PROD, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR,
        MPI_LXOR, MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP})
    op_handles.define(reinterpret_cast<std::uintptr_t>(op), make<Op>(op));
}

}  // namespace viaduct::mpi
