// The objects that are there from the start: MPI_COMM_WORLD, MPI_COMM_SELF, MPI_GROUP_EMPTY, the
// error handlers. Datatypes and operations have their own define_*().
#pragma once

namespace viaduct::mpi {

// Enters them into their tables; at MPI_Init.
void define_predefined(int world_rank, int world_size);

}  // namespace viaduct::mpi
