// Waiting, testing, freeing, cancelling (MPI 5.0, sections 3.7 and 3.8.4), and generalized requests
// (section 13.2). The first half of the file turns complete requests into statuses and errors; the
// functions follow, those that complete requests before those that only look. completion.hpp has
// the shared types.
//
// Choices where the standard leaves one: MPI_Waitall waits for the requests in the order of the
// array (all make progress meanwhile). MPI_Waitany and MPI_Testany take the first complete request
// of the array. Every test makes progress at most once.

#include "libmpi_lite/api/completion.hpp"

namespace viaduct::mpi {

namespace {

// Takes the handle out of the table and sets it to MPI_REQUEST_NULL. Returns the reference that the
// table held: the request is freed when the caller drops it.
Ref<Request> release(MPI_Request* handle) {
  Ref<Request> request = request_handles.remove(reinterpret_cast<std::uintptr_t>(*handle));
  *handle = MPI_REQUEST_NULL;
  return request;
}

// Calls the free function of a generalized request; returns its code. MPI_SUCCESS for other kinds.
int free_state(const Request& request) {
  if (request.kind != Request::Kind::generalized) [[likely]]
    return MPI_SUCCESS;
  const auto& g = static_cast<const GeneralizedRequest&>(request);
  return g.free ? g.free(g.extra_state) : MPI_SUCCESS;
}

// Frees a request without asking for its result (MPI_Request_free, or completion after it). An
// operation that is under way goes on: transfer/ holds a reference of its own.
void free_unwanted(MPI_Request* handle, Request& request) {
  const Ref<Request> last = release(handle);
  const int error = free_state(request);
  if (error != MPI_SUCCESS) throw Error(error, "the free function of the request failed");
}

// Asks the query function of a generalized request for the status. Returns the function's code. The
// query function fills a copy: the caller's status may be MPI_STATUS_IGNORE.
int query_state(const GeneralizedRequest& request, MPI_Status* status) {
  MPI_Status mine = request.status;
  const int error = request.query ? request.query(request.extra_state, &mine) : MPI_SUCCESS;
  if (status != MPI_STATUS_IGNORE) copy_status(mine, *status);
  return error;
}

// Copies the status of a complete request, which stays as it is. Returns the error of the
// operation.
int read_result(const Request& request, MPI_Status* status) {
  if (request.kind == Request::Kind::generalized) [[unlikely]]
    return query_state(static_cast<const GeneralizedRequest&>(request), status);
  if (status != MPI_STATUS_IGNORE) copy_status(request.status, *status);
  return request.error;
}

// The result of a complete request that was taken: the error of the operation, and, if there was
// one, the request, so that the caller can raise the error at its communicator.
struct Completed {
  int error;
  Ref<Request> failed;
};
// Copies the status and takes the request out of use: a persistent request becomes inactive, any
// other is released and its handle becomes MPI_REQUEST_NULL.
Completed take_result(MPI_Request* handle, Request& request, MPI_Status* status) {
  int error = read_result(request, status);
  if (request.persistent) {
    request.active = false;
    return {error, error == MPI_SUCCESS ? nullptr : Ref(&request)};
  }
  Ref<Request> last = release(handle);
  const int freed = free_state(request);
  if (freed != MPI_SUCCESS) error = freed;  // the last callback's (section 13.2)
  return {error, error == MPI_SUCCESS ? nullptr : std::move(last)};
}

// Completes one request for functions that complete at most one (MPI_Wait, MPI_Waitany). The error
// of the operation is the error of the call.
void complete_one(MPI_Request* handle, Request* r, MPI_Status* status) {
  if (idle(r)) return set_empty(status);
  const auto [error, failed] = take_result(handle, *r, status);
  if (error != MPI_SUCCESS) [[unlikely]]
    throw RequestError(*failed, error);
}

// As complete_one(), but the request stays as it is (MPI_Request_get_status).
void read_one(Request* r, MPI_Status* status) {
  if (idle(r)) return set_empty(status);
  if (const int error = read_result(*r, status); error != MPI_SUCCESS) [[unlikely]]
    throw RequestError(*r, error);
}

// Statuses and errors of functions that complete several requests (MPI_Waitall and kin). If an
// operation failed, the call fails with MPI_ERR_IN_STATUS at that operation's communicator, and
// MPI_ERROR of every status is set. If none failed, MPI_ERROR of the statuses stays as it was
// (section 3.2.5), so the first failure has to fill in MPI_SUCCESS for the statuses before it.
class MultiCompletion {
 public:
  explicit MultiCompletion(MPI_Status* statuses) : statuses_(statuses) {}

