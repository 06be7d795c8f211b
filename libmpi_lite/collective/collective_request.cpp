#include "libmpi_lite/collective/collective_request.hpp"

#include "libmpi_lite/core/error.hpp"

namespace viaduct::mpi {
namespace {

constexpr std::uint32_t kTags = Comm::kLastCollectives + 64;

}  // namespace

Collective::Collective(Comm& comm)
    : Collective(comm, static_cast<int>(comm.next_collective++ % kTags)) {}

Collective::Collective(Comm& comm, int tag) : Request(Kind::collective), comm_(&comm), tag_(tag) {}

Datatype& Collective::hold(MPI_Datatype type) {
  Datatype& t = datatype(type);
  // Predefined ones cannot be freed.
  if (!t.predefined()) types_.push_back(Ref<Datatype>(&t));
  return t;
}

void Collective::note(const Request& message) {
  if (message.kind == Request::Kind::receive && message.error == MPI_ERR_PROC_ABORTED && lost_ < 0)
    lost_ = lost_process(message);
  note(message.error, error_text(message));
}

void Collective::note(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    note(e.code(), e.what());
  } catch (const std::bad_alloc&) {
    note(MPI_ERR_NO_MEM, "there is no memory for what has to be received on the way");
  } catch (const std::exception& e) {
    note(MPI_ERR_OTHER, e.what());
  }
}

Ref<Request> Collective::run(Task task) {
  task_ = std::move(task);
  self_ = Ref<Collective>(this);
  Ref<Request> request(this);
  task_.start();
  finish_if_done();
  return request;
}

void Collective::finish_if_done() {
  if (!task_.done()) return;
  if (task_.error()) note(task_.error());
  task_ = Task();
  status.MPI_ERROR = error;
  const Ref<Collective> keep = std::move(self_);
  finish();
}

void finish_collective(const Request& collective) {
  wait(collective);
  if (collective.error != MPI_SUCCESS) [[unlikely]]
    throw Error(collective.error, static_cast<const Collective&>(collective).why());
}

}  // namespace viaduct::mpi
