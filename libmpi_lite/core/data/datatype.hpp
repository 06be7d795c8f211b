// Datatypes (MPI 5.0, chapter 5): which bytes of a buffer make up a message, and in which order.
//
// A Datatype is immutable once DatatypeBuilder has finished it, except for commit(), name and
// attributes. It has two descriptions of where data lies: its type map (a Layout of typed
// elements), and a Layout of bytes without types, which is smaller and quicker and is what messages
// use.
//
// Handles, operations under way, and types made of this one hold it (Ref). Thread rule: one thread
// at a time. pack() and unpack() change nothing in the type.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libmpi_lite/core/attribute.hpp"
#include "libmpi_lite/core/data/layout.hpp"
#include "libmpi_lite/core/handle.hpp"
#include "libmpi_lite/core/status.hpp"

namespace viaduct::mpi {

class Datatype final : public Counted {
 public:
  // How the type was made: what MPI_Type_get_envelope and MPI_Type_get_contents tell.
  struct Shape {
    int combiner;  // MPI_COMBINER_...
    std::vector<int> integers;
    std::vector<MPI_Aint> addresses;
    std::vector<Ref<Datatype>> types;  // kept alive: handles of components may be freed
    // Counts and displacements of a type that was made with large counts.
    std::vector<MPI_Count> large_counts = {};
  };

  MPI_Count size() const { return size_; }  // bytes of data in one item
  MPI_Count lb() const { return lb_; }      // bytes, relative to the item's address; likewise below
  MPI_Count ub() const { return ub_; }
  MPI_Count extent() const { return ub_ - lb_; }
  MPI_Count true_lb() const { return true_lb_; }  // of the first byte of data
  MPI_Count true_ub() const { return true_ub_; }  // behind the last byte of data
  bool committed() const { return committed_; }
  void commit() { committed_ = true; }
  bool predefined() const { return elementary_ != Elementary::none; }
  Elementary elementary() const { return elementary_; }
  MPI_Datatype constant() const { return constant_; }  // of a predefined type: its handle
  const Shape& shape() const { return *shape_; }

  // Any number of items in a row is one block of memory. A message of `count` items is then the
  // count * size() bytes from true_lb() on, and needs no packing.
  bool contiguous() const { return contiguous_; }

  // Copies the bytes [offset, offset + out.size()) of the packed form of the items at `buffer` to
  // `out`. The caller makes sure that there are enough items for that. A contiguous type costs a
  // memcpy.
  void pack(const void* buffer, MPI_Count offset, std::span<std::byte> out) const;
  // The reverse: the bytes go into the items; whatever lies between them is not touched.
  void unpack(void* buffer, MPI_Count offset, std::span<const std::byte> in) const;

  // MPI_Get_elements (section 5.1.11): how many whole basic elements are in that many bytes of
  // packed form. MPI_UNDEFINED if the bytes end within an element, or if the number does not fit
  // MPI_Count.
  MPI_Count elements(WideBytes bytes) const;
  // The reverse: how many bytes of packed form that many basic elements take.
  WideBytes bytes_of(MPI_Count elements) const;

  // Appends the strips that the bytes [from, to) of the packed form of items in a row lie in, in
  // the order of the packed form; displacements are relative to the first item's address. Strips
  // that continue each other are joined.
  void add_strips(MPI_Count from, MPI_Count to, std::vector<Strip>& strips) const;
  // The predefined type that all basic components are of, as accumulate functions demand (section
  // 12.3.4); nullptr: there are several, or none.
  const Datatype* only_predefined() const;

  // The layout of one item as a sequence of basic elements (its type map).
  const Layout& type_map() const { return *type_map_; }

  std::string name;
  Attributes attributes;

 private:
  friend class DatatypeBuilder;
  Datatype() = default;

  MPI_Count size_ = 0, lb_ = 0, ub_ = 0, true_lb_ = 0, true_ub_ = 0;
  // The bound was set explicitly, by MPI_LB, MPI_UB or MPI_Type_create_resized, here or in a
  // component. Then data does not move the bound.
  bool lb_set_ = false, ub_set_ = false;
  bool committed_ = false, contiguous_ = true;
  Elementary elementary_ = Elementary::none;
  MPI_Count alignment_ = 1;                    // bytes: the strictest of its elements
  MPI_Datatype constant_ = MPI_DATATYPE_NULL;  // of a predefined type: its handle
  std::shared_ptr<const Shape> shape_;         // shared by types that are equal
  // Typed; and without types, which is what pack and unpack use. One object if both say the same.
  Ref<Layout> type_map_, bytes_;
};

inline HandleTable<Datatype, HandleKind::datatype> datatype_handles;

// The address `offset` bytes behind a buffer's. Computed as a number, not as a pointer: MPI_BOTTOM
// is a null pointer, and where a buffer or an item starts there need not be an object.
inline std::byte* byte_at(const void* buffer, MPI_Count offset) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(buffer) +
                                      static_cast<std::intptr_t>(offset));
}

// The object behind a handle that is known to be valid: not checked.
inline Datatype& datatype(MPI_Datatype handle) {
  return *datatype_handles.find(reinterpret_cast<std::uintptr_t>(handle));
}

// The predefined type of pairs of these predefined types, for MPI_MINLOC; MPI_DATATYPE_NULL: there
// is none.
MPI_Datatype pair_type(MPI_Datatype value, MPI_Datatype index);

// Enters all predefined datatypes into the table; at MPI_Init.
void define_datatypes();

}  // namespace viaduct::mpi
