// Construction and end of communicators. How they come to be, by agreement of their processes, is
// in collective/construction.cpp.
#include "libmpi_lite/core/comm.hpp"

namespace viaduct::mpi {

namespace {

Ref<Errhandler> or_default(Ref<Errhandler> errhandler) {
  if (errhandler) return errhandler;
  return Ref<Errhandler>(
      errhandler_handles.find(reinterpret_cast<std::uintptr_t>(MPI_ERRORS_ARE_FATAL)));
}

}  // namespace

Comm::Comm(std::uint32_t context, Ref<Group> group, Ref<Group> remote, Ref<Errhandler> errhandler)
    : errhandler(or_default(std::move(errhandler))),
      context_(context),
      group_(std::move(group)),
      remote_(std::move(remote)),
      rank_(group_->rank()),
      size_(group_->size()),
      peers_(remote_ ? remote_->size() : size_) {
  // agree_on_context() reserves four contexts for each communicator: two for itself and two for the
  // local group.
  if (remote_) local = make<Comm>(context_ + 2, group_, nullptr, this->errhandler);
}

void Comm::settle(std::uint32_t context) {
  context_ = context;
  if (local) local->context_ = context + 2;
}

Comm::~Comm() {
  forget_matching(*this);
}

}  // namespace viaduct::mpi
