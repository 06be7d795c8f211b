// Sending, receiving, probing (MPI 5.0, chapter 3), persistent requests (section 3.9) and the
// accessors of MPI_Status. The functions check arguments and call transfer/transfer.hpp, where
// matching and protocols are.
//
// Choices where the standard leaves one: MPI_Rsend is a standard send. MPI_Sendrecv_replace packs
// the whole message into memory of its own. Calls that ask and find nothing answer a pending dump
// signal (VIADUCT_DUMP_SIGNAL), so that a program which polls for ever can be examined like one
// that waits.

#include <vector>

#include "libmpi_lite/api/completion.hpp"

namespace viaduct::mpi {
namespace {

// A handle for a new request. Sends that were complete when they started are all the same request
// (CompleteSend), which has a fixed handle: MPI_Isend of a short message adds nothing to the table.
MPI_Request new_request(Ref<Request> request) {
  if (request.get() == request_handles.find(kCompleteSend)) [[likely]]
    return reinterpret_cast<MPI_Request>(kCompleteSend);
  return new_handle<MPI_Request>(request_handles, std::move(request));
}

int send_call(const char* name, SendMode mode, const void* buf, int count, MPI_Datatype datatype,
              int dest, int tag, MPI_Comm comm) {
  return call(name, comm, [&](Comm& c) {
    const Items items = check_items(buf, count, datatype, "buf", dest);
    send(items, check_destination(c, dest, tag), mode);
  });
}

// MPI_Isend and MPI_Send_init in all modes: `make_request` is start_send or make_send. The handle
// is written only when nothing can fail any more.
template <class Make>
int request_call(const char* name, Make make_request, const void* buf, int count,
                 MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request,
                 SendMode mode) {
  return call(name, comm, [&](Comm& c) {
    const Items items = check_items(buf, count, datatype, "buf", dest);
    const Envelope to = check_destination(c, dest, tag);
    check_pointer(request, "request");
    *request = new_request(make_request(items, to, mode));
  });
}

// MPI_MESSAGE_NO_PROC is a constant, not a message in the table (section 3.8.2).
bool is_no_process(MPI_Message message) {
  return message == MPI_MESSAGE_NO_PROC;
}

// Takes the message out of the handle table for its receive and sets the handle to
// MPI_MESSAGE_NULL.
Ref<Message> take_message(MPI_Message* message) {
  const MPI_Message handle = *check_pointer(message, "message");
  Ref<Message> m = message_handles.remove(reinterpret_cast<std::uintptr_t>(handle));
  if (!m)
    fail(MPI_ERR_REQUEST, "argument message (%p) is not a message", static_cast<void*>(handle));
  *message = MPI_MESSAGE_NULL;
  return m;
}

// A probe of MPI_PROC_NULL succeeds at once, with the status of MPI_PROC_NULL. False: another
// source.
bool probe_proc_null(const Envelope& from, MPI_Status* status) {
  if (from.rank != MPI_PROC_NULL) return false;
  if (status != MPI_STATUS_IGNORE) copy_status(empty_status(MPI_PROC_NULL), *status);
  return true;
}

// One attempt of a matched probe. True: a message was there, or the source is MPI_PROC_NULL; then
// `*message` is the handle.
bool try_matched_probe(const Envelope& from, MPI_Message* message, MPI_Status* status) {
  if (probe_proc_null(from, status)) {
    *message = MPI_MESSAGE_NO_PROC;
    return true;
  }
  Ref<Message> m = matched_probe(from, status);
  if (!m) return false;
  *message = new_handle<MPI_Message>(message_handles, std::move(m));
  return true;
}

// Waits for a receive that has no handle and copies its status. The status is filled also if the
// receive failed (a truncated message, for instance).
void finish_receive(const Request& r, MPI_Status* status) {
  wait(r);
  if (status != MPI_STATUS_IGNORE) copy_status(r.status, *status);
  if (r.error != MPI_SUCCESS) throw RequestError(r, r.error);
}

// Posts the receive before it sends: two processes that exchange long messages with each other
// would wait for each other otherwise. An error of the receive is reported rather than one of the
// send.
void exchange(const Items& items, const Envelope& to, const Items& into, const Envelope& from,
              MPI_Status* status) {
  const Ref<Request> received = start_receive(into, from);
  const Ref<Request> sent = start_send(items, to, SendMode::standard);
  wait(*sent);
  finish_receive(*received, status);
  if (sent->error != MPI_SUCCESS) throw Error(sent->error, error_text(*sent));
}

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

// ---- sending -----------------------------------------------------------------------------------

int PMPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return send_call("MPI_Send", SendMode::standard, buf, count, datatype, dest, tag, comm);
}
VIADUCT_MPI(Send);

int PMPI_Bsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
               MPI_Comm comm) {
  return send_call("MPI_Bsend", SendMode::buffered, buf, count, datatype, dest, tag, comm);
}
VIADUCT_MPI(Bsend);

