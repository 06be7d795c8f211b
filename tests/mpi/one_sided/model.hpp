// A sequential model of one-sided communication for one_sided/random.cpp: what operations do to
// plain memory, written down as simply as the standard says it.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

namespace model {

using Bytes = std::vector<unsigned char>;

// What elements of a window are.
struct Element {
  MPI_Datatype type;
  int size;  // bytes in memory, with padding
  enum Kind { integer, pair_of_ints, short_and_int, opaque } kind;
};

inline const Element kElements[] = {
    {MPI_INT8_T, 1, Element::integer},
    {MPI_INT16_T, 2, Element::integer},
    {MPI_INT, 4, Element::integer},
    {MPI_INT64_T, 8, Element::integer},
    {MPI_2INT, 8, Element::pair_of_ints},
    {MPI_SHORT_INT, 8, Element::short_and_int},
    {MPI_C_DOUBLE_COMPLEX, 16, Element::opaque},
};

inline std::vector<MPI_Op> operations(const Element& element) {
  switch (element.kind) {
    case Element::integer:
      return {MPI_SUM, MPI_MAX, MPI_MIN, MPI_BXOR, MPI_PROD, MPI_REPLACE, MPI_NO_OP};
    case Element::pair_of_ints:
    case Element::short_and_int: return {MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
    default: return {MPI_REPLACE, MPI_NO_OP};
  }
}

template <class T>
T load(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
void store(unsigned char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <class T>
void combine_integer(MPI_Op op, const unsigned char* from, unsigned char* at) {
  using Unsigned = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
  const T a = load<T>(from), b = load<T>(at);
  if (op == MPI_SUM)
    store<T>(at, static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  if (op == MPI_PROD)
    store<T>(at, static_cast<T>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b)));
  if (op == MPI_MAX) store<T>(at, std::max(a, b));
  if (op == MPI_MIN) store<T>(at, std::min(a, b));
  if (op == MPI_BXOR) store<T>(at, static_cast<T>(a ^ b));
}

template <class Value>
void combine_pair(MPI_Op op, const unsigned char* from, unsigned char* at) {
  const Value a = load<Value>(from), b = load<Value>(at);
  const int i = load<int>(from + 4), j = load<int>(at + 4);
  const bool better = op == MPI_MINLOC ? a < b : a > b;
  if (better) store<Value>(at, a);
  if (better) store<int>(at + 4, i);
  if (a == b) store<int>(at + 4, std::min(i, j));
}

// Copies the data of an element, without padding.
inline void copy(const Element& element, const unsigned char* from, unsigned char* at) {
  if (element.kind != Element::short_and_int)
    return void(std::memcpy(at, from, static_cast<std::size_t>(element.size)));
  std::memcpy(at, from, 2);
  std::memcpy(at + 4, from + 4, 4);
}

inline void accumulate(const Element& element, MPI_Op op, const unsigned char* from,
                       unsigned char* at) {
  if (op == MPI_NO_OP) return;
  if (op == MPI_REPLACE) return copy(element, from, at);
  if (element.kind == Element::pair_of_ints) return combine_pair<int>(op, from, at);
  if (element.kind == Element::short_and_int) return combine_pair<short>(op, from, at);
  switch (element.size) {
    case 1: return combine_integer<std::int8_t>(op, from, at);
    case 2: return combine_integer<std::int16_t>(op, from, at);
    case 4: return combine_integer<std::int32_t>(op, from, at);
    default: return combine_integer<std::int64_t>(op, from, at);
  }
}

// Some elements of a block, by index, and a datatype for them.
struct Shape {
  std::vector<int> indices;
  MPI_Datatype type = MPI_DATATYPE_NULL;  // of all elements together
  int count = 1;
  bool derived = false;
  void free() {
    if (derived) MPI_Type_free(&type);
  }
};

// `step`: a row begins at a multiple of that. `style`: 0: a row of elements; 1: elements at equal
// distances; 2: any elements, in any order.
template <class Random>
Shape choose_shape(Random& random, const Element& element, int most, int style, int step) {
  Shape shape;
  if (style == 0 || most < 4) {
    shape.count = random.between(1, most);
    const int first = random.between(0, most - shape.count) / step * step;
    for (int i = 0; i < shape.count; ++i) shape.indices.push_back(first + i);
    shape.type = element.type;
    return shape;  // named by its first element; the others by a type that starts at the block
  }
  if (style == 1) {
    const int stride = random.between(2, 3), count = random.between(1, (most - 1) / stride);
    for (int i = 0; i < count; ++i) shape.indices.push_back(i * stride);
    MPI_Type_vector(count, 1, stride, element.type, &shape.type);
  } else {
    for (int i = 0; i < most; ++i)
      if (random.percent(60)) shape.indices.push_back(i);
    if (shape.indices.empty()) shape.indices.push_back(0);
    random.shuffle(shape.indices);
    MPI_Type_create_indexed_block(static_cast<int>(shape.indices.size()), 1, shape.indices.data(),
                                  element.type, &shape.type);
  }
  MPI_Type_commit(&shape.type);
  shape.derived = true;
  return shape;
}

}  // namespace model
