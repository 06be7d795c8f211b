// Datatypes (MPI 5.0, chapter 5): which bytes of a buffer make up a message, and in which order.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libmpi_lite/core/attribute.hpp"
#include "libmpi_lite/core/handle.hpp"
#include "libmpi_lite/core/layout.hpp"
#include "libmpi_lite/core/status.hpp"

namespace viaduct::mpi {

class Datatype final : public Counted {
 public:
  // How it was made, as MPI_Type_get_envelope and MPI_Type_get_contents tell it.
  struct Shape {
    int combiner;
    std::vector<int> integers;
    std::vector<MPI_Aint> addresses;
    std::vector<Ref<Datatype>> types;  // kept alive: handles of components may be freed
  };

  MPI_Count size() const { return size_; }  // bytes of data in one item
  MPI_Count lb() const { return lb_; }
  MPI_Count ub() const { return ub_; }
  MPI_Count extent() const { return ub_ - lb_; }
  MPI_Count true_lb() const { return true_lb_; }
  MPI_Count true_ub() const { return true_ub_; }
  bool committed() const { return committed_; }
  void commit() { committed_ = true; }
  bool predefined() const { return elementary_ != Elementary::none; }
  Elementary elementary() const { return elementary_; }
  MPI_Datatype constant() const { return constant_; }  // of a predefined type: its handle
  const Shape& shape() const { return *shape_; }

  // Any number of items in a row is one block of memory that starts at true_lb(): a message of
  // `count` items is the count * size() bytes there, and needs no packing.
  bool contiguous() const { return contiguous_; }

  // The bytes [offset, offset + out.size()) of the packed form of the items at `buffer`; there are
  // as many as that takes. Contiguous types cost a memcpy.
  void pack(const void* buffer, MPI_Count offset, std::span<std::byte> out) const;
  void unpack(void* buffer, MPI_Count offset, std::span<const std::byte> in) const;

  // Whole basic elements in that many bytes of packed form; MPI_UNDEFINED if they end within one
  // or are more than can be said (MPI_Get_elements, section 5.1.11).
  MPI_Count elements(WideBytes bytes) const;
  // The reverse: the bytes of packed form of that many basic elements.
  WideBytes bytes_of(MPI_Count elements) const;

  // The layout of one item as a sequence of basic elements (its type map).
  const Layout& type_map() const { return *type_map_; }

  std::string name;
  Attributes attributes;

 private:
  friend class DatatypeBuilder;
  Datatype() = default;

  MPI_Count size_ = 0, lb_ = 0, ub_ = 0, true_lb_ = 0, true_ub_ = 0;
  // The bounds were set: by MPI_LB, MPI_UB, or MPI_Type_create_resized, here or in a component.
  bool lb_set_ = false, ub_set_ = false;
  bool committed_ = false, contiguous_ = true;
  Elementary elementary_ = Elementary::none;
  MPI_Count alignment_ = 1;
  MPI_Datatype constant_ = MPI_DATATYPE_NULL;
  std::shared_ptr<const Shape> shape_;
  Ref<Layout> type_map_, bytes_;  // the latter without types: what pack and unpack copy
};

inline HandleTable<Datatype, HandleKind::datatype> datatype_handles;

// `offset` bytes behind a buffer's address. As numbers: MPI_BOTTOM is a null pointer, and nothing
// need be where a buffer or an item of it starts.
inline std::byte* byte_at(const void* buffer, MPI_Count offset) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(buffer) +
                                      static_cast<std::intptr_t>(offset));
}

// The object behind a handle of the ABI that is known to be valid.
inline Datatype& datatype(MPI_Datatype handle) {
  return *datatype_handles.find(reinterpret_cast<std::uintptr_t>(handle));
}

// Enters all predefined datatypes into the table; at MPI_Init.
void define_datatypes();

}  // namespace viaduct::mpi
