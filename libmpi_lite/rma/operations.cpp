// The origin's side of data operations. An operation goes in fragments that fit a control message,
// or acts on the memory directly, or, if it is long and its data is one block at the target, as a
// long transfer of transfer/. What cannot go yet waits in Target::waiting: in an epoch whose lock
// or post has not come, or for room in the channel. Operations to one target go in order, which is
// the order that accumulates must keep (MPI 5.0, section 12.7.2).
#include <algorithm>
#include <cstring>

#include "libmpi_lite/rma/window.hpp"
#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

// Bytes of strips and data in one message at most: more does not make it faster, and the target
// composes its answer in memory of its own.
constexpr std::size_t kMaxRoom = 16 << 10;
// The same for an operation that acts directly, and has to be packed in between.
constexpr std::size_t kDirectRoom = 64 << 10;
constexpr unsigned kMaxFetches = 64;  // messages to one target whose answers have not arrived

std::byte* packed_at(const Items& items, MPI_Count position) {
  return items.first_byte() + position;
}

// Takes at most `excess` bytes off the last block; returns how many.
MPI_Count shorten(std::vector<Strip>& strips, MPI_Count excess) {
  Strip& last = strips.back();
  if (last.count > 1) {
    const Strip block{last.displacement + --last.count * last.stride, last.length, last.length, 1};
    strips.push_back(block);
  }
  const MPI_Count cut = std::min(excess, strips.back().length);
  if ((strips.back().length -= cut) == 0) strips.pop_back();
  return cut;
}

// Most copies are of one element, for which a call would take longer. They may overlap if a process
// puts to itself.
void copy_block(std::byte* into, const std::byte* from, MPI_Count length) {
  std::uint64_t element;
  if (length != sizeof element)
    return void(std::memmove(into, from, static_cast<std::size_t>(length)));
  std::memcpy(&element, from, sizeof element);
  std::memcpy(into, &element, sizeof element);
}

bool is_get(RmaAction action) {
  return action == RmaAction::get;
}

}  // namespace

// A message that transfer/ moves for this window. Owned by the message's completion.
struct Window::LongTransfer {
  Ref<Window> window;
  int rank;                 // the other process
  bool origin;              // this process is the origin; else the target
  MPI_Count expected;       // bytes that are to be received; 0: none
  Ref<RmaRequest> request;  // of MPI_Rput or MPI_Rget
  Ref<Request> message;
};

void Window::start(RmaOperation&& operation) {
  poll_now_and_then();
  Target& t = target(operation.rank);
  if (t.lost) throw_error(operation.rank, MPI_ERR_PROC_ABORTED);
  if (lock_all_ && t.lock == LockState::none) ask_lock(operation.rank, false, lock_all_unchecked_);
  if (t.waiting.empty() && may_send(t) && advance(operation, t)) return;
  if (operation.action == RmaAction::compare_and_swap) {
    const auto size = static_cast<std::size_t>(operation.total);
    operation.kept.reset(new std::byte[2 * size]);
    std::memcpy(operation.kept.get(), operation.expected_value, size);
    std::memcpy(operation.kept.get() + size, operation.swap_value, size);
    operation.expected_value = operation.kept.get();
    operation.swap_value = operation.kept.get() + size;
  }
  operation.origin_type = Ref<Datatype>(operation.origin.type);
  operation.result_type = Ref<Datatype>(operation.result.type);
  const int rank = operation.rank;
  t.waiting.push_back(std::move(operation));
  start_waiting(rank);
}

// Under a lock that is held, with no operation before it that waits.
bool Window::copy_at_once(RmaAction action, int rank, MPI_Aint displacement, std::byte* mine,
                          MPI_Count bytes) {
  const Target& t = target(rank);
  MPI_Aint offset;
  if (!t.memory || !t.open || t.lock == LockState::none || t.lost || !t.waiting.empty() ||
      __builtin_mul_overflow(displacement, t.unit, &offset))
    return false;
  std::byte* const at = t.memory->find(offset, bytes);
  if (!at) return false;
  if (is_get(action)) {
    copy_block(mine, at, bytes);
  } else {
    copy_block(at, mine, bytes);
    unfenced_ = true;
  }
  poll_now_and_then();
  return true;
}

void Window::start_waiting(int rank) {
  if (std::ranges::find(waiting_, rank) != waiting_.end()) return;
  if (waiting_.empty()) ++with_waiting_;
  waiting_.push_back(rank);
}