  // `at` is the index of the status. To be called with ascending `at`, because note() assumes that
  // all statuses below it are done.
  void complete(MPI_Request* handle, int at) { complete(handle, check_request(*handle), at); }
  void complete(MPI_Request* handle, Request* r, int at) {
    idle(r) ? set_empty(status_at(at)) : note(take_result(handle, *r, status_at(at)), at);
  }
  void read(Request* r, int at) {  // which stays as it is
    if (idle(r)) return set_empty(status_at(at));
    const int error = read_result(*r, status_at(at));
    note({error, error == MPI_SUCCESS ? nullptr : Ref(r)}, at);
  }
  // Throws if an operation failed; to be called once all have been completed.
  void done() const {
    if (failed_) throw RequestError(*failed_, MPI_ERR_IN_STATUS);
  }

 private:
  MPI_Status* status_at(int at) const {
    return statuses_ == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses_[at];
  }
  void note(Completed result, int at) {
    if (result.error != MPI_SUCCESS && !failed_) [[unlikely]] {
      failed_ = std::move(result.failed);
      for (int earlier = 0; earlier < at; ++earlier) set_error(earlier, MPI_SUCCESS);
    }
    if (failed_) [[unlikely]]
      set_error(at, result.error);
  }
  void set_error(int at, int error) const {
    if (statuses_ != MPI_STATUSES_IGNORE) statuses_[at].MPI_ERROR = error;
  }

