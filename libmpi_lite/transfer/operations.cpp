// The functions of transfer.hpp in terms of the engine: make a request, start it at the Transfer,
// wait if the call blocks. The protocols are in engine.hpp's files.

#include <sched.h>

#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/transfer/buffered.hpp"
#include "libmpi_lite/transfer/engine.hpp"
#include "libmpi_lite/transfer/parts/composite.hpp"

namespace viaduct::mpi {
namespace {

// -1: no process, or any.
int process_of(const Envelope& e) {
  return e.rank < 0 ? -1 : e.comm->peer(e.rank);
}

void fill(MPI_Status* status, const Message* message) {
  if (status == MPI_STATUS_IGNORE) return;
  const auto& m = static_cast<const Unexpected&>(*message);
  const int error = status->MPI_ERROR;  // section 3.2.5: only calls on several requests set it
  *status = empty_status(m.head.source);
  status->MPI_TAG = m.head.tag;
  status->MPI_ERROR = error;
  set_status_bytes(*status, static_cast<std::int64_t>(m.length));
}

Unexpected* find_message(const Envelope& from) {
  return Transfer::self().queues(from.context).find_message(from.rank, from.tag);
}

}  // namespace

Ref<Request> complete_send() {
  return Ref<Request>(request_handles.find(kCompleteSend));
}

Ref<Request> start_send(const Items& items, const Envelope& to, SendMode mode) {
  if (mode == SendMode::buffered) return start_buffered(items, to);
  if (Transfer::self().send_now(items, to, mode)) [[likely]]
    return complete_send();
  auto request = make<SendRequest>(items, to, process_of(to), mode);
  Transfer::self().start(*request);
  return request;
}

Ref<Request> start_receive(const Items& into, const Envelope& from) {
  auto request = make<ReceiveRequest>(into, from, process_of(from));
  Transfer::self().start(*request);
  return request;
}

Ref<Request> send_loss(const Envelope& to, int process) {
  Transfer::self().send_loss(to, process);
  return complete_send();
}

void send(const Items& items, const Envelope& to, SendMode mode) {
  if (mode == SendMode::buffered)
    start_buffered(items, to);
  else if (!Transfer::self().send_now(items, to, mode)) [[unlikely]]
    Transfer::self().send(items, to, mode);
}

void receive(const Items& into, const Envelope& from, MPI_Status* status) {
  const auto request = make<ReceiveRequest>(into, from, process_of(from));
  Transfer::self().start(*request);
  wait(*request);
  if (status != MPI_STATUS_IGNORE) copy_status(request->status, *status);
  if (request->error != MPI_SUCCESS) throw Error(request->error, error_text(*request));
}

// ---- persistent --------------------------------------------------------------------------------

Ref<Request> make_send(const Items& items, const Envelope& to, SendMode mode) {
  auto request = make<SendRequest>(items, to, process_of(to), mode);
  request->persistent = true;
  request->active = false;
  return request;
}

Ref<Request> make_receive(const Items& into, const Envelope& from) {
  auto request = make<ReceiveRequest>(into, from, process_of(from));
  request->persistent = true;
  request->active = false;
  return request;
}

void start(Request& persistent) {
  if (persistent.kind == Request::Kind::composite)
    return static_cast<Composite&>(persistent).start();
  if (persistent.kind == Request::Kind::receive) {
    auto& receive = static_cast<ReceiveRequest&>(persistent);
    receive.renew();
    receive.peer = process_of(receive.envelope());  // the last run may have set it: MPI_ANY_SOURCE
    return Transfer::self().start(receive);
  }
  auto& send = static_cast<SendRequest&>(persistent);
  send.renew();
  if (send.mode != SendMode::buffered) return Transfer::self().start(send);
  try {
    start_buffered(send.items(), send.envelope());
  } catch (const Error&) {  // no room in the buffer: the request stays inactive
    send.active = false;
    throw;
  }
  send.finish();
}

// ---- probes ------------------------------------------------------------------------------------

bool has_message(const Envelope& from) {
  return find_message(from) != nullptr;
}

void check_sender(const Envelope& from) {
  Transfer::self().check_sender(from);
}

bool probe(const Envelope& from, MPI_Status* status) {
  const Unexpected* const message = find_message(from);
  if (message) fill(status, message);
  return message != nullptr;
}

Ref<Message> matched_probe(const Envelope& from, MPI_Status* status) {
  Unexpected* const message = find_message(from);
  if (!message) return nullptr;
  Ref<Unexpected> taken = Transfer::self().queues(from.context).take(*message);
  taken->comm = Ref<Comm>(from.comm);
  fill(status, taken.get());
  return taken;
}

Ref<Request> start_matched_receive(const Items& into, Message& message) {
  auto& m = static_cast<Unexpected&>(message);
  const Envelope from{m.comm.get(), m.head.context, m.head.source, m.head.tag};
  auto request = make<ReceiveRequest>(into, from, m.peer);
  Transfer::self().receive_unexpected(*request, m);
  return request;
}

void cancel(Request& request) {
  if (request.complete) return;
  if (request.kind == Request::Kind::send)
    Transfer::self().cancel(static_cast<SendRequest&>(request));
  else if (request.kind == Request::Kind::receive)
    Transfer::self().cancel(static_cast<ReceiveRequest&>(request));
}

// At an exit without MPI_Finalize communicators may outlive the engine.
void forget_matching(const Comm& comm) {
  if (!Transfer::exists()) return;
  Transfer::self().forget(comm.context());
  Transfer::self().forget(comm.collective_context());
  Transfer::self().forget(comm.context() | kPartitionedSetup);
  Transfer::self().forget(comm.context() | kPartitionedData);
}

bool may_be_asked(const Envelope& to, std::size_t bytes) {
  return Transfer::self().may_be_asked(to, bytes);
}

// ---- results -----------------------------------------------------------------------------------

int awaited_process(const Request& request, int tag) {
  if (request.kind != Request::Kind::receive || request.complete) return -1;
  const auto& receive = static_cast<const ReceiveRequest&>(request);
  return receive.posted && receive.tag == tag ? receive.peer : -1;
}

bool received_all(const Request& receive) {
  return status_bytes(receive.status) == static_cast<const Operation&>(receive).bytes;
}

int lost_process(const Request& message) {
  return static_cast<const Operation&>(message).peer;
}

std::string error_text(const Request& request) {
  if (request.kind == Request::Kind::composite)
    if (const Request* const part = static_cast<const Composite&>(request).failed_part())
      return error_text(*part);
  if (request.kind != Request::Kind::send && request.kind != Request::Kind::receive)
    return "the operation failed";
  const auto& operation = static_cast<const Operation&>(request);
  if (request.error == MPI_ERR_TRUNCATE)
    return "a message of " +
           std::to_string(static_cast<const ReceiveRequest&>(operation).sent_length) +
           " bytes from rank " + std::to_string(request.status.MPI_SOURCE) + " with tag " +
           std::to_string(request.status.MPI_TAG) + " does not fit the receive buffer of " +
           std::to_string(operation.bytes) + " bytes";
  return Transfer::self().loss_text(operation.peer);
}

bool progress() {
  return Transfer::self().progress();
}

void poll_channels() {
  Transfer& transfer = Transfer::self();
  if (!transfer.poll_channels() && transfer.config().oversubscribed) ::sched_yield();
}

}  // namespace viaduct::mpi
