// What MPI_Wait, MPI_Test and their kin share (MPI 5.0, section 3.7): the way from a handle to a
// request, from a complete request to a status, and from a failed request to the error handler of
// its communicator. Functions on requests take no communicator, so call() cannot know whose handler
// to call; call_on_requests() does. The functions themselves are in completion.cpp.
#pragma once

#include <optional>

#include "libmpi_lite/api/call.hpp"

namespace viaduct::mpi {

// An operation failed, and the error is to go to the handler of the communicator it was started on.
// Keeps that communicator alive: the request may have been freed by the time the handler runs.
class RequestError final : public Error {
 public:
  RequestError(const Request& request, int code)
      : Error(code, error_text(request)), comm(request.communicator()) {}
  RequestError(const Request& request, const Error& error)
      : Error(error), comm(request.communicator()) {}
  const Ref<Comm> comm;
};

// call() for functions that take requests. A RequestError is raised at the communicator of the
// request; any other Error, or a request without a communicator (a generalized one), is an error
// without a communicator. The handler runs after `body` has been unwound, because the handler may
// throw.
template <class Body>
int call_on_requests(const char* function, Body body) {
  Entry entry;
  std::optional<RequestError> failed;
  const int result = call_entered(function, [&] {
    entry.check(function);
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

// The request behind a handle; nullptr for MPI_REQUEST_NULL. The handle table owns the request.
inline Request* check_request(MPI_Request handle, const char* argument = "request") {
  if (handle == MPI_REQUEST_NULL) return nullptr;
  Request* r = request_handles.find(reinterpret_cast<std::uintptr_t>(handle));
  if (!r) [[unlikely]]
    fail(MPI_ERR_REQUEST, "argument %s (%p) is not a request", argument,
         static_cast<void*>(handle));
  return r;
}

// MPI_REQUEST_NULL and inactive persistent requests: waiting for one returns at once with an empty
// status (section 3.7.3).
inline bool idle(const Request* r) {
  return !r || !r->active;
}
// Whether a wait would return at once.
inline bool ready(const Request* r) {
  return idle(r) || r->complete;
}

// Sets all fields, MPI_ERROR too, as section 3.7.3 defines the empty status.
inline void set_empty(MPI_Status* status) {
  if (status != MPI_STATUS_IGNORE) *status = empty_status();
}

// A generalized request (MPI 5.0, section 13.2): an operation of the program's own, which waits and
// tests treat like any other. The program completes the request with MPI_Grequest_complete.
//
//              MPI_Grequest_start
//                      |
//                      v      MPI_Request_free
//                   pending ------------------> freed early (freed_early; the program's
//                      |                           |      handle is null, the table keeps the
//                      |                           |      request)
//   MPI_Grequest_complete                          | MPI_Grequest_complete
//                      v                           v
//                  complete                 free function; gone
//                      |
//      MPI_Wait, MPI_Test and kin: query function, then free function; gone
//      MPI_Request_free: free function; gone
//
// Functions that only look (MPI_Request_get_status and kin) call the query function and change
// nothing. Any of the three functions may be a null pointer, which counts as success.
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
  bool freed_early = false;  // MPI_Request_free came before completion
};

}  // namespace viaduct::mpi
