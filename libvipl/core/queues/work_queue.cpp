// Posting, completing and taking descriptors: what is not inlined (fast_path.hpp) and what is rare.
// work_reader.hpp checks descriptors and makes work of them; vi.cpp decides when a queue is flushed
// or posted again.
#include "libvipl/core/queues/work_queue.hpp"

#include <algorithm>
#include <utility>

#include "libvipl/core/queues/failure.hpp"
#include "libvipl/core/queues/fast_path.hpp"
#include "libvipl/core/vi.hpp"

namespace viaduct::vipl {
void WorkQueue::choose(Cq* cq) {
  completions_.store(cq != nullptr ? &cq->completions() : &own_, std::memory_order_release);
}

void WorkQueue::open(Storage storage, const WaitPolicy& policy) {
  own_.wait_by(policy);
  ring_ = std::move(storage.entries_);
  mask_ = std::bit_ceil(storage.depth_) - 1;
  depth_ = storage.depth_;
  full_ = taken_ + depth_;
  segments_ = std::move(storage.segments_);
  reader_.put_segments_at(segments_.get());
  send_work_.segments = receive_work_.segments = segments_.get();
  send_work_.id = receive_work_.id = reinterpret_cast<std::uint64_t>(this);
  close_completions();
}

bool WorkQueue::open_completions(vi::Device& device) {
  if (&completions() != &own_) return true;
  own_.close();  // first: the device may have room for one queue only
  if (own_.open(device, depth_)) return true;
  own_.open_idle();
  return false;
}

void WorkQueue::close_completions() {
  if (&completions() == &own_) own_.open_idle();
}

void WorkQueue::cancel_calls() {
  for (; !calls_.empty(); calls_.pop_front()) completions().remove_waiter();
}

void WorkQueue::forget() {
  cancel_calls();
  for (std::uint64_t at = completed_; at != posted_; ++at) entry(at).descriptor = &dummy_;
}

void WorkQueue::close() {
  if (cq_ != nullptr) cq_->detach(*this, posted_ - completed_);
  cq_ = nullptr;
  completions().wake();
  if (&completions() == &own_) own_.close();
  ring_.reset();
  segments_.reset();
  posted_ = completed_ = taken_ = 0;
  first_ = failed_ = delivered_end_ = 0;
  failed_pending_ = 0;
}

// ---- posting ----

// Counts anew: the program may have taken descriptors since full_ was computed.
bool WorkQueue::is_full() {
  full_ = taken_.load(std::memory_order_acquire) + depth_;
  return posted_.load(std::memory_order_relaxed) == full_;
}

// Whether what is posted now may be executed. Sends need a connection; receives may be posted
// before. Behind a failed descriptor a reliable VI executes nothing.
template <class Work>
bool WorkQueue::is_executing() const {
  const VIP_VI_STATE state = vi_.state();
  return (kIsReceive<Work> ? state != VIP_STATE_ERROR : state == VIP_STATE_CONNECTED) &&
         (failed_pending_.load(std::memory_order_relaxed) == 0 || !vi_.is_reliable());
}

inline bool WorkQueue::give_to_device(vi::SendWork& work) {
  vi::QueuePair* const queue_pair = vi_.queue_pair();
  // Not null: the VI is Connected.
  return queue_pair->post_send(work) == 0;
}

// Without a queue pair the receive stays in the ring, until post_again() gives it to one.
inline bool WorkQueue::give_to_device(vi::ReceiveWork& work) {
  vi::QueuePair* const queue_pair = vi_.queue_pair();
  return queue_pair == nullptr || queue_pair->post_receive(work) == 0;
}

template <class Work>
[[gnu::always_inline]] inline VIP_RETURN WorkQueue::post(Handle vi, VIP_DESCRIPTOR* descriptor,
                                                         VIP_MEM_HANDLE memory, Work& work) {
  const auto address = reinterpret_cast<std::uint64_t>(descriptor);
  if (address % VIP_DESCRIPTOR_ALIGNMENT != 0) [[unlikely]]
    return VIP_INVALID_PARAMETER;
  const std::lock_guard lock(post_mutex_);
  if (!vi_.is(vi)) [[unlikely]]
    return VIP_INVALID_PARAMETER;
  // A descriptor outside registered memory is not touched, not even to write an error into its
  // Status.
  const std::uint64_t room = reader_.room(memory, address);
  if (room < sizeof(VIP_CONTROL_SEGMENT)) [[unlikely]]
    return VIP_INVALID_PARAMETER;
  const std::uint64_t at = posted_.load(std::memory_order_relaxed);
  if (at == full_ && is_full()) [[unlikely]]
    return VIP_ERROR_RESOURCE;
  if (cq_ != nullptr && !cq_->reserve()) [[unlikely]]
    return VIP_ERROR_RESOURCE;

  // The program may post a completed descriptor again as it is, with DONE still set.
  descriptor->CS.Status = 0;
  const auto& kind = kind_of(descriptor->CS.Control, work);
  Entry& it = entry(at);
  it.descriptor = descriptor;
  it.memory = memory;
  it.status = kind.status;
  if (!is_executing<Work>()) [[unlikely]]
    return append_failed(VIP_STATUS_DESC_FLUSHED_ERROR);
  if (const std::uint32_t wrong = reader_.read(*descriptor, room, kind, work, it.data))
      [[unlikely]] {
    if constexpr (kIsReceive<Work>)
      clip_receive();
    else
      return append_failed(wrong);
  }
  // Before the device has it: its completion may be taken by another thread at once.
  posted_.store(posted_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (!give_to_device(work)) [[unlikely]]
    refused(is_executing<Work>() ? VIP_STATUS_TRANSPORT_ERROR : VIP_STATUS_DESC_FLUSHED_ERROR);
  return VIP_SUCCESS;
}

VIP_RETURN WorkQueue::post_send(Handle vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory) {
  return post(vi, descriptor, memory, send_work_);
}

VIP_RETURN WorkQueue::post_receive(Handle vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory) {
  const VIP_RETURN result = post(vi, descriptor, memory, receive_work_);
  // A queue pair that failed meanwhile may have flushed its receives before this one was in it.
  // Soft-RoCE, to which receives are posted without a system call, does not look again by itself;
  // so the queue pair is made to fail once more. The lock that post() has released is the barrier
  // between posting and reading the state.
  if (vi_.state() == VIP_STATE_ERROR) [[unlikely]]
    vi_.fail_again(vi);
  return result;
}

// The entry behind posted_ is filled in, and its contents are wrong somewhere. A message that needs
// less than that is received all the same.
void WorkQueue::clip_receive() {
  Entry& it = entry(posted_);
  const std::uint64_t room =
      reader_.room(it.memory, reinterpret_cast<std::uint64_t>(it.descriptor));
  const auto kind = kind_of(it.descriptor->CS.Control, receive_work_);
  reader_.clip(*it.descriptor, room, kind, receive_work_, it.data);
}

// The entry behind posted_ is filled in, but the device is not to see it.
VIP_RETURN WorkQueue::append_failed(std::uint32_t error) {
  const std::lock_guard completing(completions().mutex());
  mark_failed(entry(posted_++), error);
  return VIP_SUCCESS;
}

// The device refused the last descriptor.
void WorkQueue::refused(std::uint32_t error) {
  const std::lock_guard completing(completions().mutex());
  mark_failed(entry(posted_ - 1), error);
}

// It may be the oldest already.
void WorkQueue::mark_failed(Entry& it, std::uint32_t error) {
  it.status |= error;
  ++failed_pending_;
  complete_failed();
}

void WorkQueue::post_again() {
  for (std::uint64_t at = completed_; at != posted_; ++at) {
    Entry& it = entry(at);
    if ((it.status & VIP_STATUS_ERROR_MASK) != 0) continue;
    read_again(it, receive_work_, segments_.get());
    if (!is_executing<vi::ReceiveWork>())
      mark_failed(it, VIP_STATUS_DESC_FLUSHED_ERROR);
    else if (!give_to_device(receive_work_))
      mark_failed(it, VIP_STATUS_TRANSPORT_ERROR);
  }
}

bool WorkQueue::uses(VIP_MEM_HANDLE handle) const {
  for (std::uint64_t at = completed_; at != posted_; ++at) {
    const Entry& it = entry(at);
    if ((it.status & VIP_STATUS_ERROR_MASK) != 0) continue;  // not with the device
    if (it.memory == handle || it.data == handle) return true;
    if (it.data == kSeveral && has_data_in(it, handle)) return true;
  }
  return false;
}

// Reads the program's segments again, so at most as many as there may be. The address segment of
// RDMA names memory of the other side.
bool WorkQueue::has_data_in(const Entry& it, VIP_MEM_HANDLE handle) const {
  if (!is_there(it)) return false;
  const bool is_rdma = !receive_ && (it.status & VIP_STATUS_OP_MASK) != VIP_STATUS_OP_SEND;
  const VIP_DATA_SEGMENT* const all = &segments_of(*it.descriptor)->Local;
  const std::uint32_t count =
      std::min<std::uint32_t>(it.descriptor->CS.SegCount, reader_.rules().max_segments);
  return std::any_of(
      all + std::min<std::uint32_t>(is_rdma ? 1 : 0, count), all + count,
      [=](const VIP_DATA_SEGMENT& data) { return data.Handle == handle && data.Length != 0; });
}

bool WorkQueue::is_there(const Entry& it) const {
  const Region* const region = reader_.rules().regions->find(it.memory);
  const auto address = reinterpret_cast<std::uint64_t>(it.descriptor);
  return region != nullptr && region->room(address) >= sizeof(VIP_CONTROL_SEGMENT);
}

// Returns 0, or the error bits of a receive that was wrong when it was posted, or whose memory is
// no longer registered. `work` can be given to the device in any case. A reader of its own, because
// another thread may be posting.
std::uint32_t WorkQueue::read_again(const Entry& it, vi::ReceiveWork& work, vi::Segment* to) const {
  WorkReader reader;
  reader.use(reader_.rules());
  reader.put_segments_at(to);
  const auto address = reinterpret_cast<std::uint64_t>(it.descriptor);
  const std::uint64_t room = reader.room(it.memory, address);
  if (room < sizeof(VIP_CONTROL_SEGMENT)) {
    work.count = 0;
    return VIP_STATUS_PROTECTION_ERROR;
  }
  VIP_MEM_HANDLE data = kNowhere;
  const auto kind = kind_of(it.descriptor->CS.Control, work);
  const std::uint32_t wrong = reader.read(*it.descriptor, room, kind, work, data);
  if (wrong != 0) reader.clip(*it.descriptor, room, kind, work, data);
  return wrong;
}

// ---- connections ----

void WorkQueue::begin_connection() {
  first_ = completed_;
  no_receive_count_before_ = reader_.no_receive_count();
  failed_ = delivered_end_ = 0;
}

// Of a descriptor that has not completed.
bool WorkQueue::consumes_no_receive(const Entry& it) const {
  switch (it.status & VIP_STATUS_OP_MASK) {
    case VIP_STATUS_OP_RDMA_READ: return true;
    case VIP_STATUS_OP_RDMA_WRITE:
      return is_there(it) && (it.descriptor->CS.Control & VIP_CONTROL_IMMEDIATE) == 0;
    default: return false;
  }
}

// The reader has counted descriptors that consume no receive when they were posted, so those that
// have not completed are subtracted.
std::uint64_t WorkQueue::messages() const {
  std::uint64_t no_receive = reader_.no_receive_count() - no_receive_count_before_;
  for (std::uint64_t at = completed_; at != posted_; ++at)
    if (consumes_no_receive(entry(at))) --no_receive;
  return succeeded() - no_receive;
}

// Goes from the first descriptor that has not completed forward, until it has counted as many
// messages as the other side.
void WorkQueue::delivered(std::uint64_t messages) {
  std::uint64_t known = this->messages();
  delivered_end_ = completed_;
  for (; known < messages && delivered_end_ != posted_; ++delivered_end_)
    if (!consumes_no_receive(entry(delivered_end_))) ++known;
}

// ---- completing ----

// After an error, programs give back memory before they take the descriptors in it. Then it may not
// even be mapped, so the Status is not written.
void WorkQueue::finish_failed(std::uint32_t status) {
  Entry& it = entry(completed_);
  ++failed_;
  it.status = status;
  if (is_there(it))
    finish(it);
  else
    count_completed();
  if (completions().is_awaited()) make_due_calls();
}

// A completion that is not a success: the device failed the descriptor, or flushed it.
void WorkQueue::fail(const vi::Completion& completion) {
  const std::uint32_t operation = entry(completed_).status & VIP_STATUS_OP_MASK;
  const std::uint32_t error = receive_
                                  ? error_of_failed_receive(completion.outcome)
                                  : error_of_send(completion.outcome, operation, vi_.reliability());
  const bool goes_on = vi_.survives_errors();
  if (goes_on) vi_.request_recovery();
  if (error == VIP_STATUS_DESC_FLUSHED_ERROR) {
    if (goes_on && receive_) return;  // the repaired queue pair gets it again
    vi_.on_flushed();
    return finish_flushed();
  }
  if (goes_on) return finish_failed(operation | error);
  if (receive_)
    // The sender of the message learns of it from its own device.
    vi_.on_cause_reported();
  else
    vi_.on_failed(close_reason_of_send(completion.outcome, operation));
  finish_failed(operation | error);
}

// The device has not executed the descriptor, or does not know that it has: the other side may have
// acknowledged it by `ended`. (On an unreliable VI a send that was flushed completes with success:
// a message may be lost, and the memory is the program's again.)
void WorkQueue::finish_flushed() {
  const std::uint32_t status = entry(completed_).status;
  const bool was_sent = completed_ < delivered_end_ || vi_.survives_errors();
  const bool executed = was_sent && (status & VIP_STATUS_OP_MASK) != VIP_STATUS_OP_RDMA_READ;
  finish_failed(executed ? status : status | VIP_STATUS_DESC_FLUSHED_ERROR);
  if (executed) --failed_;
}

// A message that the receive had no room for. Either it was longer than the whole receive (LENGTH),
// or the device was shown only the right part of a wrong receive; then its own error is what the
// program is told. (Soft-RoCE reports memory that is no longer registered in the same way.)
std::uint32_t WorkQueue::error_of_failed_receive(vi::Outcome outcome) const {
  const std::uint32_t error = error_of_receive(outcome);
  if (error != VIP_STATUS_LENGTH_ERROR) return error;
  vi::ReceiveWork work;
  std::array<vi::Segment, kMaxSegments> segments;
  const std::uint32_t wrong = read_again(entry(completed_), work, segments.data());
  return wrong != 0 ? wrong : error;
}

// Completes failed descriptors as long as the oldest is one. One with a real error, not flushed,
// ends the connection of a reliable VI.
void WorkQueue::complete_failed() {
  bool any = false;
  while (failed_pending_ != 0 && completed_ != posted_) {
    const std::uint32_t status = entry(completed_).status;
    if ((status & VIP_STATUS_ERROR_MASK) == 0) break;
    if ((status & VIP_STATUS_DESC_FLUSHED_ERROR) == 0 && vi_.is_reliable())
      vi_.on_failed(CloseReason::transport);
    finish_failed(status);
    --failed_pending_;
    any = true;
  }
  if (any) completions().wake();
}

void WorkQueue::flush() {
  while (completed_ != posted_) {
    const std::uint32_t status = entry(completed_).status;
    if ((status & VIP_STATUS_ERROR_MASK) != 0)
      finish_failed(status);
    else
      finish_flushed();
  }
  failed_pending_ = 0;
  completions().wake();
}

// ---- taking ----

VIP_RETURN WorkQueue::take(VIP_DESCRIPTOR*& descriptor) {
  if (taken() != completed_) return take_completed(taken(), descriptor);
  return take_from_device(descriptor);
}

inline VIP_RETURN WorkQueue::take_from_device(VIP_DESCRIPTOR*& descriptor) {
  if (is_empty()) return VIP_DESCRIPTOR_ERROR;
  completions().progress_in_place();
  if (taken() == completed_) return VIP_NOT_DONE;  // or a handler has got it
  return take_completed(taken(), descriptor);
}

VIP_RETURN WorkQueue::done_by_device(VIP_DESCRIPTOR*& descriptor) {
  const std::lock_guard lock(completions().mutex(), std::adopt_lock);
  return take_from_device(descriptor);
}

VIP_RETURN WorkQueue::done_after_wait(Handle vi, VIP_DESCRIPTOR*& descriptor) {
  const std::lock_guard lock(completions().mutex());
  return vi_.is(vi) ? take(descriptor) : VIP_INVALID_PARAMETER;
}

VIP_RETURN WorkQueue::wait(Handle vi, Deadline deadline, VIP_DESCRIPTOR*& descriptor) {
  Completions& completions = this->completions();
  std::unique_lock lock(completions.mutex());
  VIP_RETURN result = VIP_NOT_DONE;
  const auto ready = [&] {
    result = vi_.is(vi) ? take(descriptor) : VIP_INVALID_PARAMETER;
    return result != VIP_NOT_DONE;
  };
  return completions.wait(lock, deadline, ready) ? result : VIP_TIMEOUT;
}

VIP_RETURN WorkQueue::notify(Handle vi, VIP_PVOID context, VIP_VI_CALLBACK handler) {
  Calls added{QueueCall{context, handler, nullptr, nullptr, nullptr}};
  Completions& completions = this->completions();
  const std::lock_guard lock(completions.mutex());
  if (!vi_.is_of_this_process(vi)) return VIP_INVALID_PARAMETER;
  QueueCall& call = std::get<QueueCall>(added.front());
  call.vi = vi_.program_handle();
  call.nic = vi_.nic_handle();
  calls_.splice(calls_.end(), added);
  // Before looking: from here on the event thread looks too.
  completions.add_waiter();
  make_due_calls();
  return VIP_SUCCESS;
}

void WorkQueue::make_due_calls() {
  // The CQ's handlers first: an entry says that a descriptor can be taken, and the queue's own
  // handlers take it.
  if (cq_ != nullptr) cq_->make_due_calls();
  while (!calls_.empty() && taken_ != completed_) {
    take(std::get<QueueCall>(calls_.front()).descriptor);
    completions().remove_waiter();
    vi_.handlers().run_first(calls_);
  }
}

}  // namespace viaduct::vipl