int PMPI_Ssend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
               MPI_Comm comm) {
  return send_call("MPI_Ssend", SendMode::synchronous, buf, count, datatype, dest, tag, comm);
}
VIADUCT_MPI(Ssend);

int PMPI_Rsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
               MPI_Comm comm) {
  return send_call("MPI_Rsend", SendMode::ready, buf, count, datatype, dest, tag, comm);
}
VIADUCT_MPI(Rsend);

int PMPI_Isend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request* request) {
  return request_call("MPI_Isend", start_send, buf, count, datatype, dest, tag, comm, request,
                      SendMode::standard);
}
VIADUCT_MPI(Isend);

int PMPI_Ibsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                MPI_Request* request) {
  return request_call("MPI_Ibsend", start_send, buf, count, datatype, dest, tag, comm, request,
                      SendMode::buffered);
}
VIADUCT_MPI(Ibsend);

int PMPI_Issend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                MPI_Request* request) {
  return request_call("MPI_Issend", start_send, buf, count, datatype, dest, tag, comm, request,
                      SendMode::synchronous);
}
VIADUCT_MPI(Issend);

int PMPI_Irsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                MPI_Request* request) {
  return request_call("MPI_Irsend", start_send, buf, count, datatype, dest, tag, comm, request,
                      SendMode::ready);
}
VIADUCT_MPI(Irsend);

// ---- receiving ---------------------------------------------------------------------------------

int PMPI_Recv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Status* status) {
  return call("MPI_Recv", comm, [&](Comm& c) {
    const Items into = check_items(buf, count, datatype, "buf", source);
    receive(into, check_source(c, source, tag), status);
  });
}
VIADUCT_MPI(Recv);

int PMPI_Irecv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
               MPI_Request* request) {
  return call("MPI_Irecv", comm, [&](Comm& c) {
    const Items into = check_items(buf, count, datatype, "buf", source);
    const Envelope from = check_source(c, source, tag);
    check_pointer(request, "request");
    *request = new_handle<MPI_Request>(request_handles, start_receive(into, from));
  });
}
VIADUCT_MPI(Irecv);

int PMPI_Sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                  void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,
                  MPI_Comm comm, MPI_Status* status) {
  return call("MPI_Sendrecv", comm, [&](Comm& c) {
    const Items items = check_items(sendbuf, sendcount, sendtype, "sendbuf", dest);
    const Items into = check_items(recvbuf, recvcount, recvtype, "recvbuf", source);
    const Envelope to = check_destination(c, dest, sendtag);
    exchange(items, to, into, check_source(c, source, recvtag), status);
  });
}
VIADUCT_MPI(Sendrecv);

// The data is packed into a copy, which is sent as bytes, while the receive fills the buffer.
int PMPI_Sendrecv_replace(void* buf, int count, MPI_Datatype datatype, int dest, int sendtag,
                          int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
  return call("MPI_Sendrecv_replace", comm, [&](Comm& c) {
    // MPI_DATATYPE_NULL is allowed only if nothing is sent and nothing received, both ways being
    // MPI_PROC_NULL. Rank 0 stands for any rank.
    const Items items = check_items(buf, count, datatype, "buf", dest == source ? dest : 0);
    const Envelope to = check_destination(c, dest, sendtag);
    const Envelope from = check_source(c, source, recvtag);
    std::vector<std::byte> copy(static_cast<std::size_t>(items.bytes()));
    items.type->pack(buf, 0, copy);
    Datatype& packed = viaduct::mpi::datatype(MPI_BYTE);
    exchange({copy.data(), static_cast<MPI_Count>(copy.size()), &packed}, to, items, from, status);
  });
}
VIADUCT_MPI(Sendrecv_replace);

// ---- persistent requests -----------------------------------------------------------------------

int PMPI_Send_init(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                   MPI_Comm comm, MPI_Request* request) {
  return request_call("MPI_Send_init", make_send, buf, count, datatype, dest, tag, comm, request,
                      SendMode::standard);
}
VIADUCT_MPI(Send_init);

