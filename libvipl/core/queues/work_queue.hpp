// WorkQueue: the send queue or the receive queue of a VI (VI Architecture: a work queue), a ring of
// posted descriptors, first in, first out. Part of a Vi. To post a descriptor is VIA's doorbell: it
// hands the device a work request at once.
//
// The ring and its three counters, which only grow; descriptor number i is at i & mask_:
//
//        taken_          completed_            posted_
//     ... | done, for the    | with the device    | free ...
//         | program to take  |                    |
//
// A descriptor's life on a work queue:
//
//                  VipPostSend, VipPostRecv: post()
//                     |                         |
//    nothing wrong    |                         |  wrong contents; a send without a
//                     v                         |  connection; the VI is in Error; behind a
//           +-------------------+               v  failed one on a reliable VI; refused
//           |  with the device  |          +---------+
//           | (a receive of an  |          | failed  |  the entry has the error bits; the
//           |  Idle VI waits in |          |         |  device does not see the descriptor
//           |  the ring only)   |          +---------+
//           +-------------------+               |
//              |           |                    |
//    complete(), device    | complete(), device | complete_failed(), when it is the oldest;
//    says success          | says failure; or   | an error that is not `flushed` ends the
//              |           | flush(): the       | connection of a reliable VI (on_failed())
//              |           | connection ends    |
//              v           v                    |
//         succeed()    fail(),                  |
//              |       finish_flushed()         |
//              |           |                    |
//              v           v                    v
//           +--------------------------------------------+
//           | completed: VIP_STATUS_DONE, and error bits |--> one entry in the CQ, if any
//           +--------------------------------------------+
//              |                                 |
//              | VipSendDone, VipSendWait, ...   | make_due_calls(): a handler of
//              v                                 v VipSendNotify, VipRecvNotify
//                     the program's again
//
// flush() also completes failed descriptors. A receive that the device flushes on a connected
// unreliable VI does not complete: the repaired queue pair gets it (post_again()).
//
// A receive with wrong contents is posted all the same, clipped to what is right: the error shows
// only if a message needs more than that (clip_receive(), error_of_failed_receive()).
//
// Locks: posting holds post_mutex_; completing and taking hold the mutex of the Completions that
// the queue uses. Both are short, and neither blocks the other, except that a failed descriptor,
// and a CQ that grows, take both.
#pragma once

#include <atomic>
#include <bit>
#include <memory>
#include <mutex>
#include <type_traits>

#include <vipl.h>

#include "libvipl/core/handlers.hpp"
#include "libvipl/core/queues/completions.hpp"
#include "libvipl/core/queues/cq.hpp"
#include "libvipl/core/queues/work_reader.hpp"
#include "libvipl/core/slot_table.hpp"

namespace viaduct::vipl {

class Vi;

class WorkQueue {
 private:
  // An entry of the ring: a posted descriptor, and what this queue needs to remember of it.
  struct alignas(32) Entry {     // so that none lies in two cache lines
    VIP_DESCRIPTOR* descriptor;  // the program's
    VIP_MEM_HANDLE memory;       // of the descriptor itself
    VIP_MEM_HANDLE data;         // of its buffers: a handle, kNowhere or kSeveral
    std::uint32_t status;        // the operation; error bits: it is not with the device, or done
  };

 public:
  // Memory for `depth` descriptors, and for the segments, at most `segments`, of the one that is
  // being posted. Made before the queue is changed, because there may be no memory
  // (std::bad_alloc).
  class Storage {
   public:
    Storage(std::uint32_t depth, std::uint32_t segments)
        : depth_(depth),
          entries_(std::make_unique<Entry[]>(std::bit_ceil(depth))),
          segments_(std::make_unique<vi::Segment[]>(segments)) {}

   private:
    friend class WorkQueue;
    std::uint32_t depth_;
    std::unique_ptr<Entry[]> entries_;
    std::unique_ptr<vi::Segment[]> segments_;
  };

