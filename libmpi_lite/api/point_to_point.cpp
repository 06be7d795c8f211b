// Sending, receiving, probing (MPI 5.0, chapter 3) and persistent requests (section 3.9). The
// functions check arguments and call transfer/transfer.hpp, where
// matching and protocols are.
//
// Choices where the standard leaves one: MPI_Rsend is a standard send. MPI_Sendrecv_replace packs
// the whole message into memory of its own. Calls that ask and find nothing answer a pending dump
// signal (VIADUCT_DUMP_SIGNAL), so that a program which polls for ever can be examined like one
// that waits.

#include <vector>

#include "libmpi_lite/api/completion.hpp"
#include "libmpi_lite/api/counted.hpp"
#include "libmpi_lite/transfer/parts/composite.hpp"

namespace viaduct::mpi {
namespace {

// A handle for a new request. Sends that were complete when they started are all the same request
// (CompleteSend), which has a fixed handle: MPI_Isend of a short message adds nothing to the table.
MPI_Request new_request(Ref<Request> request) {
  if (request.get() == request_handles.find(kCompleteSend)) [[likely]]
    return reinterpret_cast<MPI_Request>(kCompleteSend);
  return new_handle<MPI_Request>(request_handles, std::move(request));
}

template <class Count>
int send_call(const char* name, SendMode mode, const void* buf, Count count, MPI_Datatype datatype,
              int dest, int tag, MPI_Comm comm) {
  return call(name, comm, [&](Comm& c) {
    const Items items = check_items(buf, count, datatype, "buf", dest);
    send(items, check_destination(c, dest, tag), mode);
  });
}

// MPI_Isend and MPI_Send_init in all modes: `make_request` is start_send or make_send. The handle
// is written only when nothing can fail any more.
template <class Make, class Count>
int request_call(const char* name, Make make_request, const void* buf, Count count,
                 MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request,
                 SendMode mode) {
  return call(name, comm, [&](Comm& c) {
    const Items items = check_items(buf, count, datatype, "buf", dest);
    const Envelope to = check_destination(c, dest, tag);
    check_pointer(request, "request");
    *request = new_request(make_request(items, to, mode));
  });
}

// MPI_Irecv and MPI_Recv_init: `make_request` is start_receive or make_receive.
template <class Make, class Count>
[[gnu::always_inline]] inline int receive_call(const char* name, Make make_request, void* buf,
                                               Count count, MPI_Datatype datatype, int source,
                                               int tag, MPI_Comm comm, MPI_Request* request) {
  return call(name, comm, [&](Comm& c) {
    const Items into = check_items(buf, count, datatype, "buf", source);
    const Envelope from = check_source(c, source, tag);
    check_pointer(request, "request");
    *request = new_handle<MPI_Request>(request_handles, make_request(into, from));
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

// A probe of MPI_PROC_NULL succeeds at once.
bool can_probe(const Envelope& from) {
  return from.rank == MPI_PROC_NULL || has_message(from);
}
bool can_probe_or_fail(const Envelope& from) {
  if (can_probe(from)) return true;
  check_sender(from);
  return false;
}
// Polls once if there is no message yet: what a lost process has sent may still come.
bool poll_to_probe(const Envelope& from) {
  if (can_probe(from)) return true;
  if (!progress()) DumpSignal::answer_if_asked(nullptr);
  return can_probe_or_fail(from);
}
void wait_to_probe(const Envelope& from) {
  if (can_probe(from)) return;
  progress();
  wait_until([&] { return can_probe_or_fail(from); }, [&] { return WaitedFor{.probe = &from}; });
}

// True: a message is there, or the source is MPI_PROC_NULL.
bool take_probe(const Envelope& from, MPI_Status* status) {
  if (from.rank != MPI_PROC_NULL) return probe(from, status);
  if (status != MPI_STATUS_IGNORE) copy_status(empty_status(MPI_PROC_NULL), *status);
  return true;
}
// The same for a matched probe; then `*message` is the handle.
bool take_matched_probe(const Envelope& from, MPI_Message* message, MPI_Status* status) {
  if (from.rank == MPI_PROC_NULL) {
    *message = MPI_MESSAGE_NO_PROC;
    return take_probe(from, status);
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

// The buffer of MPI_Sendrecv_replace. MPI_DATATYPE_NULL is allowed only if nothing is sent and
// nothing received, both ways being MPI_PROC_NULL. Rank 0 stands for any rank.
template <class Count>
Items check_replaced(void* buf, Count count, MPI_Datatype datatype, int dest, int source) {
  return check_items(buf, count, datatype, "buf", dest == source ? dest : 0);
}
std::vector<std::byte> packed_copy(const Items& items) {
  std::vector<std::byte> copy(static_cast<std::size_t>(items.bytes()));
  items.type->pack(items.data, 0, copy);
  return copy;
}
Items bytes_of(const std::vector<std::byte>& copy) {
  return {copy.data(), static_cast<MPI_Count>(copy.size()), &datatype(MPI_BYTE)};
}

// MPI_Isendrecv and MPI_Isendrecv_replace: a receive and a send. The status is the receive's.
class SendReceive final : public Composite {
 public:
  explicit SendReceive(Comm& comm) : Composite(&comm, false) {}
  void exchange(const Items& items, const Envelope& to, const Items& into, const Envelope& from) {
    run({start_receive(into, from), start_send(items, to, SendMode::standard)});
  }
  // Sends what is in the buffer that it receives into, from a copy.
  void replace(const Items& items, const Envelope& to, const Envelope& from) {
    copy_ = packed_copy(items);
    exchange(bytes_of(copy_), to, items, from);
  }

 private:
  void start_parts() override {}  // it is not persistent
  std::vector<std::byte> copy_;
};

}  // namespace
}  // namespace viaduct::mpi

using namespace viaduct::mpi;

// ---- sending -----------------------------------------------------------------------------------

VIADUCT_MPI_COUNTED(Send,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm),
                    send_call(function, SendMode::standard, buf, count, datatype, dest, tag, comm));
VIADUCT_MPI_COUNTED(Bsend,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm),
                    send_call(function, SendMode::buffered, buf, count, datatype, dest, tag, comm));
VIADUCT_MPI_COUNTED(
    Ssend, (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
    send_call(function, SendMode::synchronous, buf, count, datatype, dest, tag, comm));
VIADUCT_MPI_COUNTED(Rsend,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm),
                    send_call(function, SendMode::ready, buf, count, datatype, dest, tag, comm));

VIADUCT_MPI_COUNTED(Isend,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request* request),
                    request_call(function, start_send, buf, count, datatype, dest, tag, comm,
                                 request, SendMode::standard));
VIADUCT_MPI_COUNTED(Ibsend,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request* request),
                    request_call(function, start_send, buf, count, datatype, dest, tag, comm,
                                 request, SendMode::buffered));
VIADUCT_MPI_COUNTED(Issend,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request* request),
                    request_call(function, start_send, buf, count, datatype, dest, tag, comm,
                                 request, SendMode::synchronous));
