// The windows of this process by their context, and what transfer/ reports about them.
#include "libmpi_lite/rma/window.hpp"

#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

std::unordered_map<std::uint32_t, Window*>& windows() {
  static auto* const all = new std::unordered_map<std::uint32_t, Window*>;  // outlives all windows
  return *all;
}

class Windows final : public RmaSink {
 public:
  // A window that is gone here may still be named by an unlock, which nobody waits for.
  bool on_message(int process, Bytes message) override {
    RmaHead head;
    if (message.size() < sizeof head) return false;
    std::memcpy(&head, message.data(), sizeof head);
    const auto found = windows().find(head.context);
    if (found == windows().end()) return true;
    const int rank = found->second->comm()->group()->rank_of(process);
    return rank != MPI_UNDEFINED &&
           found->second->on_message(rank, head, message.subspan(sizeof head));
  }
  bool progress() override {
    if (!Window::any_waits()) [[likely]]
      return false;
    bool any = false;
    for (const auto& [context, window] : windows()) any |= window->pump();
    return any;
  }
  bool has_backlog() const override {
    if (!Window::any_waits()) return false;
    for (const auto& [context, window] : windows())
      if (window->has_backlog()) return true;
    return false;
  }
  void on_peer_lost(int process) override {
    for (const auto& [context, window] : windows()) {
      const int rank = window->comm()->group()->rank_of(process);
      if (rank != MPI_UNDEFINED) window->on_peer_lost(rank);
    }
  }
};

}  // namespace

RmaSink& rma_sink() {
  static Windows sink;
  return sink;
}

Window::Window(Ref<Comm> comm, const WindowSpec& spec)
    : comm_(std::move(comm)),
      flavor_(spec.flavor),
      owned_(nullptr, std::free),
      targets_(static_cast<std::size_t>(comm_->size())),
      origins_(targets_.size()) {
  for (int rank = 0; rank < ranks(); ++rank) all_ranks_.push_back(rank);
  windows()[comm_->context()] = this;
}

Window::~Window() {
  windows().erase(comm_->context());
  if (!waiting_.empty()) --with_waiting_;
}

RmaHead Window::head(RmaAction action) const {
  RmaHead head{};
  head.kind = Kind::rma;
  head.action = action;
  head.context = comm_->context();
  return head;
}

void Window::send(int rank, const RmaHead& head, Bytes body) {
  Transfer::self().send_rma(process(rank), bytes_of(head), body);
}

// What waits for that process ends. As a target, this process takes back the lock that it holds.
void Window::on_peer_lost(int rank) {
  Target& t = target(rank);
  t.lost = true;
  if (!t.complete() || t.dirty || t.lock != LockState::none || t.access)
    t.error = MPI_ERR_PROC_ABORTED;
  const auto fail = [](const Ref<RmaRequest>& request) {
    if (!request) return;
    request->error = MPI_ERR_PROC_ABORTED;
    request->finish();
  };
  const std::deque<RmaOperation> waiting = std::exchange(t.waiting, {});
  for (const RmaOperation& operation : waiting) fail(operation.request);
  t.fetches = 0;
  for (std::uint32_t id = 1; id <= fetches_.size(); ++id) {
    if (fetches_[id - 1].rank != rank) continue;
    fetches_[id - 1].error = MPI_ERR_PROC_ABORTED;
    end_fetch(id);
  }
  locks_.release(rank, [&](int granted) { grant(granted); });
}

}  // namespace viaduct::mpi
