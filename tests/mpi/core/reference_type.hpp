// Datatypes as the standard defines them (MPI 5.0, section 5.1): a type map, entry by entry, with
// nothing clever about it. What the library's datatypes are compared with; and random ones of both.
#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "libmpi_lite/core/data/datatype_builder.hpp"

namespace viaduct::mpi::reference {

struct Entry {
  MPI_Count displacement;
  MPI_Count size, alignment;  // of the basic type; size 0: a marker
  enum class Marker : std::uint8_t { none, lb, ub } marker = Marker::none;
};

struct Type {
  std::vector<Entry> map;

  bool data() const {
    return std::any_of(map.begin(), map.end(), [](const Entry& e) { return e.size > 0; });
  }
  std::optional<MPI_Count> marked(Entry::Marker marker) const {
    std::optional<MPI_Count> at;
    for (const Entry& e : map)
      if (e.marker == marker)
        at = !at                           ? e.displacement
             : marker == Entry::Marker::lb ? std::min(*at, e.displacement)
                                           : std::max(*at, e.displacement);
    return at;
  }
  MPI_Count size() const {
    MPI_Count bytes = 0;
    for (const Entry& e : map) bytes += e.size;
    return bytes;
  }
  MPI_Count true_lb() const {
    if (!data()) return 0;
    MPI_Count lb = INT64_MAX;
    for (const Entry& e : map)
      if (e.size > 0) lb = std::min(lb, e.displacement);
    return lb;
  }
  MPI_Count true_ub() const {
    if (!data()) return 0;
    MPI_Count ub = INT64_MIN;
    for (const Entry& e : map)
      if (e.size > 0) ub = std::max(ub, e.displacement + e.size);
    return ub;
  }
  MPI_Count lb() const { return marked(Entry::Marker::lb).value_or(true_lb()); }
  MPI_Count ub() const {
    if (const auto ub = marked(Entry::Marker::ub)) return *ub;
    if (!data()) return lb();
    MPI_Count alignment = 1;
    for (const Entry& e : map) alignment = std::max(alignment, e.alignment);
    const MPI_Count low = lb();
    MPI_Count high = true_ub();
    while ((high - low) % alignment != 0) ++high;
    return high;
  }
  MPI_Count extent() const { return ub() - lb(); }

  void add(const Type& type, MPI_Count displacement, MPI_Count copies) {
    const MPI_Count stride = type.extent();
    for (MPI_Count c = 0; c < copies; ++c)
      for (Entry e : type.map) {
        e.displacement += displacement + c * stride;
        map.push_back(e);
      }
  }

  // Where the bytes of `count` items are, in the order of the packed form.
  std::vector<MPI_Count> places(MPI_Count count) const {
    std::vector<MPI_Count> all;
    const MPI_Count stride = extent();
    for (MPI_Count i = 0; i < count; ++i)
      for (const Entry& e : map)
        for (MPI_Count b = 0; b < e.size; ++b) all.push_back(i * stride + e.displacement + b);
    return all;
  }
};

struct Both {
  Ref<Datatype> real;
  Type model;
};

class RandomTypes {
 public:
  explicit RandomTypes(unsigned seed) : random_(seed) {}

  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  Both make(int depth) {
    if (depth == 0 || between(0, 9) == 0) return named();
    const Both old = make(depth - 1);
    switch (old.model.map.size() > 200 ? 6 : between(0, 8)) {
      case 0: return contiguous(old);
      case 1: return vector(old);
      case 2: return hvector(old);
      case 3: return indexed(old);
      case 4: return hindexed(old);
      case 5: return blocks(old);
      case 6: return resized(old);
      case 7: return {make_dup(*old.real), old.model};
      default: return structure(old, depth);
    }
  }

