// Buffered mode (MPI 5.0, section 3.6): a send copies its data into the buffer that the program has
// attached and is complete at once. attach_buffer() and detach_buffer() are in transfer.hpp.
#pragma once

#include "libmpi_lite/transfer/transfer.hpp"

namespace viaduct::mpi {

// Sends a copy of the items; the result is complete. Throws Error: MPI_ERR_BUFFER if the attached
// buffer has no room, or what went wrong when the copy was sent.
Ref<Request> start_buffered(const Items& items, const Envelope& to);

}  // namespace viaduct::mpi