  WorkQueue(Vi& vi, bool receive) : receive_(receive), vi_(vi) {}
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  Vi& vi() const { return vi_; }
  bool is_receive() const { return receive_; }

  // ---- the program's, by any thread; `vi` is the handle it has ----

  // VipPostSend, VipPostRecv, VipSendDone, ... The return codes are those of the VIPL functions;
  // VIP_INVALID_PARAMETER if the object has another handle by now.
  VIP_RETURN post_send(Handle vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory);
  VIP_RETURN post_receive(Handle vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory);
  VIP_RETURN done(Handle vi, VIP_DESCRIPTOR*& descriptor);
  VIP_RETURN wait(Handle vi, Deadline deadline, VIP_DESCRIPTOR*& descriptor);
  VIP_RETURN notify(Handle vi, VIP_PVOID context, VIP_VI_CALLBACK handler);

  // ---- the VI's, with all its locks held ----

  // Where descriptors complete: in this CQ, or (nullptr) in Completions of the queue's own. Called
  // before AllLocks is taken, because it decides which mutex that takes.
  void choose(Cq* cq);
  void use(const PostRules& rules) { reader_.use(rules); }
  // Takes descriptors from now on, as many as there is room for. The queue must be closed or empty.
  void open(Storage storage, const WaitPolicy& policy);
  // Opens the queue's own Completions with a completion queue of the device; no effect if a CQ was
  // chosen. False: the device has no room. close_completions() gives that back.
  bool open_completions(vi::Device& device);
  void close_completions();
  // The CQ that choose() was given has been told of this queue.
  void attach(Cq* cq) { cq_ = cq; }
  // The program destroys the VI: cancels the handlers, and replaces descriptors that have not
  // completed by a dummy, because programs free their memory in any order. Open or not.
  void forget();
  // After forget(), when the device no longer has work of this queue.
  void close();
  Completions& completions() const { return *completions_.load(std::memory_order_acquire); }
  Mutex& post_mutex() { return post_mutex_; }
  bool is_empty() const { return taken_ == posted_; }
  std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  // Whether the device has a descriptor that lies in this region or uses it.
  bool uses(VIP_MEM_HANDLE handle) const;
  // A connection begins: from now on completions count as its messages.
  void begin_connection();
  // Descriptors that have completed in this connection and were executed.
  std::uint64_t succeeded() const { return completed_ - first_ - failed_; }
  // Of a send queue: those among succeeded() that used a receive descriptor of the other side.
  std::uint64_t messages() const;
  // The other side has received so many messages of this connection. If they are flushed now,
  // because their acknowledgements are lost, they complete as executed. (RDMA reads are not
  // counted: their data may not have come back.)
  void delivered(std::uint64_t messages);
  // Completes everything that has not completed as flushed. The device must have forgotten it.
  void flush();
  // Gives receives that have not completed to a queue pair that does not know them.
  void post_again();

  // ---- with the mutex of completions() held ----

  bool has_outstanding() const { return completed_ != posted_; }
  // Completes the oldest descriptor, with which the device has finished.
  void complete(const vi::Completion& completion);
  // Gives completed descriptors to handlers of VipSendNotify or VipRecvNotify, and entries of the
  // CQ to those of VipCQNotify.
  [[gnu::cold]] void make_due_calls();

 private:
  Entry& entry(std::uint64_t i) const { return ring_[i & mask_]; }