int PMPI_Bsend_init(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                    MPI_Comm comm, MPI_Request* request) {
  return request_call("MPI_Bsend_init", make_send, buf, count, datatype, dest, tag, comm, request,
                      SendMode::buffered);
}
VIADUCT_MPI(Bsend_init);

int PMPI_Ssend_init(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                    MPI_Comm comm, MPI_Request* request) {
  return request_call("MPI_Ssend_init", make_send, buf, count, datatype, dest, tag, comm, request,
                      SendMode::synchronous);
}
VIADUCT_MPI(Ssend_init);

int PMPI_Rsend_init(const void* buf, int count, MPI_Datatype datatype, int dest, int tag,
                    MPI_Comm comm, MPI_Request* request) {
  return request_call("MPI_Rsend_init", make_send, buf, count, datatype, dest, tag, comm, request,
                      SendMode::ready);
}
VIADUCT_MPI(Rsend_init);

int PMPI_Recv_init(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                   MPI_Request* request) {
  return call("MPI_Recv_init", comm, [&](Comm& c) {
    const Items into = check_items(buf, count, datatype, "buf", source);
    const Envelope from = check_source(c, source, tag);
    check_pointer(request, "request");
    *request = new_request(make_receive(into, from));
  });
}
VIADUCT_MPI(Recv_init);

namespace {

// A persistent request that is inactive (section 3.9).
Request& check_startable(MPI_Request handle) {
  Request* r = request_handles.find(reinterpret_cast<std::uintptr_t>(handle));
  if (!r || !r->persistent)
    fail(MPI_ERR_REQUEST, "argument request (%p) is not a persistent request",
         static_cast<void*>(handle));
  if (r->active)
    fail(MPI_ERR_REQUEST, "argument request has been started and not yet been completed");
  return *r;
}

// An error goes to the handler of the request's communicator, as MPI_Start has no communicator
// argument.
void start_persistent(MPI_Request handle) {
  Request& r = check_startable(handle);
  try {
    start(r);
  } catch (const Error& e) {
    throw RequestError(r, e);
  }
}

}  // namespace

int PMPI_Start(MPI_Request* request) {
  return call_on_requests("MPI_Start",
                          [&] { start_persistent(*check_pointer(request, "request")); });
}
VIADUCT_MPI(Start);

int PMPI_Startall(int count, MPI_Request array_of_requests[]) {
  return call_on_requests("MPI_Startall", [&] {
    check_count(count);
    if (count > 0) check_pointer(array_of_requests, "array_of_requests");
    // All requests are checked before the first one is started: a wrong argument starts nothing.
    for (int i = 0; i < count; ++i) check_startable(array_of_requests[i]);
    for (int i = 0; i < count; ++i) start_persistent(array_of_requests[i]);
  });
}
VIADUCT_MPI(Startall);

// ---- probing -----------------------------------------------------------------------------------

// wait_until() reports a long wait with the envelope that is probed for.
int PMPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  return call("MPI_Probe", comm, [&](Comm& c) {
    const Envelope from = check_source(c, source, tag);
    if (probe_proc_null(from, status)) return;
    wait_until([&] { return probe(from, status); }, [&] { return WaitedFor{.probe = &from}; });
  });
}
VIADUCT_MPI(Probe);

int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  return call("MPI_Iprobe", comm, [&](Comm& c) {
    const Envelope from = check_source(c, source, tag);
    check_pointer(flag, "flag");
    *flag = probe_proc_null(from, status) || probe(from, status);
    if (!*flag) DumpSignal::answer_if_asked(nullptr);
  });
}
VIADUCT_MPI(Iprobe);

int PMPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  return call("MPI_Mprobe", comm, [&](Comm& c) {
    const Envelope from = check_source(c, source, tag);
    check_pointer(message, "message");
    wait_until([&] { return try_matched_probe(from, message, status); },
               [&] { return WaitedFor{.probe = &from}; });
  });
}
VIADUCT_MPI(Mprobe);

int PMPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                 MPI_Status* status) {
  return call("MPI_Improbe", comm, [&](Comm& c) {
    const Envelope from = check_source(c, source, tag);
    check_pointer(message, "message");
    check_pointer(flag, "flag");  // before a message is taken
    *flag = try_matched_probe(from, message, status);
    if (!*flag) DumpSignal::answer_if_asked(nullptr);
  });
}
VIADUCT_MPI(Improbe);