  MPI_Status* statuses_;
  Ref<Request> failed_;
};

// Collectives and partitioned communication can be neither cancelled nor freed early (sections 4.2
// and 6.12), and MPI_Isendrecv not be cancelled (section 3.11).
bool whole(const Request& request) {
  return request.kind == Request::Kind::collective ||
         (request.kind == Request::Kind::composite && request.persistent);
}
void refuse_to_free(const Request& request) {
  if (whole(request) && request.active && !request.complete)
    fail(MPI_ERR_REQUEST,
         "argument request is a collective or partitioned operation, which cannot be freed before "
         "it is complete");
}
void refuse_to_cancel(const Request& request) {
  if (whole(request) || request.kind == Request::Kind::composite)
    fail(MPI_ERR_REQUEST,
         "argument request is a collective or partitioned operation, or of MPI_Isendrecv, which "
         "cannot be cancelled");
}

// Checks all handles before anything completes: an invalid handle leaves the other requests
// untouched.
void check_requests(int count, const MPI_Request* handles) {
  check_count(count);
  if (count > 0) check_pointer(handles, "array_of_requests");
  for (int i = 0; i < count; ++i) check_request(handles[i], "array_of_requests");
}
void check_indices(int count, const int* indices) {
  if (count > 0) check_pointer(indices, "array_of_indices");
}
bool all_ready(int count, const MPI_Request* handles) {
  for (int i = 0; i < count; ++i)
    if (!ready(check_request(handles[i]))) return false;
  return true;
}

// One wait for all requests. Where threads share the library, the end of each wait may take a
// system call of the thread that polls.
void wait_for_all(int count, const MPI_Request* handles) {
  int first_open = 0;
  wait_until(
      [&] {
        while (first_open < count && ready(check_request(handles[first_open]))) ++first_open;
        return first_open == count;
      },
      [&] { return WaitedFor{.request = check_request(handles[first_open])}; });
}

// Progress for calls that ask and do not wait. A program that tests in a loop and gets nothing is
// as good as one that waits, so it answers the dump signal.
void poll() {
  if (!progress()) DumpSignal::answer_if_asked(nullptr);
}

constexpr int kNone = -1;     // none is complete
constexpr int kAllIdle = -2;  // there is nothing to wait for
// The index of the first complete request, kNone or kAllIdle.
int find_complete(int count, const MPI_Request* handles) {
  int result = kAllIdle;
  for (int i = 0; i < count; ++i) {
    const Request* r = check_request(handles[i]);
    if (idle(r)) continue;
    if (r->complete) return i;
    result = kNone;
  }
  return result;
}
// Writes the indices of all complete requests to `indices`; returns how many there are (0: none is
// complete), or kAllIdle.
int find_all_complete(int count, const MPI_Request* handles, int* indices) {
  int found = 0;
  bool any = false;
  for (int i = 0; i < count; ++i) {
    const Request* r = check_request(handles[i]);
    if (idle(r)) continue;
    any = true;
    if (r->complete) indices[found++] = i;
  }
  return any ? found : kAllIdle;
}

// `found` is a result of find_complete() other than kNone.
void complete_any(MPI_Request* handles, int found, int* index, MPI_Status* status) {
  if (found == kAllIdle) {
    *index = MPI_UNDEFINED;
    return set_empty(status);
  }
  *index = found;
  complete_one(&handles[found], check_request(handles[found]), status);
}
// `found` is a result of find_all_complete(), which has written `indices`.
void complete_some(MPI_Request* handles, int found, int* outcount, int* indices,
                   MPI_Status* statuses) {
  *outcount = found == kAllIdle ? MPI_UNDEFINED : found;
  MultiCompletion completions(statuses);
  for (int i = 0; i < found; ++i) completions.complete(&handles[indices[i]], i);
  completions.done();
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

// ---- one request -------------------------------------------------------------------------------

int PMPI_Wait(MPI_Request* request, MPI_Status* status) {
  return call_on_requests("MPI_Wait", [&] {
    Request* r = check_request(*check_pointer(request, "request"));
    if (!ready(r)) wait(*r);
    complete_one(request, r, status);
  });
}
VIADUCT_MPI(Wait);

int PMPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return call_on_requests("MPI_Test", [&] {
    Request* r = check_request(*check_pointer(request, "request"));
    if (!ready(r)) poll();
    *check_pointer(flag, "flag") = ready(r);
    if (*flag) complete_one(request, r, status);
  });
}
VIADUCT_MPI(Test);

// A request that is under way goes on and is freed when it completes.
int PMPI_Request_free(MPI_Request* request) {
  return call("MPI_Request_free", [&] {
    Request* r = check_request(*check_pointer(request, "request"));
    if (!r) fail(MPI_ERR_REQUEST, "argument request is MPI_REQUEST_NULL");
    refuse_to_free(*r);
    if (r->kind == Request::Kind::generalized && !r->complete) {
      // The table keeps the request: the program names it once more in MPI_Grequest_complete.
      static_cast<GeneralizedRequest*>(r)->freed_early = true;
      *request = MPI_REQUEST_NULL;
      return;
    }
    // Its handle goes, so it cannot be started again.
    r->persistent = false;
    free_unwanted(request, *r);
  });
}
VIADUCT_MPI(Request_free);

int PMPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  return call_on_requests("MPI_Request_get_status", [&] {
    Request* r = check_request(request);
    if (!ready(r)) poll();
    *check_pointer(flag, "flag") = ready(r);
    if (*flag) read_one(r, status);
  });
}
VIADUCT_MPI(Request_get_status);

// Asks for a cancellation. The request completes either way, and its status says whether it was
// cancelled.
int PMPI_Cancel(MPI_Request* request) {
  return call("MPI_Cancel", [&] {
    Request* r = check_request(*check_pointer(request, "request"));
    if (!r || !r->active)
      fail(MPI_ERR_REQUEST, "argument request is %s", r ? "inactive" : "MPI_REQUEST_NULL");
    refuse_to_cancel(*r);
    if (r->kind != Request::Kind::generalized) return cancel(*r);
    auto& g = static_cast<GeneralizedRequest&>(*r);
    const int error = g.cancel ? g.cancel(g.extra_state, g.complete) : MPI_SUCCESS;
    if (error != MPI_SUCCESS) throw Error(error, "the cancel function of the request failed");
  });
}
VIADUCT_MPI(Cancel);

// ---- several requests --------------------------------------------------------------------------

// A request that failed does not keep the others from being completed.
int PMPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status* array_of_statuses) {
  return call_on_requests("MPI_Waitall", [&] {
    check_requests(count, array_of_requests);
    if (LibraryLock::shared()) wait_for_all(count, array_of_requests);
    MultiCompletion completions(array_of_statuses);
    for (int i = 0; i < count; ++i) {
      Request* r = check_request(array_of_requests[i]);
      if (!ready(r)) wait(*r);
      completions.complete(&array_of_requests[i], r, i);
    }
    completions.done();
  });
}
VIADUCT_MPI(Waitall);