bool Window::pump() {
  bool any = false;
  for (std::size_t i = 0; i < waiting_.size();) {
    Target& t = target(waiting_[i]);
    while (!t.waiting.empty() && may_send(t)) {
      const MPI_Count before = t.waiting.front().position;
      const bool gone = advance(t.waiting.front(), t);
      any |= gone || t.waiting.front().position != before;
      if (!gone) break;
      t.waiting.pop_front();
    }
    if (!t.waiting.empty()) {
      ++i;
      continue;
    }
    waiting_[i] = waiting_.back();
    waiting_.pop_back();
    if (waiting_.empty()) --with_waiting_;
  }
  return any;
}

bool Window::has_backlog() const {
  return std::ranges::any_of(waiting_, [&](int rank) {
    const Target& t = target(rank);
    return !t.waiting.empty() && may_send(t) &&
           !(t.waiting.front().fetches() && t.fetches >= kMaxFetches);
  });
}

// The request of an operation that fetches is completed by the last answer.
bool Window::advance(RmaOperation& operation, Target& t) {
  if (t.room == 0)
    t.room =
        std::min(kMaxRoom, Transfer::self().rma_limit(process(operation.rank)) - sizeof(RmaHead));
  while (operation.position < operation.total)
    if (!send_fragment(operation, t)) return false;
  if (operation.request && operation.fetch == 0) {
    operation.request->error = std::exchange(operation.error, MPI_SUCCESS);
    operation.request->finish();
  }
  return true;
}

bool Window::send_fragment(RmaOperation& operation, Target& t) {
  Region region{};
  // Results come in the order of the fragments, so an operation that has begun with messages goes
  // on with messages. Accumulates must not overtake those that are on their way.
  const bool overtakes = operation.accumulates() && !(t.acknowledged() && t.fetches == 0);
  if (t.memory && operation.fetch == 0 && !overtakes) {
    if (act_on_block(operation, *t.memory)) return true;
    const MPI_Count length = choose_region(operation, kDirectRoom, region);
    if (act_directly(operation, t, region)) {
      operation.position += length;
      return true;
    }
  }
  const bool block = operation.target_type->contiguous();
  if (!operation.accumulates() && block && operation.position == 0 &&
      operation.total > static_cast<MPI_Count>(t.room))
    return send_long(operation, t);
  if (operation.fetches() && t.fetches >= kMaxFetches) return false;
  const MPI_Count length = choose_region(operation, t.room, region);
  RmaHead h = head(operation.action);
  h.offset = region.offset;
  h.length = static_cast<std::uint64_t>(length);
  h.strips = static_cast<std::uint32_t>(region.strips.size());
  if (operation.op) h.op = static_cast<std::uint8_t>(operation.op->constant());
  if (operation.basic)
    h.type =
        static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(operation.basic->constant()));
  const bool last = operation.position + length == operation.total;
  if (operation.fetches()) {
    h.id = fetch_id(operation);
  } else if (t.flushed_alone && !t.dirty && last) {
    h.flag = 1;
    h.id = t.flush_sent + 1;
  }
  const Bytes body = pack_fragment(operation, region, true);
  if (!Transfer::self().try_send_rma(process(operation.rank), bytes_of(h), body)) return false;
  operation.position += length;
  if (operation.fetches()) {
    ++t.fetches;
    return true;
  }
  ++t.unflushed;
  h.flag ? void(++t.flush_sent) : void(t.dirty = true);
  return true;
}

// The next bytes of the operation, and where they lie at the target. `room`: for strips and data.
MPI_Count Window::choose_region(const RmaOperation& operation, std::size_t room, Region& region) {
  const MPI_Count left = operation.total - operation.position;
  const MPI_Count element = operation.basic ? operation.basic->size() : 1;
  const Datatype& type = *operation.target_type;
  if (type.contiguous()) {
    // What acts directly and needs no memory in between is done at once.
    const bool whole = room == kDirectRoom && !operation.accumulates();
    const MPI_Count most = static_cast<MPI_Count>(room) / element * element;
    const MPI_Count length = whole ? left : std::min(left, most);
    region = {operation.offset + type.true_lb() + operation.position, length, {}};
    return length;
  }
  const std::size_t half = room / 2;
  const MPI_Count most = static_cast<MPI_Count>(half) / element * element;
  strips_.clear();
  type.add_strips(operation.position, operation.position + std::min(left, most), strips_);
  // One less than fit, as the last one may be split.
  if (strips_.size() >= half / sizeof(Strip)) strips_.resize(half / sizeof(Strip) - 1);
  MPI_Count length = 0;
  for (const Strip& strip : strips_) length += strip.bytes();
  for (MPI_Count excess = length % element; excess > 0;) {
    const MPI_Count cut = shorten(strips_, excess);
    excess -= cut;
    length -= cut;
  }
  region = {operation.offset, length, strips_};
  if (strips_.size() == 1 && strips_[0].count == 1)
    region = {operation.offset + strips_[0].displacement, length, {}};
  return length;
}

