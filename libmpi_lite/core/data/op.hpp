// Reduction operations (MPI 5.0, section 6.9), predefined and user-defined. Handles and collectives
// under way hold an operation (Ref).
#pragma once

#include <mpi.h>

#include "libmpi_lite/core/data/datatype.hpp"

namespace viaduct::mpi {

class Op final : public Counted {
 public:
  // A predefined operation, by its constant in the ABI. All of these are commutative.
  explicit Op(MPI_Op predefined);
  // A user function; `commutative` as in MPI_Op_create. The second one counts in 64 bits.
  Op(MPI_User_function* function, bool commutative);
  Op(MPI_User_function_c* function, bool commutative);

  bool commutative() const { return commutative_; }
  std::uintptr_t constant() const { return constant_; }  // of a predefined one: its handle; else 0
  bool predefined() const { return !function_ && !large_function_; }
  // Whether the operation may be used with that type (section 6.9.2). User functions: always.
  // MPI_REPLACE and MPI_NO_OP: never, as they are no reductions; rma/ carries them out itself.
  bool allows(const Datatype& type) const;
  // inout[i] = in[i] op inout[i] for `count` items. The buffers must not overlap. The operation
  // must allow the type. `type` is handed to user functions, and must be a valid handle.
  void apply(const void* in, void* inout, MPI_Count count, MPI_Datatype type) const;

 private:
  MPI_User_function* function_ = nullptr;  // a user function is one of these
  MPI_User_function_c* large_function_ = nullptr;
  std::uintptr_t constant_ = 0;  // of a predefined one
  bool commutative_ = true;
};

inline HandleTable<Op, HandleKind::op> op_handles;

// Enters all predefined operations into the table; at MPI_Init.
void define_ops();

}  // namespace viaduct::mpi