// All or nothing: requests are completed only if all of them are ready (section 3.7.5).
int PMPI_Testall(int count, MPI_Request array_of_requests[], int* flag,
                 MPI_Status* array_of_statuses) {
  return call_on_requests("MPI_Testall", [&] {
    check_requests(count, array_of_requests);
    check_pointer(flag, "flag");
    if (!all_ready(count, array_of_requests)) poll();
    *flag = all_ready(count, array_of_requests);
    if (!*flag) return;
    MultiCompletion completions(array_of_statuses);
    for (int i = 0; i < count; ++i) completions.complete(&array_of_requests[i], i);
    completions.done();
  });
}
VIADUCT_MPI(Testall);

int PMPI_Waitany(int count, MPI_Request array_of_requests[], int* index, MPI_Status* status) {
  return call_on_requests("MPI_Waitany", [&] {
    check_requests(count, array_of_requests);
    check_pointer(index, "index");
    int found = kNone;
    wait_until([&] { return (found = find_complete(count, array_of_requests)) != kNone; },
               kAnyOfSeveral);
    complete_any(array_of_requests, found, index, status);
  });
}
VIADUCT_MPI(Waitany);

// With no active request, `flag` is true and `index` is MPI_UNDEFINED.
int PMPI_Testany(int count, MPI_Request array_of_requests[], int* index, int* flag,
                 MPI_Status* status) {
  return call_on_requests("MPI_Testany", [&] {
    check_requests(count, array_of_requests);
    check_pointer(index, "index");
    check_pointer(flag, "flag");
    int found = find_complete(count, array_of_requests);
    if (found == kNone) {
      poll();
      found = find_complete(count, array_of_requests);
    }
    *flag = found != kNone;
    if (*flag)
      complete_any(array_of_requests, found, index, status);
    else
      *index = MPI_UNDEFINED;
  });
}
VIADUCT_MPI(Testany);

int PMPI_Waitsome(int incount, MPI_Request array_of_requests[], int* outcount,
                  int array_of_indices[], MPI_Status* array_of_statuses) {
  return call_on_requests("MPI_Waitsome", [&] {
    check_requests(incount, array_of_requests);
    check_pointer(outcount, "outcount");
    check_indices(incount, array_of_indices);
    // find_all_complete() never returns kNone, so 0 means: nothing is complete, wait on.
    int found = 0;
    wait_until(
        [&] {
          return (found = find_all_complete(incount, array_of_requests, array_of_indices)) != 0;
        },
        kAnyOfSeveral);
    complete_some(array_of_requests, found, outcount, array_of_indices, array_of_statuses);
  });
}
VIADUCT_MPI(Waitsome);

