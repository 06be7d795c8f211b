// The objects that exist from the start: MPI_COMM_WORLD, MPI_COMM_SELF, MPI_GROUP_EMPTY, and the
// predefined error handlers. Datatypes and operations have define_datatypes() and define_ops().
#pragma once

namespace viaduct::mpi {

// Enters them into their handle tables. Called once, at MPI_Init.
void define_errhandlers();
void define_predefined(int world_rank, int world_size);

}  // namespace viaduct::mpi