// What follows the head: the strips, and the data if the operation sends any. Valid until the next
// call.
Bytes Window::pack_fragment(const RmaOperation& operation, const Region& region, bool with_strips) {
  const bool swaps = operation.action == RmaAction::compare_and_swap;
  const bool sends = operation.origin.type != nullptr;
  const auto length = static_cast<std::size_t>(region.length);
  const std::size_t strips = with_strips ? region.strips.size_bytes() : 0;
  if (strips == 0 && !swaps && (!sends || operation.origin.type->contiguous()))
    return sends ? Bytes{packed_at(operation.origin, operation.position), length} : Bytes{};
  scratch_.resize(strips + (swaps ? 2 * length : sends ? length : 0));
  std::byte* at = scratch_.data();
  if (strips > 0) std::memcpy(at, region.strips.data(), strips);
  at += strips;
  if (swaps) {
    std::memcpy(at, operation.expected_value, length);
    std::memcpy(at + length, operation.swap_value, length);
  } else if (sends) {
    operation.origin.type->pack(operation.origin.data, operation.position, {at, length});
  }
  return scratch_;
}

// The rest of an operation on memory that this process reaches, if all of its data is one block
// everywhere: nothing is packed. false: it is not.
bool Window::act_on_block(RmaOperation& operation, const WindowMemory& memory) {
  const Datatype& type = *operation.target_type;
  const Items &origin = operation.origin, &result = operation.result;
  if (!type.contiguous() || (origin.type && !origin.type->contiguous()) ||
      (result.type && !result.type->contiguous()))
    return false;
  const MPI_Aint offset = operation.offset + type.true_lb() + operation.position;
  const MPI_Count length = operation.total - operation.position;
  std::byte* const at = memory.find(offset, length);
  if (!at) return false;
  const std::byte* const from = origin.type ? packed_at(origin, operation.position) : nullptr;
  std::byte* const into = result.type ? packed_at(result, operation.position) : nullptr;
  if (operation.accumulates()) {
    const Region region{offset, length, {}};
    const Combination how{operation.op, operation.basic};
    if (!how.by_cpu_atomics(memory, region)) return false;
    if (operation.action == RmaAction::compare_and_swap)
      compare_and_swap(memory, region, operation.expected_value, operation.swap_value, into);
    else
      accumulate(memory, region, how, from, into);
  } else if (into) {
    copy_block(into, at, length);
  } else {
    copy_block(at, from, length);
    unfenced_ = true;
  }
  operation.position = operation.total;
  return true;
}

// Acts on memory that this process reaches. false: only the target may do it, by a message.
bool Window::act_directly(RmaOperation& operation, Target& t, const Region& region) {
  const WindowMemory& memory = *t.memory;
  const bool own = operation.rank == comm_->rank();
  const auto length = static_cast<std::size_t>(region.length);
  if (!region.inside(memory)) {  // dynamic windows
    operation.error = t.error = MPI_ERR_RMA_RANGE;
    return true;
  }
  const Combination how{operation.op, operation.basic};
  if (operation.accumulates() && !own && !how.by_cpu_atomics(memory, region)) return false;
  const Items& result = operation.result;
  const bool in_place = operation.fetches() && result.type->contiguous();
  std::byte* into = nullptr;  // where what is fetched goes, packed
  if (in_place) {
    into = packed_at(result, operation.position);
  } else if (operation.fetches()) {
    unpacked_.resize(length);
    into = unpacked_.data();
  }
  switch (operation.action) {
    case RmaAction::put:
      if (region.strips.empty())
        operation.origin.type->pack(operation.origin.data, operation.position,
                                    {memory.find(region.offset, region.length), length});
      else
        write(memory, region, pack_fragment(operation, region, false).data());
      unfenced_ = true;
      return true;
    case RmaAction::get:
      if (region.strips.empty()) {
        result.type->unpack(const_cast<void*>(result.data), operation.position,
                            {memory.find(region.offset, region.length), length});
        return true;
      }
      read(memory, region, into);
      break;
    case RmaAction::accumulate:
    case RmaAction::get_accumulate:
      accumulate(memory, region, how, pack_fragment(operation, region, false).data(), into);
      break;
    default: compare_and_swap(memory, region, operation.expected_value, operation.swap_value, into);
  }
  if (into && !in_place)
    result.type->unpack(const_cast<void*>(result.data), operation.position, unpacked_);
  return true;
}

// ---- results that come in answers --------------------------------------------------------------

