// Reduction operations (MPI 5.0, section 6.9).
#pragma once

#include <mpi.h>

#include "libmpi_lite/core/datatype.hpp"

namespace viaduct::mpi {

class Op final : public Counted {
 public:
  // A predefined one, by its constant in the ABI.
  explicit Op(MPI_Op predefined);
  Op(MPI_User_function* function, bool commutative);

  bool commutative() const { return commutative_; }
  bool predefined() const { return function_ == nullptr; }
  // Whether section 6.9.2 allows the operation on that type. Always for user functions.
  bool allows(const Datatype& type) const;
  // inout[i] = in[i] op inout[i] for each of `count` items. `type` is handed to user functions.
  void apply(const void* in, void* inout, MPI_Count count, MPI_Datatype type) const;

 private:
  MPI_User_function* function_ = nullptr;
  std::uintptr_t constant_ = 0;
  bool commutative_ = true;
};

inline HandleTable<Op, HandleKind::op> op_handles;

// Enters all predefined operations into the table; at MPI_Init.
void define_ops();

}  // namespace viaduct::mpi