 private:
  Both named() {
    struct Named {
      MPI_Datatype type;
      std::vector<Entry> map;
    };
    static const Named kNamed[] = {{MPI_BYTE, {{0, 1, 1}}},
                                   {MPI_CHAR, {{0, 1, 1}}},
                                   {MPI_SHORT, {{0, 2, 2}}},
                                   {MPI_INT, {{0, 4, 4}}},
                                   {MPI_FLOAT, {{0, 4, 4}}},
                                   {MPI_DOUBLE, {{0, 8, 8}}},
                                   {MPI_LONG, {{0, 8, 8}}},
                                   {MPI_C_DOUBLE_COMPLEX, {{0, 16, 8}}},
                                   {MPI_LONG_DOUBLE, {{0, 16, 16}}},
                                   {MPI_SHORT_INT, {{0, 2, 2}, {4, 4, 4}}},
                                   {MPI_DOUBLE_INT, {{0, 8, 8}, {8, 4, 4}}}};
    const Named& n = kNamed[between(0, std::size(kNamed) - 1)];
    return {Ref(&datatype(n.type)), {n.map}};
  }
  Both contiguous(const Both& old) {
    const int count = between(0, 5);
    Type model;
    model.add(old.model, 0, count);
    return {make_contiguous(count, *old.real), model};
  }
  Both vector(const Both& old) {
    const int count = between(0, 4), length = between(0, 3), stride = between(-4, 6);
    Type model;
    for (int i = 0; i < count; ++i) model.add(old.model, i * stride * old.model.extent(), length);
    return {make_vector(count, length, stride, *old.real), model};
  }
  Both hvector(const Both& old) {
    const int count = between(0, 4), length = between(0, 3), stride = between(-40, 60);
    Type model;
    for (int i = 0; i < count; ++i) model.add(old.model, i * stride, length);
    return {make_hvector(count, length, stride, *old.real), model};
  }
  // Numbers that are often regular, because regular types take paths of their own.
  std::vector<int> numbers(int count, int low, int high) {
    std::vector<int> all(static_cast<std::size_t>(count), between(low, high));
    const int step = between(0, 3) * between(0, 2);
    const bool regular = between(0, 1) == 0;
    for (int i = 1; i < count; ++i)
      all[static_cast<std::size_t>(i)] = regular ? all[0] + i * step : between(low, high);
    return all;
  }
  Both indexed(const Both& old) {
    const int count = between(0, 5);
    const auto lengths = numbers(count, 0, 3), places = numbers(count, -6, 8);
    Type model;
    for (std::size_t i = 0; i < lengths.size(); ++i)
      model.add(old.model, places[i] * old.model.extent(), lengths[i]);
    return {make_indexed(lengths, places, *old.real), model};
  }
  Both hindexed(const Both& old) {
    const int count = between(0, 5);
    const auto lengths = numbers(count, 0, 3), at = numbers(count, -50, 80);
    const std::vector<MPI_Aint> places(at.begin(), at.end());
    Type model;
    for (std::size_t i = 0; i < lengths.size(); ++i) model.add(old.model, places[i], lengths[i]);
    return {make_hindexed(lengths, places, *old.real), model};
  }
  Both blocks(const Both& old) {
    const int count = between(0, 12), length = between(0, 3);
    const auto at = numbers(count, -20, 20);
    const std::vector<MPI_Aint> places(at.begin(), at.end());
    const bool in_bytes = between(0, 1) == 0;
    Type model;
    for (const int d : at) model.add(old.model, in_bytes ? d : d * old.model.extent(), length);
    return {in_bytes ? make_hindexed_block(length, places, *old.real)
                     : make_indexed_block(length, at, *old.real),
            model};
  }
  Both resized(const Both& old) {
    const int lb = between(-20, 20), extent = between(-30, 60);
    Type model = old.model;
    std::erase_if(model.map, [](const Entry& e) { return e.size == 0; });
    model.map.push_back({lb, 0, 1, Entry::Marker::lb});
    model.map.push_back({lb + extent, 0, 1, Entry::Marker::ub});
    return {make_resized(*old.real, lb, extent), model};
  }
  Both structure(const Both& first, int depth) {
    std::vector<Both> parts{first};
    for (int more = between(0, 4); more > 0; --more) {
      const int kind = between(0, 6);
      if (kind == 0) parts.push_back({Ref(&datatype(MPI_LB)), {{{0, 0, 1, Entry::Marker::lb}}}});
      if (kind == 1) parts.push_back({Ref(&datatype(MPI_UB)), {{{0, 0, 1, Entry::Marker::ub}}}});
      if (kind > 1) parts.push_back(make(std::min(depth - 1, 1)));
    }
    std::shuffle(parts.begin(), parts.end(), random_);
    std::vector<int> lengths;
    std::vector<MPI_Aint> places;
    std::vector<Datatype*> types;
    Type model;
    for (const Both& part : parts) {
      lengths.push_back(between(0, 2));
      places.push_back(between(-60, 100));
      types.push_back(part.real.get());
      model.add(part.model, places.back(), lengths.back());
    }
    return {make_struct(lengths, places, types), model};
  }

  std::mt19937 random_;
};

}  // namespace viaduct::mpi::reference
