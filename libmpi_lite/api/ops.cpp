// Reduction operations of the program's own, and reductions within one process (MPI 5.0, section
// 6.9). The predefined operations are in core/data/op.cpp. A freed operation lives on for
// collectives that use it, because they hold a reference.
#include "libmpi_lite/api/arguments/aliasing.hpp"
#include "libmpi_lite/api/counted.hpp"

using namespace viaduct::mpi;

namespace {

template <class Function>
int create(const char* name, Function* user_fn, int commute, MPI_Op* op) {
  return call(name, [&] {
    check_pointer(user_fn, "user_fn");
    check_pointer(op, "op");
    *op = new_handle<MPI_Op>(op_handles, make<Op>(user_fn, commute != 0));
  });
}

}  // namespace

// `user_fn` is called with as many items at a time as the algorithm has; the standard leaves that
// to the library.
int PMPI_Op_create(MPI_User_function* user_fn, int commute, MPI_Op* op) {
  return create("MPI_Op_create", user_fn, commute, op);
}
VIADUCT_MPI(Op_create);
int PMPI_Op_create_c(MPI_User_function_c* user_fn, int commute, MPI_Op* op) {
  return create("MPI_Op_create_c", user_fn, commute, op);
}
VIADUCT_MPI(Op_create_c);

int PMPI_Op_free(MPI_Op* op) {
  return call("MPI_Op_free", [&] {
    if (check_op(*check_pointer(op, "op")).predefined())
      fail(MPI_ERR_OP, "argument op (%p) is predefined and cannot be freed",
           static_cast<void*>(*op));
    op_handles.remove(reinterpret_cast<std::uintptr_t>(*op));
    *op = MPI_OP_NULL;
  });
}
VIADUCT_MPI(Op_free);

int PMPI_Op_commutative(MPI_Op op, int* commute) {
  return call("MPI_Op_commutative",
              [&] { *check_pointer(commute, "commute") = check_op(op).commutative(); });
}
VIADUCT_MPI(Op_commutative);

// inoutbuf = inbuf op inoutbuf, without communication. Shared memory is refused as in collectives.
VIADUCT_MPI_COUNTED(Reduce_local,
                    (const void* inbuf, void* inoutbuf, Count count, MPI_Datatype datatype,
                     MPI_Op op),
                    call(function, [&] {
                      const Items in = check_items(inbuf, count, datatype, "inbuf");
                      const Items out = check_items(inoutbuf, count, datatype, "inoutbuf");
                      if (span_of(in).overlaps(span_of(out)) && share_bytes({in}, {out}))
                        fail(MPI_ERR_BUFFER, "arguments inbuf and inoutbuf share memory");
                      check_op(op, *in.type).apply(inbuf, inoutbuf, count, datatype);
                    }));
