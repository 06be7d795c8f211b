// Buffered mode (MPI 5.0, section 3.6): the buffers that a program attaches to the process or to a
// communicator. Those of sessions are in sessions/sessions.cpp.
//
// Choices: a communicator that is freed is detached from its buffer first, which waits. The flush
// of a buffer that is not attached has nothing to wait for.
#include "libmpi_lite/api/messages/attached.hpp"

using namespace viaduct::mpi;

VIADUCT_MPI_COUNTED(Buffer_attach, (void* buffer, Count size),
                    call(function, [&] { attach_buffer(process_buffer(), buffer, size); }));
VIADUCT_MPI_COUNTED(Buffer_detach, (void* buffer_addr, Count* size),
                    call(function, [&] { detach_buffer(process_buffer(), buffer_addr, size); }));

int PMPI_Buffer_flush() {
  return call("MPI_Buffer_flush", [] { flush_buffer(process_buffer()); });
}
VIADUCT_MPI(Buffer_flush);

int PMPI_Buffer_iflush(MPI_Request* request) {
  return call("MPI_Buffer_iflush", [&] { start_flush(process_buffer(), request); });
}
VIADUCT_MPI(Buffer_iflush);

VIADUCT_MPI_COUNTED(Comm_attach_buffer, (MPI_Comm comm, void* buffer, Count size),
                    call(function, comm, [&](Comm& c) { attach_buffer(c.buffer, buffer, size); }));
VIADUCT_MPI_COUNTED(Comm_detach_buffer, (MPI_Comm comm, void* buffer_addr, Count* size),
                    call(function, comm,
                         [&](Comm& c) { detach_buffer(c.buffer, buffer_addr, size); }));

int PMPI_Comm_flush_buffer(MPI_Comm comm) {
  return call("MPI_Comm_flush_buffer", comm, [](Comm& c) { flush_buffer(c.buffer); });
}
VIADUCT_MPI(Comm_flush_buffer);

int PMPI_Comm_iflush_buffer(MPI_Comm comm, MPI_Request* request) {
  return call("MPI_Comm_iflush_buffer", comm, [&](Comm& c) { start_flush(c.buffer, request); });
}
VIADUCT_MPI(Comm_iflush_buffer);
