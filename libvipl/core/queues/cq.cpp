// VIPL completion queues: making, growing and taking entries. fast_path.hpp has the inlined part of
// VipCQDone; completions.cpp polls the device.
#include "libvipl/core/queues/cq.hpp"

#include <algorithm>
#include <bit>

#include "libvipl/core/nic.hpp"
#include "libvipl/core/queues/fast_path.hpp"
#include "libvipl/core/vi.hpp"

namespace viaduct::vipl {
namespace {

// Never destroyed: programs may use the library in their last static destructor.
Cq::Table& cq_table() {
  static Cq::Table& it = *new Cq::Table;
  return it;
}

}  // namespace

VIP_RETURN Cq::create(const std::shared_ptr<Nic>& nic, std::size_t entries, VIP_CQ_HANDLE& made) {
  if (entries == 0) return VIP_INVALID_PARAMETER;
  if (entries > nic->attributes().MaxCQEntries) return VIP_ERROR_RESOURCE;
  Cq* const cq = cq_table().take();
  if (cq == nullptr) return VIP_ERROR_RESOURCE;
  std::unique_lock lock(cq->completions_.mutex());
  cq->nic_ = nic.get();
  if (!cq->open(*nic, entries)) {
    cq->close();
    lock.unlock();
    cq_table().give_back(*cq);
    return VIP_ERROR_RESOURCE;
  }
  Table::show(*cq);
  made = cq->program_handle();
  return VIP_SUCCESS;
}

VIP_RETURN Cq::destroy(VIP_CQ_HANDLE handle) {
  Cq* const cq = find(handle);
  if (cq == nullptr) return VIP_INVALID_PARAMETER;
  std::unique_lock lock(cq->completions_.mutex());
  if (!cq->is_of_this_process(handle_of(handle))) return VIP_INVALID_PARAMETER;
  if (cq->attached_ != 0) return VIP_ERROR_RESOURCE;
  cq->nic_->remove(*cq);
  cq->end(lock);
  return VIP_SUCCESS;
}

void Cq::reclaim(const Nic& nic) {
  std::unique_lock lock(completions_.mutex());
  if (nic_ == &nic) end(lock);
}

void Cq::end(std::unique_lock<Mutex>& lock) {
  nic_->handlers().forget_cq(program_handle());
  Table::hide(*this);
  close();
  lock.unlock();
  cq_table().give_back(*this);
}

bool Cq::is_of_this_process(Handle cq) const {
  return is(cq) && nic_->is_ours();
}

// Catches std::bad_alloc, because the caller has to give the slot back.
bool Cq::open(Nic& nic, std::size_t entries) {
  try {
    completions_.wait_by(nic.wait_policy());
    if (!completions_.open(nic.device(), entries)) return false;
    make_entries(entries);
    update_capacity();
    return nic.add(*this);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Cq::close() {
  for (; !calls_.empty(); calls_.pop_front()) completions_.remove_waiter();
  completions_.close();
  entries_.reset();
  nic_ = nullptr;
  first_ = end_ = 0;
  outstanding_ = capacity_ = 0;
  attached_ = 0;
}

bool Cq::attach(Handle cq, const Nic& nic) {
  const std::lock_guard lock(completions_.mutex());
  if (!is(cq) || nic_ != &nic) return false;
  ++attached_;
  return true;
}

// Entries of other queues keep their order.
void Cq::detach(const WorkQueue& queue, std::size_t outstanding) {
  std::uint64_t kept = first_;
  for (std::uint64_t i = first_; i != end_; ++i)
    if (entries_[i & mask_] != &queue) entries_[kept++ & mask_] = entries_[i & mask_];
  outstanding_ -= end_ - kept + outstanding;
  end_ = kept;
  --attached_;
}

// ---- room ----

// A ring of the next power of two. Entries keep their numbers, so first_ and end_ stay as they are.
void Cq::make_entries(std::size_t capacity) {
  const std::size_t places = std::bit_ceil(capacity);
  auto larger = std::make_unique<WorkQueue*[]>(places);
  for (std::uint64_t i = first_; i != end_; ++i) larger[i & (places - 1)] = entries_[i & mask_];
  entries_ = std::move(larger);
  mask_ = places - 1;
}

// Room in the device's queue for `outstanding` descriptors. Powers of two, so that growing by one
// descriptor at a time resizes seldom.
bool Cq::make_device_room(std::size_t outstanding) {
  vi::CompletionQueue& queue = completions_.queue();
  if (outstanding <= queue.capacity()) return true;
  const std::size_t most = nic_->attributes().MaxCQEntries;
  if (outstanding > most) return false;
  return queue.resize(std::min(most, std::bit_ceil(outstanding))) &&
         outstanding <= queue.capacity();
}

// Entries that the program has not taken need room in the ring, but not in the device's queue,
// which they have left.
bool Cq::make_room() {
  completions_.progress();
  // After progress(): other threads go on posting, and what they post may complete.
  const std::size_t outstanding = outstanding_;
  try {
    if (outstanding > mask_ + 1) make_entries(2 * outstanding);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (!make_device_room(outstanding - std::min<std::size_t>(outstanding, end_ - first_)))
    return false;
  update_capacity();
  return true;
}

bool Cq::grow() {
  const std::lock_guard lock(completions_.mutex());
  if (make_room()) return true;
  // The descriptor will not be posted.
  --outstanding_;
  return false;
}

VIP_RETURN Cq::resize(Handle cq, std::size_t entries) {
  const std::lock_guard lock(completions_.mutex());
  if (!is_of_this_process(cq) || entries == 0) return VIP_INVALID_PARAMETER;
  if (entries > nic_->attributes().MaxCQEntries) return VIP_ERROR_RESOURCE;
  capacity_ = 0;  // from here on every thread that posts calls grow() and waits for the mutex
  // A smaller size leaves the device's queue as it is: not every device can resize, and programs
  // often ask for what they have.
  vi::CompletionQueue& queue = completions_.queue();
  const bool resized =
      entries >= outstanding_ && (entries <= queue.capacity() || queue.resize(entries));
  if (resized) make_entries(entries);
  update_capacity();
  return resized ? VIP_SUCCESS : VIP_ERROR_RESOURCE;
}

// ---- taking ----

// progress() may have given the new entry to a handler; so the ring is looked at again.
bool Cq::take(VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive) {
  if (is_empty()) completions_.progress();
  if (is_empty()) return false;
  take_first(vi, receive);
  return true;
}

VIP_RETURN Cq::done_after_wait(Handle cq, VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive) {
  const std::lock_guard lock(completions_.mutex());
  if (!is(cq)) return VIP_INVALID_PARAMETER;
  return take(vi, receive) ? VIP_SUCCESS : VIP_NOT_DONE;
}

VIP_RETURN Cq::done_by_device(VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive) {
  const std::lock_guard lock(completions_.mutex(), std::adopt_lock);
  completions_.progress_in_place();
  if (is_empty()) return VIP_NOT_DONE;
  take_first(vi, receive);
  return VIP_SUCCESS;
}

VIP_RETURN Cq::wait(Handle cq, Deadline deadline, VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive) {
  std::unique_lock lock(completions_.mutex());
  bool taken = false;
  const auto ready = [&] {
    taken = is(cq) && take(vi, receive);
    return taken || !is(cq);
  };
  if (!completions_.wait(lock, deadline, ready)) return VIP_TIMEOUT;
  return taken ? VIP_SUCCESS : VIP_INVALID_PARAMETER;
}

// The list node is made before the lock is taken, and only moved afterwards.
VIP_RETURN Cq::notify(Handle cq, VIP_PVOID context, VIP_CQ_CALLBACK handler) {
  Calls added{CqCall{context, handler, nullptr, nullptr, nullptr, VIP_FALSE}};
  const std::lock_guard lock(completions_.mutex());
  if (!is_of_this_process(cq)) return VIP_INVALID_PARAMETER;
  CqCall& call = std::get<CqCall>(added.front());
  call.nic = nic_->handle();
  call.cq = program_handle();
  calls_.splice(calls_.end(), added);
  completions_.add_waiter();
  make_due_calls();
  return VIP_SUCCESS;
}

VIP_RETURN Cq::arm(Handle cq, const Nic& nic) {
  const std::lock_guard lock(completions_.mutex());
  if (!is(cq) || nic_ != &nic) return VIP_INVALID_PARAMETER;
  if (is_empty() && !completions_.arm()) return VIP_ERROR_RESOURCE;
  // arm() takes nothing from a queue that was armed already; then what came before it is an event.
  if (is_empty()) completions_.progress();
  return is_empty() ? VIP_SUCCESS : VIP_NOT_DONE;
}

void Cq::make_due_calls() {
  while (!calls_.empty() && !is_empty()) {
    CqCall& call = std::get<CqCall>(calls_.front());
    take(call.vi, call.receive);
    completions_.remove_waiter();
    nic_->handlers().run_first(calls_);
  }
}

}  // namespace viaduct::vipl
