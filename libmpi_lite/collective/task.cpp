// How a suspended task comes to be continued: each of its messages has Pending::completed as
// on_complete; the last one puts the Pending into a list, which progress() works through.
#include "libmpi_lite/collective/task.hpp"

#include "libmpi_lite/collective/collective_request.hpp"

namespace viaduct::mpi {
namespace {

// Tasks whose messages have all completed, in the order of completion.
Pending* first_ready = nullptr;
Pending** last_ready = &first_ready;  // the link that the next one goes into

}  // namespace

void Pending::list() {
  older_ = collective_.pendings_;
  collective_.pendings_ = this;
}

void Pending::unlist() {
  Pending** link = &collective_.pendings_;
  while (*link != this) link = &(*link)->older_;
  *link = older_;
}

void Pending::add(Ref<Request> request) {
  if (request->complete) return collective_.check(*request);
  requests_.push_back(std::move(request));
  if (requests_.size() == 1) list();
}

bool Pending::all_complete() const {
  for (const Ref<Request>& request : requests_)
    if (!request->complete) return false;
  return true;
}

// A long wait may begin here, so this is the place to look whether ranks disagree. The look comes
// last, as it may end the operation: that cancels the messages, and so completes the wait.
void Pending::suspend(std::coroutine_handle<> task) {
  task_ = task;
  for (const Ref<Request>& request : requests_) {
    if (request->complete) continue;
    request->on_complete = completed;
    request->on_complete_argument = this;
    ++open_;
  }
  collective_.look_for_disagreement();
}

// Runs inside a channel's poll, where the task must not run: it would send and receive. So the task
// is only listed.
void Pending::completed(Request&, void* pending) {
  auto* const self = static_cast<Pending*>(pending);
  if (--self->open_ != 0) return;
  self->next_ = nullptr;
  *last_ready = self;
  last_ready = &self->next_;
}

void Pending::collect() {
  for (const Ref<Request>& request : requests_) collective_.check(*request);
  requests_.clear();
  unlist();
}

void Pending::cancel() {
  for (const Ref<Request>& request : requests_) mpi::cancel(*request);
}

bool continue_collectives() {
  if (!first_ready) return false;
  while (Pending* const pending = first_ready) {
    first_ready = pending->next_;
    if (!first_ready) last_ready = &first_ready;
    Collective& collective = pending->collective_;
    pending->task_.resume();  // `pending` may be gone after this, but the Collective holds itself
    collective.finish_if_done();
  }
  return true;
}

}  // namespace viaduct::mpi