namespace {

// The receive of a matched message. MPI_MESSAGE_NO_PROC becomes an ordinary receive from
// MPI_PROC_NULL, which completes at once and receives nothing.
Ref<Request> start_probed(const Items& into, MPI_Message* message) {
  if (!is_no_process(*check_pointer(message, "message")))
    return start_matched_receive(into, *take_message(message));
  *message = MPI_MESSAGE_NULL;
  return start_receive(into, {nullptr, 0, MPI_PROC_NULL, MPI_ANY_TAG});
}

}  // namespace

// The message knows its communicator and the function has no argument for it, so errors of the
// receive go through RequestError.
int PMPI_Mrecv(void* buf, int count, MPI_Datatype datatype, MPI_Message* message,
               MPI_Status* status) {
  return call_on_requests("MPI_Mrecv", [&] {
    const Items into = check_items(buf, count, datatype);
    finish_receive(*start_probed(into, message), status);
  });
}
VIADUCT_MPI(Mrecv);

int PMPI_Imrecv(void* buf, int count, MPI_Datatype datatype, MPI_Message* message,
                MPI_Request* request) {
  return call("MPI_Imrecv", [&] {
    const Items into = check_items(buf, count, datatype);
    check_pointer(request, "request");
    *request = new_request(start_probed(into, message));
  });
}
VIADUCT_MPI(Imrecv);

// ---- buffered mode -----------------------------------------------------------------------------

int PMPI_Buffer_attach(void* buffer, int size) {
  return call("MPI_Buffer_attach", [&] {
    if (size < 0) fail(MPI_ERR_ARG, "argument size is %d; it must not be negative", size);
    attach_buffer(check_pointer(buffer, "buffer"), static_cast<std::size_t>(size));
  });
}
VIADUCT_MPI(Buffer_attach);

// Waits until all messages in the buffer have been sent (section 3.6).
int PMPI_Buffer_detach(void* buffer_addr, int* size) {
  return call("MPI_Buffer_detach", [&] {
    check_pointer(buffer_addr, "buffer_addr");
    check_pointer(size, "size");
    void* buffer;
    std::size_t bytes;
    detach_buffer(buffer, bytes);
    *static_cast<void**>(buffer_addr) = buffer;
    *size = static_cast<int>(bytes);
  });
}
VIADUCT_MPI(Buffer_detach);

// ---- status ------------------------------------------------------------------------------------

int PMPI_Test_cancelled(const MPI_Status* status, int* flag) {
  return call("MPI_Test_cancelled", [&] {
    *check_pointer(flag, "flag") = status_cancelled(*check_pointer(status, "status"));
  });
}
VIADUCT_MPI(Test_cancelled);

int PMPI_Status_set_cancelled(MPI_Status* status, int flag) {
  return call("MPI_Status_set_cancelled",
              [&] { set_status_cancelled(*check_pointer(status, "status"), flag != 0); });
}
VIADUCT_MPI(Status_set_cancelled);

int PMPI_Status_get_source(const MPI_Status* status, int* source) {
  return call("MPI_Status_get_source", [&] {
    *check_pointer(source, "source") = check_pointer(status, "status")->MPI_SOURCE;
  });
}
VIADUCT_MPI(Status_get_source);

int PMPI_Status_set_source(MPI_Status* status, int source) {
  return call("MPI_Status_set_source",
              [&] { check_pointer(status, "status")->MPI_SOURCE = source; });
}
VIADUCT_MPI(Status_set_source);

int PMPI_Status_get_tag(const MPI_Status* status, int* tag) {
  return call("MPI_Status_get_tag",
              [&] { *check_pointer(tag, "tag") = check_pointer(status, "status")->MPI_TAG; });
}
VIADUCT_MPI(Status_get_tag);

int PMPI_Status_set_tag(MPI_Status* status, int tag) {
  return call("MPI_Status_set_tag", [&] { check_pointer(status, "status")->MPI_TAG = tag; });
}
VIADUCT_MPI(Status_set_tag);

int PMPI_Status_get_error(const MPI_Status* status, int* error) {
  return call("MPI_Status_get_error",
              [&] { *check_pointer(error, "error") = check_pointer(status, "status")->MPI_ERROR; });
}
VIADUCT_MPI(Status_get_error);

int PMPI_Status_set_error(MPI_Status* status, int error) {
  return call("MPI_Status_set_error", [&] { check_pointer(status, "status")->MPI_ERROR = error; });
}
VIADUCT_MPI(Status_set_error);
