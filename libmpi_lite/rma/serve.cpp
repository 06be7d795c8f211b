// The target's side: what messages of other processes do here, at once when they arrive. Nothing
// waits: answers that find no room are kept by transfer/, and messages that must come after a long
// transfer are put off until its end.
#include <cstring>

#include "libmpi_lite/rma/window.hpp"
#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {

bool Window::on_message(int rank, const RmaHead& head, Bytes rest) {
  Target& t = target(rank);
  switch (head.action) {
    case RmaAction::answer: return on_answer(rank, head, rest);
    case RmaAction::locked:
      if (t.lock != LockState::asked) return false;
      t.lock = LockState::held;
      t.open = true;
      return true;
    case RmaAction::flushed:
      if (head.id > t.flush_sent || head.id <= t.flush_done) return false;
      t.flush_done = head.id;
      if (head.type != MPI_SUCCESS) t.error = MPI_ERR_RMA_RANGE;
      return true;
    case RmaAction::post: t.access && !t.open ? void(t.open = true) : void(++t.posts); return true;
    case RmaAction::lock:
      if (locks_.knows(rank)) return false;
      locks_.request(rank, head.flag != 0, [&](int granted) { grant(granted); });
      return true;
    case RmaAction::unlock:
    case RmaAction::flush:
    case RmaAction::complete: defer_or_serve(rank, head); return true;
    case RmaAction::put:
    case RmaAction::accumulate:
      if (!serve(rank, head, rest)) return false;
      if (head.flag != 0) defer_or_serve(rank, head);
      return true;
    default: return serve(rank, head, rest);
  }
}

void Window::defer_or_serve(int rank, const RmaHead& head) {
  if (origin(rank).transfers > 0)
    origin(rank).deferred.push_back(head);
  else
    serve_in_order(rank, head);
}

// Messages that say that all before them is done.
void Window::serve_in_order(int rank, const RmaHead& head) {
  if (head.action == RmaAction::complete) return void(++origin(rank).completes);
  if (head.action == RmaAction::unlock) locks_.release(rank, [&](int granted) { grant(granted); });
  if (head.action == RmaAction::unlock && head.flag == 0) return;
  RmaHead h = this->head(RmaAction::flushed);
  h.id = head.id;
  h.type = static_cast<std::uint32_t>(std::exchange(origin(rank).error, MPI_SUCCESS));
  send(rank, h);
}

void Window::serve_deferred(int rank) {
  Origin& o = origin(rank);
  while (o.transfers == 0 && !o.deferred.empty()) {
    const RmaHead head = o.deferred.front();
    o.deferred.pop_front();
    serve_in_order(rank, head);
  }
}

void Window::grant(int rank) {
  send(rank, head(RmaAction::locked));
}

// A data operation. false: no correct origin would have sent it.
bool Window::serve(int rank, const RmaHead& head, Bytes rest) {
  const std::size_t strips = head.strips * sizeof(Strip);
  if (head.length == 0 || head.length > INT64_MAX || strips > rest.size()) return false;
  served_strips_.resize(head.strips);
  if (strips > 0) std::memcpy(served_strips_.data(), rest.data(), strips);
  const Bytes data = rest.subspan(strips);
  const Region region{head.offset, static_cast<MPI_Count>(head.length), served_strips_};
  const bool as_transfer = head.action == RmaAction::put_long || head.action == RmaAction::get_long;
  if (as_transfer) return strips == 0 && data.empty() && serve_transfer(rank, head, region);
  // The answer has to fit a message as well.
  if (head.length > Transfer::self().rma_limit(process(rank)) - sizeof(RmaHead)) return false;
  if (!region.inside(memory_)) {
    refuse(rank, head);
    return true;
  }
  switch (head.action) {
    case RmaAction::put:
      if (data.size() != head.length) return false;
      write(memory_, region, data.data());
      return true;
    case RmaAction::get:
      if (!data.empty()) return false;
      unpacked_.resize(head.length);
      read(memory_, region, unpacked_.data());
      answer(rank, head, unpacked_, MPI_SUCCESS);
      return true;
    case RmaAction::accumulate:
    case RmaAction::get_accumulate: return serve_accumulate(rank, head, region, data);
    case RmaAction::compare_and_swap:
      if (strips > 0 || head.length > kLargestElement || data.size() != 2 * head.length)
        return false;
      unpacked_.resize(head.length);
      compare_and_swap(memory_, region, data.data(), data.data() + head.length, unpacked_.data());
      answer(rank, head, unpacked_, MPI_SUCCESS);
      return true;
    default: return false;
  }
}

bool Window::serve_accumulate(int rank, const RmaHead& head, const Region& region, Bytes data) {
  if (head.type >= kPredefinedHandles) return false;
  const Combination how{op_handles.find(head.op), datatype_handles.find(head.type)};
  const bool fetches = head.action == RmaAction::get_accumulate;
  if (!how.op || !how.type || how.type->size() == 0 || !how.valid(region) ||
      data.size() != (fetches && how.fetches_only() ? 0 : head.length))
    return false;
  if (!fetches) {
    accumulate(memory_, region, how, data.data(), nullptr);
    return true;
  }
  unpacked_.resize(head.length);
  accumulate(memory_, region, how, data.data(), unpacked_.data());
  answer(rank, head, unpacked_, MPI_SUCCESS);
  return true;
}

// Where the memory is not in the window, a transfer without data ends the origin's part.
bool Window::serve_transfer(int rank, const RmaHead& head, const Region& region) {
  const bool get = head.action == RmaAction::get_long;
  if (head.id >= 2 * kGetTag || (head.id >= kGetTag) != get) return false;
  std::byte* const at = memory_.find(region.offset, region.length);
  if (!at && !get) origin(rank).error = MPI_ERR_RMA_RANGE;
  begin_transfer(rank, false, !get, static_cast<int>(head.id),
                 {at, at ? region.length : 0, &datatype(MPI_BYTE)}, 0, nullptr);
  return true;
}

void Window::answer(int rank, const RmaHead& request, Bytes data, int error) {
  RmaHead h = head(RmaAction::answer);
  h.id = request.id;
  h.length = request.length;
  h.type = static_cast<std::uint32_t>(error);
  send(rank, h, data);
}

void Window::refuse(int rank, const RmaHead& request) {
  if (request.action == RmaAction::put || request.action == RmaAction::accumulate)
    origin(rank).error = MPI_ERR_RMA_RANGE;
  else
    answer(rank, request, {}, MPI_ERR_RMA_RANGE);
}

}  // namespace viaduct::mpi