int PMPI_Testsome(int incount, MPI_Request array_of_requests[], int* outcount,
                  int array_of_indices[], MPI_Status* array_of_statuses) {
  return call_on_requests("MPI_Testsome", [&] {
    check_requests(incount, array_of_requests);
    check_pointer(outcount, "outcount");
    check_indices(incount, array_of_indices);
    poll();
    const int found = find_all_complete(incount, array_of_requests, array_of_indices);
    complete_some(array_of_requests, found, outcount, array_of_indices, array_of_statuses);
  });
}
VIADUCT_MPI(Testsome);

// ---- several requests that stay as they are ----------------------------------------------------

int PMPI_Request_get_status_all(int count, const MPI_Request array_of_requests[], int* flag,
                                MPI_Status* array_of_statuses) {
  return call_on_requests("MPI_Request_get_status_all", [&] {
    check_requests(count, array_of_requests);
    check_pointer(flag, "flag");
    if (!all_ready(count, array_of_requests)) poll();
    *flag = all_ready(count, array_of_requests);
    if (!*flag) return;
    MultiCompletion completions(array_of_statuses);
    for (int i = 0; i < count; ++i) completions.read(check_request(array_of_requests[i]), i);
    completions.done();
  });
}
VIADUCT_MPI(Request_get_status_all);

int PMPI_Request_get_status_any(int count, const MPI_Request array_of_requests[], int* index,
                                int* flag, MPI_Status* status) {
  return call_on_requests("MPI_Request_get_status_any", [&] {
    check_requests(count, array_of_requests);
    check_pointer(index, "index");
    check_pointer(flag, "flag");
    poll();
    const int found = find_complete(count, array_of_requests);
    *flag = found != kNone;
    *index = found < 0 ? MPI_UNDEFINED : found;
    if (found == kAllIdle) set_empty(status);
    if (found >= 0) read_one(check_request(array_of_requests[found]), status);
  });
}
VIADUCT_MPI(Request_get_status_any);

int PMPI_Request_get_status_some(int incount, const MPI_Request array_of_requests[], int* outcount,
                                 int array_of_indices[], MPI_Status* array_of_statuses) {
  return call_on_requests("MPI_Request_get_status_some", [&] {
    check_requests(incount, array_of_requests);
    check_pointer(outcount, "outcount");
    check_indices(incount, array_of_indices);
    poll();
    const int found = find_all_complete(incount, array_of_requests, array_of_indices);
    *outcount = found == kAllIdle ? MPI_UNDEFINED : found;
    MultiCompletion completions(array_of_statuses);
    for (int i = 0; i < found; ++i)
      completions.read(check_request(array_of_requests[array_of_indices[i]]), i);
    completions.done();
  });
}
VIADUCT_MPI(Request_get_status_some);

// ---- generalized requests ----------------------------------------------------------------------

int PMPI_Grequest_start(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
                        MPI_Grequest_cancel_function* cancel_fn, void* extra_state,
                        MPI_Request* request) {
  return call("MPI_Grequest_start", [&] {
    check_pointer(request, "request");
    auto g = make<GeneralizedRequest>(query_fn, free_fn, cancel_fn, extra_state);
    *request = new_handle<MPI_Request>(request_handles, Ref<Request>(g.get()));
  });
}
VIADUCT_MPI(Grequest_start);

// The only function that completes a generalized request; the program calls it.
int PMPI_Grequest_complete(MPI_Request request) {
  return call("MPI_Grequest_complete", [&] {
    Request* r = check_request(request);
    if (!r || r->kind != Request::Kind::generalized)
      fail(MPI_ERR_REQUEST, "argument request is not a generalized request");
    if (r->complete) fail(MPI_ERR_REQUEST, "argument request has been completed already");
    r->finish();
    if (static_cast<GeneralizedRequest*>(r)->freed_early) {
      // MPI_Request_free came first. The request has no other handle left, so no wait can complete
      // it.
      MPI_Request handle = request;
      free_unwanted(&handle, *r);
    }
  });
}
VIADUCT_MPI(Grequest_complete);
