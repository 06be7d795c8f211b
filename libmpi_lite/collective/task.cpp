// How a task waits for its messages. That of a blocking call makes progress until all are complete.
// That of a nonblocking one is suspended, and each of its messages has Pending::completed as
// on_complete; the last one puts the Pending into a list, which progress() works through.
#include "libmpi_lite/collective/task.hpp"

#include "libmpi_lite/collective/collective_request.hpp"

namespace viaduct::mpi {
namespace {

// Tasks whose messages have all completed, in the order of completion.
Pending* first_ready = nullptr;
Pending** last_ready = &first_ready;  // the link that the next one goes into

}  // namespace

void Pending::unlist() {
  Pending** link = &collective_.pendings_;
  while (*link != this) link = &(*link)->older_;
  *link = older_;
}

void Pending::add(Ref<Request> request) {
  if (request->complete) return collective_.check(*request);
  if (!first_) {
    older_ = collective_.pendings_;
    collective_.pendings_ = this;
  }
  *last_ = request.detach();
  last_ = &(*last_)->next;
}

bool Pending::all_complete() const {
  for (const Request* r = first_; r; r = r->next)
    if (!r->complete) return false;
  return true;
}

// A long wait may begin here, so this is the place to look whether ranks disagree. The look may end
// the operation: that cancels the messages, and so completes the wait.
bool Pending::waits_in_place() {
  if (!collective_.blocking_) return false;
  collective_.look_for_disagreement();
  wait_until([&] { return all_complete(); }, [&] { return WaitedFor{.request = &collective_}; });
  return true;
}

// As above; here the look must come last.
void Pending::suspend(std::coroutine_handle<> task) {
  task_ = task;
  for_each([&](Request& request) {
    if (request.complete) return;
    request.on_complete = completed;
    request.on_complete_argument = this;
    ++open_;
  });
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
  for_each([&](const Request& request) { collective_.check(request); });
  release();
}

void Pending::release() {
  unlist();
  for (Request* r = first_; r;) {
    const Ref<Request> last = Ref<Request>::adopt(r);
    r = std::exchange(r->next, nullptr);
  }
  first_ = nullptr;
  last_ = &first_;
}

void Pending::cancel() {
  for_each([](Request& request) { mpi::cancel(request); });
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