// The entry's number plus 1; made when the first fragment is sent.
std::uint64_t Window::fetch_id(RmaOperation& operation) {
  if (operation.fetch != 0) return operation.fetch;
  std::uint32_t id = free_fetch_;
  if (id == 0) {
    fetches_.emplace_back();
    id = static_cast<std::uint32_t>(fetches_.size());
  } else {
    free_fetch_ = fetches_[id - 1].next_free;
  }
  Fetch& fetch = fetches_[id - 1];
  fetch.rank = operation.rank;
  fetch.into = operation.result;
  fetch.type = Ref<Datatype>(operation.result.type);
  fetch.position = operation.position;
  fetch.total = operation.total;
  fetch.error = MPI_SUCCESS;
  fetch.request = std::move(operation.request);
  return operation.fetch = id;
}

// Answers come in the order of the requests, so each continues where the last one ended.
bool Window::on_answer(int rank, const RmaHead& head, Bytes data) {
  Target& t = target(rank);
  if (head.id == 0 || head.id > fetches_.size() || t.fetches == 0) return false;
  const auto id = static_cast<std::uint32_t>(head.id);
  Fetch& fetch = fetches_[id - 1];
  const bool failed = head.type != MPI_SUCCESS;
  if (fetch.rank != rank || head.length == 0 ||
      head.length > static_cast<std::uint64_t>(fetch.total - fetch.position) ||
      data.size() != (failed ? 0 : head.length))
    return false;
  --t.fetches;
  if (failed)
    fetch.error = t.error = MPI_ERR_RMA_RANGE;
  else
    fetch.type->unpack(const_cast<void*>(fetch.into.data), fetch.position, data);
  fetch.position += static_cast<MPI_Count>(head.length);
  if (fetch.position == fetch.total) end_fetch(id);
  return true;
}

void Window::end_fetch(std::uint32_t id) {
  Fetch& fetch = fetches_[id - 1];
  const Ref<RmaRequest> request = std::exchange(fetch.request, nullptr);
  const int error = fetch.error;
  fetch.rank = -1;
  fetch.type = nullptr;
  fetch.next_free = std::exchange(free_fetch_, id);
  if (!request) return;
  request->error = error;
  request->finish();
}

// ---- long transfers ----------------------------------------------------------------------------

bool Window::send_long(RmaOperation& operation, Target& t) {
  const bool get = is_get(operation.action);
  // Messages of the other process's gets go the same way as those of this one's puts, so they need
  // different tags.
  const std::uint32_t tag = (next_tag_ & (kGetTag - 1)) | (get ? kGetTag : 0);
  RmaHead h = head(get ? RmaAction::get_long : RmaAction::put_long);
  h.id = tag;
  h.offset = operation.offset + operation.target_type->true_lb();
  h.length = static_cast<std::uint64_t>(operation.total);
  if (!Transfer::self().try_send_rma(process(operation.rank), bytes_of(h), {})) return false;
  ++next_tag_;
  operation.position = operation.total;
  if (!get) {
    t.dirty = true;
    ++t.unflushed;
  }
  begin_transfer(operation.rank, true, get, static_cast<int>(tag),
                 get ? operation.result : operation.origin, get ? operation.total : 0,
                 std::exchange(operation.request, nullptr));
  return true;
}

void Window::begin_transfer(int rank, bool origin_side, bool receives, int tag, const Items& items,
                            MPI_Count expected, Ref<RmaRequest> request) {
  ++(origin_side ? target(rank).transfers : origin(rank).transfers);
  const Envelope envelope{comm_.get(), comm_->context(), rank, tag};
  auto transfer = std::make_unique<LongTransfer>(LongTransfer{
      Ref<Window>(this), rank, origin_side, expected, std::move(request),
      receives ? start_receive(items, envelope) : start_send(items, envelope, SendMode::standard)});
  Request& message = *transfer->message;
  if (message.complete) return on_transfer_complete(message, transfer.release());
  message.on_complete = on_transfer_complete;
  message.on_complete_argument = transfer.release();
}

void Window::on_transfer_complete(Request& message, void* argument) {
  const std::unique_ptr<LongTransfer> transfer(static_cast<LongTransfer*>(argument));
  int error = message.error;
  // A target that cannot give the data sends a message without any.
  if (error == MPI_SUCCESS && transfer->expected > 0 &&
      status_bytes(message.status) != transfer->expected)
    error = MPI_ERR_RMA_RANGE;
  transfer->window->transfer_done(*transfer, error);
}

void Window::transfer_done(LongTransfer& transfer, int error) {
  if (!transfer.origin) {
    --origin(transfer.rank).transfers;
    return serve_deferred(transfer.rank);
  }
  Target& t = target(transfer.rank);
  --t.transfers;
  if (error != MPI_SUCCESS) t.error = error;
  if (!transfer.request) return;
  transfer.request->error = error;
  transfer.request->finish();
}

}  // namespace viaduct::mpi