VIADUCT_MPI_COUNTED(Irsend,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request* request),
                    request_call(function, start_send, buf, count, datatype, dest, tag, comm,
                                 request, SendMode::ready));

// ---- receiving ---------------------------------------------------------------------------------

VIADUCT_MPI_COUNTED(Recv,
                    (void* buf, Count count, MPI_Datatype datatype, int source, int tag,
                     MPI_Comm comm, MPI_Status* status),
                    call(function, comm, [&](Comm& c) {
                      const Items into = check_items(buf, count, datatype, "buf", source);
                      receive(into, check_source(c, source, tag), status);
                    }));

VIADUCT_MPI_COUNTED(Irecv,
                    (void* buf, Count count, MPI_Datatype datatype, int source, int tag,
                     MPI_Comm comm, MPI_Request* request),
                    receive_call(function, start_receive, buf, count, datatype, source, tag, comm,
                                 request));

VIADUCT_MPI_COUNTED(Sendrecv,
                    (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, int dest,
                     int sendtag, void* recvbuf, Count recvcount, MPI_Datatype recvtype, int source,
                     int recvtag, MPI_Comm comm, MPI_Status* status),
                    call(function, comm, [&](Comm& c) {
                      const Items items =
                          check_items(sendbuf, sendcount, sendtype, "sendbuf", dest);
                      const Items into =
                          check_items(recvbuf, recvcount, recvtype, "recvbuf", source);
                      const Envelope to = check_destination(c, dest, sendtag);
                      exchange(items, to, into, check_source(c, source, recvtag), status);
                    }));

// The data is packed into a copy, which is sent as bytes, while the receive fills the buffer.
VIADUCT_MPI_COUNTED(Sendrecv_replace,
                    (void* buf, Count count, MPI_Datatype datatype, int dest, int sendtag,
                     int source, int recvtag, MPI_Comm comm, MPI_Status* status),
                    call(function, comm, [&](Comm& c) {
                      const Items items = check_replaced(buf, count, datatype, dest, source);
                      const Envelope to = check_destination(c, dest, sendtag);
                      const Envelope from = check_source(c, source, recvtag);
                      const std::vector<std::byte> copy = packed_copy(items);
                      exchange(bytes_of(copy), to, items, from, status);
                    }));

