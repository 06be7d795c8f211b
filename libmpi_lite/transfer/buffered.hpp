// Buffered mode (MPI 5.0, section 3.6): messages that wait in the buffer which the user attached.
#pragma once

#include "libmpi_lite/transfer/transfer.hpp"

namespace viaduct::mpi {

// A request that is complete at once. Throws Error (MPI_ERR_BUFFER) if there is no room.
Ref<Request> start_buffered(const Items& items, const Envelope& to);

}  // namespace viaduct::mpi
