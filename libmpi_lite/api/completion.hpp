// What Wait, Test and their kin share: from a handle to a request and from a complete request to a
// status.
#pragma once

#include <optional>

#include "libmpi_lite/api/call.hpp"

namespace viaduct::mpi {

// Something went wrong with a request: its communicator's handler hears of it.
class RequestError final : public Error {
 public:
  RequestError(const Request& request, int code)
      : Error(code, error_text(request)), comm(request.communicator()) {}
  RequestError(const Request& request, const Error& error)
      : Error(error), comm(request.communicator()) {}
  const Ref<Comm> comm;
};

template <class Body>
int call_on_requests(const char* function, Body body) {
  std::optional<RequestError> failed;
  const int result = call(function, [&] {
    try {
      body();
    } catch (const RequestError& e) {
      if (!e.comm) throw;
      failed.emplace(e);
    }
  });
  if (!failed) [[likely]]
    return result;
  return raise_error(function, failed->comm.get(), failed->code(), failed->what());
}

// nullptr: MPI_REQUEST_NULL.
inline Request* check_request(MPI_Request handle, const char* argument = "request") {
  if (handle == MPI_REQUEST_NULL) return nullptr;
  Request* r = request_handles.find(reinterpret_cast<std::uintptr_t>(handle));
  if (!r) [[unlikely]]
    fail(MPI_ERR_REQUEST, "argument %s (%p) is not a request", argument,
         static_cast<void*>(handle));
  return r;
}

// Null and inactive requests are as good as complete ones, with an empty status.
inline bool idle(const Request* r) {
  return !r || !r->active;
}
inline bool ready(const Request* r) {
  return idle(r) || r->complete;
}

// All of it, MPI_ERROR as well (section 3.7.3).
inline void set_empty(MPI_Status* status) {
  if (status != MPI_STATUS_IGNORE) *status = empty_status();
}

// A generalized request (MPI 5.0, section 13.2).
class GeneralizedRequest final : public Request {
 public:
  GeneralizedRequest(MPI_Grequest_query_function* query, MPI_Grequest_free_function* free,
                     MPI_Grequest_cancel_function* cancel, void* extra_state)
      : Request(Kind::generalized),
        query(query),
        free(free),
        cancel(cancel),
        extra_state(extra_state) {}

  MPI_Grequest_query_function* const query;
  MPI_Grequest_free_function* const free;
  MPI_Grequest_cancel_function* const cancel;
  void* const extra_state;
  bool given_up = false;  // by MPI_Request_free before it was complete
};

}  // namespace viaduct::mpi
