// The queue of due handlers and the thread that calls them. work_queue.cpp, cq.cpp and vi.cpp
// decide when a call is due.
#include "libvipl/core/handlers.hpp"

#include <array>
#include <cstdio>
#include <utility>

#include "libvipl/core/library_thread.hpp"

namespace viaduct::vipl {
namespace {

// Indexed by the enumerator's value.
const char* text(VIP_ERROR_CODE code) {
  static constexpr std::array<const char*, 11> kTexts{
      "posting a descriptor", "connection lost",       "message for an empty receive queue",
      "VI overrun",           "RDMA write protection", "RDMA write data",
      "RDMA write aborted",   "RDMA read protection",  "protection error on completion",
      "RDMA transport",       "the device failed"};
  return kTexts[static_cast<std::size_t>(code)];
}

}  // namespace

// Shared by the Handlers object and the thread.
struct Handlers::State {
  std::mutex mutex;
  std::condition_variable changed;
  Calls due;
  bool stopping = false;
  std::function<void()> on_due;  // of run_by_program(); empty: the thread runs the handlers
  VIP_PVOID error_context = nullptr;
  VIP_ERROR_HANDLER error_handler = nullptr;

  // There must be one. Gives up `lock`, the state's, while the handler runs.
  void run_first_due(std::unique_lock<std::mutex>& lock) {
    Calls now;
    now.splice(now.end(), due, due.begin());
    lock.unlock();
    std::visit([&](auto& it) { call(it); }, now.front());
    lock.lock();
  }

  // Nothing is locked while the program's handler runs.
  void call(ErrorCall& error) {
    std::unique_lock lock(mutex);
    // Copied under the lock, called without it: the handler may call VipErrorCallback.
    const VIP_ERROR_HANDLER handler = error_handler;
    const VIP_PVOID context = error_context;
    lock.unlock();
    // A lost connection is not printed. A program without a handler sees it in the VI's state, and
    // it is part of every ordinary end.
    if (handler != nullptr)
      handler(context, &error);
    else if (error.ErrorCode != VIP_ERROR_CONN_LOST)
      std::fprintf(stderr, "vipl: NIC %p, VI %p: %s\n", error.NicHandle, error.ViHandle,
                   text(error.ErrorCode));
  }
  void call(QueueCall& it) { it.handler(it.context, it.nic, it.vi, it.descriptor); }
  void call(CqCall& it) { it.handler(it.context, it.nic, it.vi, it.receive); }
};

Handlers::Handlers() : state_(std::make_shared<State>()) {
  thread_ = library_thread([state = state_] { serve(state); });
}

void Handlers::stop() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->due.clear();
  }
  end_thread();
}

void Handlers::run_by_program(std::function<void()> on_due) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->on_due = std::move(on_due);
  }
  end_thread();
}

void Handlers::end_thread() {
  state_->changed.notify_all();
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id())
    thread_.detach();  // a handler calls this; the thread ends when that returns
  else
    thread_.join();
}

void Handlers::set_error_handler(VIP_PVOID context, VIP_ERROR_HANDLER handler) {
  const std::lock_guard lock(state_->mutex);
  state_->error_context = context;
  state_->error_handler = handler;
}

void Handlers::run_first(Calls& from) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->stopping) return from.pop_front();
    state_->due.splice(state_->due.end(), from, from.begin());
    if (state_->on_due) return state_->on_due();
  }
  state_->changed.notify_one();
}

template <class Chosen>
void Handlers::drop(Chosen chosen) {
  const std::lock_guard lock(state_->mutex);
  state_->due.remove_if(chosen);
}

// Only calls of the VI's own queues. A CQ's handler is called even if the VI that its entry names
// is gone: it was registered for one entry, and may be where the program registers the next.
void Handlers::forget_queue(VIP_VI_HANDLE vi) {
  drop([=](const Call& call) {
    const auto* const it = std::get_if<QueueCall>(&call);
    return it != nullptr && it->vi == vi;
  });
}

void Handlers::forget_cq(VIP_CQ_HANDLE cq) {
  drop([=](const Call& call) {
    const auto* const it = std::get_if<CqCall>(&call);
    return it != nullptr && it->cq == cq;
  });
}

void Handlers::serve(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->changed.wait(lock,
                        [&] { return state->stopping || state->on_due || !state->due.empty(); });
    if (state->stopping || state->on_due) return;
    state->run_first_due(lock);
  }
}

// Those that become due meanwhile are for the next call, so that it ends. A handler may destroy
// this object.
bool Handlers::run_due() {
  const std::shared_ptr<State> state = state_;
  std::unique_lock lock(state->mutex);
  if (!state->on_due || state->due.empty()) return false;
  for (std::size_t left = state->due.size(); left != 0 && !state->due.empty(); --left)
    state->run_first_due(lock);
  return true;
}

}  // namespace viaduct::vipl
