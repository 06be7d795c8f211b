// What the functions on attached buffers have in common, whoever has the buffer: the process, a
// communicator, a session (MPI 5.0, section 3.6).
#pragma once

#include "libmpi_lite/api/counted.hpp"
#include "libmpi_lite/api/give_count.hpp"
#include "libmpi_lite/transfer/buffered.hpp"

namespace viaduct::mpi {

using BufferPlace = std::unique_ptr<CommBuffer>;  // where a buffer is attached

inline void attach_buffer(BufferPlace& place, void* buffer, MPI_Count size) {
  if (size < 0)
    fail(MPI_ERR_ARG, "argument size is %lld; it must not be negative",
         static_cast<long long>(size));
  check_pointer(buffer, "buffer");
  if (place) fail(MPI_ERR_BUFFER, "there is a buffer attached already; detach it first");
  place = std::make_unique<SendBuffer>(buffer, static_cast<std::size_t>(size));
}

inline void flush_buffer(const BufferPlace& place) {
  if (place) static_cast<SendBuffer&>(*place).flush();
}

// Waits until all messages in the buffer have been sent.
template <class Count>
void detach_buffer(BufferPlace& place, void* buffer_addr, Count* size) {
  check_pointer(buffer_addr, "buffer_addr");
  check_pointer(size, "size");
  flush_buffer(place);
  const BufferPlace detached = std::move(place);
  const auto* const buffer = static_cast<SendBuffer*>(detached.get());
  *static_cast<void**>(buffer_addr) = buffer ? buffer->memory() : nullptr;
  give_count(size, "size", buffer ? static_cast<MPI_Count>(buffer->bytes()) : 0);
}

inline void start_flush(const BufferPlace& place, MPI_Request* request) {
  check_pointer(request, "request");
  *request = place ? new_handle<MPI_Request>(request_handles,
                                             static_cast<SendBuffer&>(*place).start_flush())
                   : reinterpret_cast<MPI_Request>(kCompleteSend);
}

}  // namespace viaduct::mpi