  // Posting. `Work` is vi::SendWork or vi::ReceiveWork.
  template <class Work>
  static constexpr bool kIsReceive = std::is_same_v<Work, vi::ReceiveWork>;
  template <class Work>
  VIP_RETURN post(Handle vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory, Work& work);
  template <class Work>
  bool is_executing() const;
  // False: the device refused.
  bool give_to_device(vi::SendWork& work);
  bool give_to_device(vi::ReceiveWork& work);
  [[gnu::cold]] bool is_full();
  // A receive with wrong contents: work for as much as is right.
  [[gnu::cold]] void clip_receive();
  // The descriptor being posted completes with this error when it is the oldest.
  [[gnu::cold]] VIP_RETURN append_failed(std::uint32_t error);
  [[gnu::cold]] void refused(std::uint32_t error);
  void mark_failed(Entry& it, std::uint32_t error);
  // Whether the descriptor's memory is still registered, so that it may be touched.
  bool is_there(const Entry& it) const;
  bool has_data_in(const Entry& it, VIP_MEM_HANDLE handle) const;
  // The work of a receive that was posted earlier, and 0 or the error bits.
  std::uint32_t read_again(const Entry& it, vi::ReceiveWork& work, vi::Segment* to) const;

  // Completing: always the oldest that has not completed. Under the Completions mutex.
  void succeed(Entry& it, const vi::Completion& completion);
  [[gnu::cold]] void fail(const vi::Completion& completion);
  // Whether it uses no receive descriptor of the other side.
  bool consumes_no_receive(const Entry& it) const;
  void finish_flushed();
  std::uint32_t error_of_failed_receive(vi::Outcome outcome) const;
  void finish(const Entry& it);
  void finish_failed(std::uint32_t status);
  // Counts the completion and adds an entry to the CQ.
  void count_completed();
  [[gnu::cold]] void complete_failed();

  // Taking: under the Completions mutex.
  VIP_RETURN take_completed(std::uint64_t at, VIP_DESCRIPTOR*& descriptor);
  VIP_RETURN take_from_device(VIP_DESCRIPTOR*& descriptor);
  VIP_RETURN take(VIP_DESCRIPTOR*& descriptor);
  // The rest of done() when nothing has completed: asks the device. The mutex is held, and is given
  // back.
  VIP_RETURN done_by_device(VIP_DESCRIPTOR*& descriptor);
  // done() when another thread holds the mutex.
  [[gnu::cold]] VIP_RETURN done_after_wait(Handle vi, VIP_DESCRIPTOR*& descriptor);
  void cancel_calls();

  // First, so that the queue's address is also that of the lock: both are needed for each
  // descriptor.
  Mutex post_mutex_;
  const bool receive_;
  Vi& vi_;
  std::atomic<Completions*> completions_{nullptr};  // own_, or those of cq_
  Cq* cq_ = nullptr;                                // the program's completion queue; nullptr: none
  std::unique_ptr<Entry[]> ring_;
  std::uint64_t mask_ = 0;
  std::uint64_t depth_ = 0;  // descriptors posted and not taken, at most

  // The limit of posted_: taken_ + depth_, when it was last looked at.
  std::uint64_t full_ = 0;
  std::atomic<std::uint64_t> posted_{0};
  // Failed descriptors that have not completed. On a reliable VI nothing behind one is executed.
  std::atomic<std::uint32_t> failed_pending_{0};

  WorkReader reader_;
  // Work being posted, filled in anew for each descriptor; what never changes in it stays.
  vi::SendWork send_work_{};
  vi::ReceiveWork receive_work_{};
  std::unique_ptr<vi::Segment[]> segments_;  // of send_work_ or receive_work_

  // On a cache line of its own: it is often another thread that writes it than the one that posts.
  alignas(64) std::uint64_t completed_ = 0;
  std::atomic<std::uint64_t> taken_{0};
  // Of this connection. first_: the first descriptor. no_receive_count_before_: descriptors that
  // consume no receive, posted before it. failed_: completed without being executed.
  // delivered_end_: behind the last descriptor that the other side is known to have executed.
  std::uint64_t first_ = 0, no_receive_count_before_ = 0, failed_ = 0, delivered_end_ = 0;
  Calls calls_;             // handlers that wait for descriptors
  Completions own_;         // used if there is no cq_
  VIP_DESCRIPTOR dummy_{};  // stands in for descriptors that are forgotten
};

}  // namespace viaduct::vipl
