// How the end of the last part ends the whole: each part that is under way calls back.
#include "libmpi_lite/transfer/parts/composite.hpp"

#include <algorithm>

namespace viaduct::mpi {

Composite::Composite(Comm* comm, bool persists) : Request(Kind::composite), comm_(comm) {
  persistent = persists;
  active = !persists;
}

void Composite::start() {
  complete = cancelled = false;
  error = MPI_SUCCESS;
  status = empty_status();
  start_parts();
  active = true;
}

void Composite::expect(std::size_t parts) {
  parts_.clear();
  parts_.reserve(parts);
  open_ = parts;
  self_ = Ref<Composite>(this);
}

void Composite::add(Ref<Request> part) {
  parts_.push_back(std::move(part));
  Request& added = *parts_.back();
  if (added.complete) return part_complete();
  added.on_complete = [](Request&, void* whole) {
    static_cast<Composite*>(whole)->part_complete();
  };
  added.on_complete_argument = this;
}

void Composite::run(std::initializer_list<Ref<Request>> parts) {
  expect(parts.size());
  for (const Ref<Request>& part : parts) add(part);
}

void Composite::part_complete() {
  if (--open_ != 0) return;
  const Ref<Composite> keep = std::move(self_);  // finish() may release all others
  finish_parts();
  finish();
}

void Composite::finish_parts() {
  if (!parts_.empty()) status = parts_.front()->status;
  if (const Request* const failed = failed_part()) error = failed->error;
  status.MPI_ERROR = error;
}

const Request* Composite::open_part() const {
  const auto found = std::ranges::find_if(parts_, [](const auto& part) { return !part->complete; });
  return found == parts_.end() ? nullptr : found->get();
}

const Request* Composite::failed_part() const {
  const auto found =
      std::ranges::find_if(parts_, [](const auto& part) { return part->error != MPI_SUCCESS; });
  return found == parts_.end() ? nullptr : found->get();
}

}  // namespace viaduct::mpi