VIADUCT_MPI_COUNTED(Isendrecv,
                    (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, int dest,
                     int sendtag, void* recvbuf, Count recvcount, MPI_Datatype recvtype, int source,
                     int recvtag, MPI_Comm comm, MPI_Request* request),
                    call(function, comm, [&](Comm& c) {
                      const Items items =
                          check_items(sendbuf, sendcount, sendtype, "sendbuf", dest);
                      const Items into =
                          check_items(recvbuf, recvcount, recvtype, "recvbuf", source);
                      const Envelope to = check_destination(c, dest, sendtag);
                      const Envelope from = check_source(c, source, recvtag);
                      check_pointer(request, "request");
                      const auto made = make<SendReceive>(c);
                      made->exchange(items, to, into, from);
                      *request = new_handle<MPI_Request>(request_handles, Ref<Request>(made));
                    }));

VIADUCT_MPI_COUNTED(Isendrecv_replace,
                    (void* buf, Count count, MPI_Datatype datatype, int dest, int sendtag,
                     int source, int recvtag, MPI_Comm comm, MPI_Request* request),
                    call(function, comm, [&](Comm& c) {
                      const Items items = check_replaced(buf, count, datatype, dest, source);
                      const Envelope to = check_destination(c, dest, sendtag);
                      const Envelope from = check_source(c, source, recvtag);
                      check_pointer(request, "request");
                      const auto made = make<SendReceive>(c);
                      made->replace(items, to, from);
                      *request = new_handle<MPI_Request>(request_handles, Ref<Request>(made));
                    }));

// ---- persistent requests -----------------------------------------------------------------------

VIADUCT_MPI_COUNTED(Send_init,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request* request),
                    request_call(function, make_send, buf, count, datatype, dest, tag, comm,
                                 request, SendMode::standard));
VIADUCT_MPI_COUNTED(Bsend_init,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request* request),
                    request_call(function, make_send, buf, count, datatype, dest, tag, comm,
                                 request, SendMode::buffered));
VIADUCT_MPI_COUNTED(Ssend_init,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request* request),
                    request_call(function, make_send, buf, count, datatype, dest, tag, comm,
                                 request, SendMode::synchronous));
VIADUCT_MPI_COUNTED(Rsend_init,
                    (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request* request),
                    request_call(function, make_send, buf, count, datatype, dest, tag, comm,
                                 request, SendMode::ready));
VIADUCT_MPI_COUNTED(Recv_init,
                    (void* buf, Count count, MPI_Datatype datatype, int source, int tag,
                     MPI_Comm comm, MPI_Request* request),
                    receive_call(function, make_receive, buf, count, datatype, source, tag, comm,
                                 request));

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
    wait_to_probe(from);
    take_probe(from, status);
  });
}
VIADUCT_MPI(Probe);

int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  return call("MPI_Iprobe", comm, [&](Comm& c) {
    const Envelope from = check_source(c, source, tag);
    check_pointer(flag, "flag");
    *flag = poll_to_probe(from) && take_probe(from, status);
  });
}
VIADUCT_MPI(Iprobe);

int PMPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  return call("MPI_Mprobe", comm, [&](Comm& c) {
    const Envelope from = check_source(c, source, tag);
    check_pointer(message, "message");
    wait_to_probe(from);
    take_matched_probe(from, message, status);
  });
}
VIADUCT_MPI(Mprobe);

int PMPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                 MPI_Status* status) {
  return call("MPI_Improbe", comm, [&](Comm& c) {
    const Envelope from = check_source(c, source, tag);
    check_pointer(message, "message");
    check_pointer(flag, "flag");  // before a message is taken
    *flag = poll_to_probe(from) && take_matched_probe(from, message, status);
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
VIADUCT_MPI_COUNTED(Mrecv,
                    (void* buf, Count count, MPI_Datatype datatype, MPI_Message* message,
                     MPI_Status* status),
                    call_on_requests(function, [&] {
                      const Items into = check_items(buf, count, datatype);
                      finish_receive(*start_probed(into, message), status);
                    }));

VIADUCT_MPI_COUNTED(Imrecv,
                    (void* buf, Count count, MPI_Datatype datatype, MPI_Message* message,
                     MPI_Request* request),
                    call(function, [&] {
                      const Items into = check_items(buf, count, datatype);
                      check_pointer(request, "request");
                      *request = new_request(start_probed(into, message));
                    }));
