// How datatypes are made: data, bounds, extent and alignment of the whole from those of the parts,
// with every sum checked for overflow. array_types.cpp has subarray and darray; named_types.cpp the
// predefined types.
#include "libmpi_lite/core/data/datatype_builder.hpp"

#include <utility>

#include "libmpi_lite/core/error.hpp"

namespace viaduct::mpi {

namespace {

// The largest size, and the largest displacement of data. The sum or difference of two such numbers
// fits 64 bits, so that the code that moves data need not check.
constexpr MPI_Count kMaxPosition = (MPI_Count{1} << 62) - 1;

// Sums and products of 64-bit numbers are computed in 128 bits and then narrowed with a check.
__extension__ using Wide = __int128;

// Throws Error if |value| > limit. `what` completes "the datatype would have ...".
MPI_Count narrow(Wide value, Wide limit, const char* what) {
  if (value > limit || value < -limit)
    throw Error(MPI_ERR_VALUE_TOO_LARGE,
                std::string("the datatype would have ") + what + " beyond what can be handled");
  return static_cast<MPI_Count>(value);
}
MPI_Count size_of(Wide value) {
  return narrow(value, kMaxPosition, "a size");
}
MPI_Count position(Wide value) {
  return narrow(value, kMaxPosition, "data at a displacement");
}
// Bounds may be anywhere in 64 bits: they move no data.
MPI_Count bound(Wide value) {
  return narrow(value, INT64_MAX, "a bound or an extent");
}

// The lowest and the highest displacement of `count` copies. A stride may be negative.
struct Reach {
  Wide down, up;
  Reach(MPI_Count displacement, MPI_Count count, MPI_Count stride) {
    const Wide last = Wide{count - 1} * stride;
    down = displacement + std::min<Wide>(last, 0);
    up = displacement + std::max<Wide>(last, 0);
  }
};

MPI_Count length(std::size_t size) {
  return static_cast<MPI_Count>(size);
}
CountKind kind_of(CountList list) {
  return list.large() ? CountKind::large : CountKind::ints;
}

// A block of `count` items in a row. A part that no program sees.
Ref<Datatype> block(MPI_Count count, Datatype& old) {
  if (count == 1) return Ref<Datatype>(&old);
  DatatypeBuilder builder;
  builder.add(old, 0, count);
  return builder.finish({MPI_COMBINER_CONTIGUOUS, {}, {}, {}});
}

// Blocks at displacements in multiples of `unit` bytes: all of one length, or each of its own.
template <class Displacements>
void add_blocks(DatatypeBuilder& builder, MPI_Count block_length,
                const Displacements& displacements, MPI_Count unit, Datatype& old) {
  for (std::size_t b = 0; b < displacements.size(); ++b)
    builder.add(old, bound(Wide{displacements[b]} * unit), block_length);
}
template <class Displacements>
void add_blocks(DatatypeBuilder& builder, CountList block_lengths,
                const Displacements& displacements, MPI_Count unit, Datatype& old) {
  for (std::size_t b = 0; b < block_lengths.size(); ++b)
    builder.add(old, bound(Wide{displacements[b]} * unit), block_lengths[b]);
}

}  // namespace

// ---- the builder -------------------------------------------------------------------------------

DatatypeBuilder::DatatypeBuilder() : type_(new Datatype) {
  type_->type_map_ = make<Layout>(true);
}

void DatatypeBuilder::add(const Datatype& type, MPI_Count displacement, MPI_Count count,
                          MPI_Count stride) {
  if (count == 0) return;
  if (count == 1) stride = 0;
  Datatype& t = *type_;
  // Each position, bound and size is checked when it is computed. After an Error the builder is
  // half changed and must not be used.
  const Reach reach(displacement, count, stride);
  if (type.size_ > 0) {
    const MPI_Count low = position(reach.down + type.true_lb_);
    const MPI_Count high = position(reach.up + type.true_ub_);
    t.true_lb_ = t.size_ > 0 ? std::min(t.true_lb_, low) : low;
    t.true_ub_ = t.size_ > 0 ? std::max(t.true_ub_, high) : high;
    add_bytes(type, displacement, count, stride);
  }
  // A bound that was set counts for each copy, and outweighs the bounds that follow from data.
  if (type.lb_set_) {
    const MPI_Count lb = bound(reach.down + type.lb_);
    t.lb_ = t.lb_set_ ? std::min(t.lb_, lb) : lb;
    t.lb_set_ = true;
  }
  if (type.ub_set_) {
    const MPI_Count ub = bound(reach.up + type.ub_);
    t.ub_ = t.ub_set_ ? std::max(t.ub_, ub) : ub;
    t.ub_set_ = true;
  }
  t.alignment_ = std::max(t.alignment_, type.alignment_);
}

// As long as all basic elements are of one type, the type map is as good for copying as a layout of
// bytes, and serves as both. With the first element of another type the layout of bytes is split
// off.
void DatatypeBuilder::add_bytes(const Datatype& type, MPI_Count displacement, MPI_Count count,
                                MPI_Count stride) {
  Datatype& t = *type_;
  const MPI_Count size = size_of(t.size_ + Wide{count} * type.size_);
  const Basic* before = t.type_map_->only_basic();
  const Basic* added = type.type_map_->only_basic();
  const bool same = added && (t.size_ == 0 || (before && *before == *added));
  if (!same && !t.bytes_) t.bytes_ = Layout::untyped_copy(*t.type_map_);
  t.type_map_->append(type.type_map_, displacement, count, stride);
  if (t.bytes_) t.bytes_->append(type.bytes_, displacement, count, stride);
  t.size_ = size;
}

void DatatypeBuilder::set_bounds(MPI_Count lb, MPI_Count ub) {
  type_->lb_ = lb;
  type_->ub_ = ub;
  type_->lb_set_ = type_->ub_set_ = true;
}

// Bounds that were not set follow from the data. If the upper bound was not set, the extent is
// padded to a multiple of the strictest alignment (the "epsilon" of section 5.1).
void DatatypeBuilder::compute_bounds() {
  Datatype& t = *type_;
  if (!t.lb_set_) t.lb_ = t.true_lb_;
  if (!t.ub_set_ && t.size_ == 0) {
    t.ub_ = t.lb_;
  } else if (!t.ub_set_) {
    // C++ rounds division towards zero, so the remainder of a negative extent is negative.
    const Wide over = (Wide{t.true_ub_} - t.lb_) % t.alignment_;
    t.ub_ = bound(Wide{t.true_ub_} + (over > 0 ? t.alignment_ - over : -over));
  }
  // Only the check: the extent must fit 64 bits, too.
  bound(Wide{t.ub_} - t.lb_);
}

Ref<Datatype> DatatypeBuilder::finish(Datatype::Shape shape) {
  Datatype& t = *type_;
  compute_bounds();
  t.type_map_->shrink();
  if (t.bytes_) t.bytes_->shrink();
  if (!t.bytes_) t.bytes_ = t.type_map_;
  t.contiguous_ = t.size_ == 0 || (t.bytes_->one_block() && t.extent() == t.size_);
  t.shape_ = std::make_shared<const Datatype::Shape>(std::move(shape));
  return std::move(type_);
}

void DatatypeBuilder::name(Datatype& type, Elementary kind, MPI_Datatype constant,
                           const char* name) {
  type.elementary_ = kind;
  type.constant_ = constant;
  type.committed_ = true;
  type.name = name;
}

Ref<Datatype> DatatypeBuilder::basic(const Basic& basic, MPI_Datatype constant, const char* name) {
  DatatypeBuilder builder;
  Datatype& t = *builder.type_;
  t.type_map_->append(basic);
  t.size_ = t.true_ub_ = basic.size;
  t.alignment_ = basic.alignment;
  DatatypeBuilder::name(t, basic.kind, constant, name);
  return builder.finish({MPI_COMBINER_NAMED, {}, {}, {}});
}

// No bytes: only a bound at 0, which counts as set.
Ref<Datatype> DatatypeBuilder::marker(MPI_Datatype constant, const char* name) {
  DatatypeBuilder builder;
  (constant == MPI_LB ? builder.type_->lb_set_ : builder.type_->ub_set_) = true;
  DatatypeBuilder::name(*builder.type_, Elementary::marker, constant, name);
  return builder.finish({MPI_COMBINER_NAMED, {}, {}, {}});
}

Ref<Datatype> DatatypeBuilder::finish_pair(MPI_Datatype constant, const char* name) {
  DatatypeBuilder::name(*type_, Elementary::pair, constant, name);
  return finish({MPI_COMBINER_NAMED, {}, {}, {}});
}

Ref<Datatype> DatatypeBuilder::equal(const Datatype& old,
                                     const std::shared_ptr<const Datatype::Shape>& shape) {
  Ref<Datatype> type(new Datatype);
  Datatype& t = *type;
  t.size_ = old.size_;
  t.lb_ = old.lb_;
  t.ub_ = old.ub_;
  t.true_lb_ = old.true_lb_;
  t.true_ub_ = old.true_ub_;
  t.lb_set_ = old.lb_set_;
  t.ub_set_ = old.ub_set_;
  t.committed_ = old.committed_;
  t.contiguous_ = old.contiguous_;
  t.alignment_ = old.alignment_;
  t.shape_ = shape ? shape : old.shape_;
  t.type_map_ = old.type_map_;
  t.bytes_ = old.bytes_;
  return type;
}

void DatatypeBuilder::predefine(Datatype& type, const Datatype& like, MPI_Datatype handle) {
  name(type, like.elementary_, handle, "");
}

// ---- how a type was made -----------------------------------------------------------------------

Shaper::Shaper(int combiner, CountKind kind, std::initializer_list<int> integers)
    : shape_{combiner, integers, {}, {}}, large_(kind == CountKind::large) {}

Shaper& Shaper::count(MPI_Count value) {
  if (large_)
    shape_.large_counts.push_back(value);
  else
    shape_.integers.push_back(static_cast<int>(value));
  return *this;
}
Shaper& Shaper::integer(int value) {
  shape_.integers.push_back(value);
  return *this;
}
Shaper& Shaper::counts(CountList list) {
  for (std::size_t i = 0; i < list.size(); ++i) count(list[i]);
  return *this;
}
Shaper& Shaper::integers(Ints list) {
  shape_.integers.insert(shape_.integers.end(), list.begin(), list.end());
  return *this;
}
Shaper& Shaper::address(MPI_Aint value) {
  (large_ ? shape_.large_counts : shape_.addresses).push_back(value);
  return *this;
}
Shaper& Shaper::addresses(Addresses list) {
  for (const MPI_Aint value : list) address(value);
  return *this;
}
Datatype::Shape Shaper::of(std::vector<Ref<Datatype>> types) {
  shape_.types = std::move(types);
  return std::move(shape_);
}

// ---- the constructors --------------------------------------------------------------------------

Ref<Datatype> make_contiguous(MPI_Count count, Datatype& old, CountKind kind) {
  DatatypeBuilder builder;
  builder.add(old, 0, count);
  return builder.finish(Shaper(MPI_COMBINER_CONTIGUOUS, kind).count(count).of(old));
}

Ref<Datatype> make_vector(MPI_Count count, MPI_Count block_length, MPI_Count stride, Datatype& old,
                          CountKind kind) {
  DatatypeBuilder builder;
  // The stride of MPI_Type_vector is in extents of the old type.
  const MPI_Count bytes = bound(Wide{stride} * old.extent());
  builder.add(*block(block_length, old), 0, count, bytes);
  return builder.finish(
      Shaper(MPI_COMBINER_VECTOR, kind).count(count).count(block_length).count(stride).of(old));
}

Ref<Datatype> make_hvector(MPI_Count count, MPI_Count block_length, MPI_Aint stride, Datatype& old,
                           CountKind kind) {
  DatatypeBuilder builder;
  builder.add(*block(block_length, old), 0, count, stride);
  return builder.finish(
      Shaper(MPI_COMBINER_HVECTOR, kind).count(count).count(block_length).address(stride).of(old));
}

Ref<Datatype> make_indexed(CountList block_lengths, CountList displacements, Datatype& old) {
  DatatypeBuilder builder;
  add_blocks(builder, block_lengths, displacements, old.extent(), old);
  return builder.finish(Shaper(MPI_COMBINER_INDEXED, kind_of(block_lengths))
                            .count(length(block_lengths.size()))
                            .counts(block_lengths)
                            .counts(displacements)
                            .of(old));
}

Ref<Datatype> make_hindexed(CountList block_lengths, Addresses displacements, Datatype& old) {
  DatatypeBuilder builder;
  add_blocks(builder, block_lengths, displacements, 1, old);
  return builder.finish(Shaper(MPI_COMBINER_HINDEXED, kind_of(block_lengths))
                            .count(length(block_lengths.size()))
                            .counts(block_lengths)
                            .addresses(displacements)
                            .of(old));
}

Ref<Datatype> make_indexed_block(MPI_Count block_length, CountList displacements, Datatype& old) {
  DatatypeBuilder builder;
  add_blocks(builder, block_length, displacements, old.extent(), old);
  return builder.finish(Shaper(MPI_COMBINER_INDEXED_BLOCK, kind_of(displacements))
                            .count(length(displacements.size()))
                            .count(block_length)
                            .counts(displacements)
                            .of(old));
}

Ref<Datatype> make_hindexed_block(MPI_Count block_length, Addresses displacements, Datatype& old,
                                  CountKind kind) {
  DatatypeBuilder builder;
  add_blocks(builder, block_length, displacements, 1, old);
  return builder.finish(Shaper(MPI_COMBINER_HINDEXED_BLOCK, kind)
                            .count(length(displacements.size()))
                            .count(block_length)
                            .addresses(displacements)
                            .of(old));
}

Ref<Datatype> make_struct(CountList block_lengths, Addresses displacements,
                          std::span<Datatype* const> types) {
  DatatypeBuilder builder;
  std::vector<Ref<Datatype>> components;
  for (std::size_t b = 0; b < types.size(); ++b) {
    builder.add(*types[b], displacements[b], block_lengths[b]);
    components.emplace_back(types[b]);
  }
  return builder.finish(Shaper(MPI_COMBINER_STRUCT, kind_of(block_lengths))
                            .count(length(block_lengths.size()))
                            .counts(block_lengths)
                            .addresses(displacements)
                            .of(std::move(components)));
}

Ref<Datatype> make_resized(Datatype& old, MPI_Aint lb, MPI_Aint extent, CountKind kind) {
  DatatypeBuilder builder;
  builder.add(old, 0);
  builder.set_bounds(lb, bound(Wide{lb} + extent));
  return builder.finish(Shaper(MPI_COMBINER_RESIZED, kind).address(lb).address(extent).of(old));
}

Ref<Datatype> make_dup(Datatype& old) {
  return DatatypeBuilder::equal(old, std::make_shared<const Datatype::Shape>(
                                         Datatype::Shape{MPI_COMBINER_DUP, {}, {}, {Ref(&old)}}));
}

Ref<Datatype> make_equal(const Datatype& old) {
  return DatatypeBuilder::equal(old);
}

}  // namespace viaduct::mpi
