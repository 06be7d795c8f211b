// Sessions (MPI 5.0, section 11.3): a use of the library that ends by itself. What a session has of
// its own is little: an error handler, and a buffer for sends from communicators that came from it.
//
// The handle table, and groups and communicators that came from a session, hold it (Ref).
#pragma once

#include <mpi.h>

#include <memory>

#include "libmpi_lite/core/errhandler.hpp"

namespace viaduct::mpi {

// A buffer that a program has attached (transfer/buffered.hpp); who has it only owns it.
struct CommBuffer {
  virtual ~CommBuffer() = default;
};

class Session final : public Counted {
 public:
  explicit Session(Ref<Errhandler> errhandler) : errhandler(std::move(errhandler)) {}

  Ref<Errhandler> errhandler;
  std::unique_ptr<CommBuffer> buffer;  // of MPI_Session_attach_buffer; nothing: none
};

inline HandleTable<Session, HandleKind::session> session_handles;

}  // namespace viaduct::mpi
