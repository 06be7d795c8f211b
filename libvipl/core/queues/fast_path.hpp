// Completing and taking descriptors: the inlined part of what happens to each descriptor between
// the device and the program. In a header, because the calls in between would cost a third of the
// instructions. What is rare is in work_queue.cpp, cq.cpp and completions.cpp.
//
// All functions but done() need the mutex of the Completions.
#pragma once

#include <array>

#include "libvipl/core/queues/completions.hpp"
#include "libvipl/core/queues/cq.hpp"
#include "libvipl/core/queues/work_queue.hpp"
#include "libvipl/core/vi.hpp"

namespace viaduct::vipl {

// ---- the device has finished ----

inline void WorkQueue::complete(const vi::Completion& completion) {
  const std::uint64_t at = completed_;
  if (at == posted_.load(std::memory_order_acquire)) [[unlikely]]
    return;  // the device reports more than was posted
  if (completion.outcome == vi::Outcome::success) [[likely]]
    succeed(entry(at), completion);
  else
    fail(completion);
  // Descriptors with errors, which the device has not seen, may be the oldest now.
  if (failed_pending_.load(std::memory_order_relaxed) != 0) [[unlikely]]
    complete_failed();
}

inline void WorkQueue::succeed(Entry& it, const vi::Completion& completion) {
  if (receive_) {
    VIP_CONTROL_SEGMENT& control = it.descriptor->CS;
    control.Length = completion.length;
    if (completion.by_rdma_write()) it.status = VIP_STATUS_OP_REMOTE_RDMA_WRITE;
    if (completion.has_immediate()) {
      control.ImmediateData = completion.immediate();
      it.status |= VIP_STATUS_IMMEDIATE;
    }
  }
  finish(it);
}

// Completes the oldest descriptor with the status in its entry.
inline void WorkQueue::finish(const Entry& it) {
  // DONE is written last, with release order: a program may watch Status alone, and then read the
  // rest.
  std::atomic_ref(it.descriptor->CS.Status)
      .store(it.status | VIP_STATUS_DONE, std::memory_order_release);
  count_completed();
}

inline void WorkQueue::count_completed() {
  ++completed_;
  if (cq_ != nullptr) cq_->add(*this);
}

// Work carries its queue's address as its identifier, see WorkQueue::open().
inline WorkQueue& queue_of(const vi::Completion& completion) {
  return *reinterpret_cast<WorkQueue*>(completion.id);
}

[[gnu::always_inline]] inline bool Completions::progress_in_place() {
  std::array<vi::Completion, kBatch> done;  // not cleared
  int n = queue_->poll(kBatch, done.data());
  if (n <= 0) return false;
  const vi::Completion* it = done.data();
  do {
    queue_of(*it).complete(*it);
    // complete_rest_and_wake() goes on from here with the remaining completions.
    if (is_awaited()) [[unlikely]]
      return complete_rest_and_wake(it, n);
    ++it;
  } while (--n != 0);
  return true;
}

// ---- the program takes it ----

inline VIP_RETURN WorkQueue::take_completed(std::uint64_t at, VIP_DESCRIPTOR*& descriptor) {
  const Entry& it = entry(at);
  const std::uint32_t status = it.status;
  descriptor = it.descriptor;
  // From here on a thread that posts may reuse the entry.
  taken_.store(at + 1, std::memory_order_release);
  return (status & VIP_STATUS_ERROR_MASK) != 0 ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS;
}

// VipSendDone, VipRecvDone. If the descriptor has completed already (a CQ entry has told of it),
// nothing is called, so the compiler saves no registers.
inline VIP_RETURN WorkQueue::done(Handle vi, VIP_DESCRIPTOR*& descriptor) {
  Mutex& mutex = completions().mutex();
  if (!mutex.try_lock()) [[unlikely]]
    return done_after_wait(vi, descriptor);
  if (!vi_.is(vi)) [[unlikely]] {
    mutex.unlock();
    return VIP_INVALID_PARAMETER;
  }
  const std::uint64_t at = taken();
  if (at == completed_) return done_by_device(descriptor);
  const VIP_RETURN result = take_completed(at, descriptor);
  mutex.unlock();
  return result;
}

// There must be an entry.
inline void Cq::take_first(VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive) {
  const WorkQueue& queue = *entries_[first_++ & mask_];
  outstanding_.fetch_sub(1, std::memory_order_relaxed);
  vi = queue.vi().program_handle();
  receive = queue.is_receive() ? VIP_TRUE : VIP_FALSE;
}

inline VIP_RETURN Cq::done(Handle cq, VIP_VI_HANDLE& vi, VIP_BOOLEAN& receive) {
  Mutex& mutex = completions_.mutex();
  if (!mutex.try_lock()) [[unlikely]]
    return done_after_wait(cq, vi, receive);
  if (!is(cq)) [[unlikely]] {
    mutex.unlock();
    return VIP_INVALID_PARAMETER;
  }
  if (is_empty()) return done_by_device(vi, receive);
  take_first(vi, receive);
  mutex.unlock();
  return VIP_SUCCESS;
}

}  // namespace viaduct::vipl
