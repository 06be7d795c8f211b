// The send queue or the receive queue of a VI: a ring of descriptors, first in, first out.
//
//      taken_          completed_            posted_
//   ... | done, for the    | with the device    | free ...
//       | program to take  |                    |
//
// Who posts holds post_mutex_; who completes or takes holds the mutex of the Completions the queue
// uses. A descriptor that is wrong, or comes too late, is not shown to the device: its place in the
// ring has the error, and it completes with that when it is the oldest.
#pragma once

#include <atomic>
#include <bit>
#include <memory>
#include <mutex>
#include <type_traits>

#include <vipl.h>

#include "libvipl/core/completions.hpp"
#include "libvipl/core/cq.hpp"
#include "libvipl/core/handlers.hpp"
#include "libvipl/core/slot_table.hpp"
#include "libvipl/core/work_reader.hpp"

namespace viaduct::vipl {

class Vi;

class WorkQueue {
 private:
  struct alignas(32) Place {  // so that none lies in two cache lines
    VIP_DESCRIPTOR* descriptor;
    VIP_MEM_HANDLE memory;
    VIP_MEM_HANDLE data;   // where the data is, see WorkReader
    std::uint32_t status;  // the operation; error bits: it is not with the device, or done
  };

 public:
  // For so many descriptors of so many segments. Made before anything is changed, because there may
  // be no memory (std::bad_alloc).
  class Room {
   public:
    Room(std::uint32_t depth, std::uint32_t segments)
        : depth_(depth),
          places_(std::make_unique<Place[]>(std::bit_ceil(depth))),
          segments_(std::make_unique<vi::Segment[]>(segments)) {}

   private:
    friend class WorkQueue;
    std::uint32_t depth_;
    std::unique_ptr<Place[]> places_;
    std::unique_ptr<vi::Segment[]> segments_;
  };

  WorkQueue(Vi& vi, bool receive) : receive_(receive), vi_(vi) {}
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  Vi& vi() const { return vi_; }
  bool is_receive() const { return receive_; }

  // ---- the program's, by any thread; `vi` is the handle it has ----

  VIP_RETURN post_send(Handle vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory);
  VIP_RETURN post_receive(Handle vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory);
  VIP_RETURN done(Handle vi, VIP_DESCRIPTOR*& descriptor);
  VIP_RETURN wait(Handle vi, Deadline deadline, VIP_DESCRIPTOR*& descriptor);
  VIP_RETURN notify(Handle vi, VIP_PVOID context, VIP_VI_CALLBACK handler);

  // ---- the VI's, with all its locks held ----

  // Where it completes; nullptr: in a completion queue of its own. Before all locks are taken.
  void choose(Cq* cq);
  void use(const PostRules& rules) { reader_.use(rules); }
  // Takes descriptors from now on, as many as there is room for; it is closed or empty.
  void open(Room room);
  // If it completes in a queue of its own: from now on in one of the device; false: the device has
  // no room. And again without, as after open().
  bool open_completions(vi::Device& device, std::chrono::nanoseconds spin);
  void close_completions();
  // What was chosen, and knows of it now.
  void attach(Cq* cq) { cq_ = cq; }
  // Nobody takes what is in it: no handler is called, and descriptors that have not completed are
  // no longer touched, because programs that end free their memory in any order. Open or not.
  void forget();
  // After forget(), when the device no longer knows of it.
  void close();
  Completions& completions() const { return *completions_.load(std::memory_order_acquire); }
  Mutex& post_mutex() { return post_mutex_; }
  bool is_empty() const { return taken_ == posted_; }
  std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  // Whether the device has work that needs this region.
  bool uses(VIP_MEM_HANDLE handle) const;
  // A connection begins: what completes from now on is of it.
  void begin_connection();
  // Descriptors of this connection that have completed and were executed.
  std::uint64_t succeeded() const { return completed_ - first_ - failed_; }
  // ... of a send queue: those that were messages.
  std::uint64_t messages() const;
  // So many messages of this connection have reached the other side: what is flushed of them was
  // executed. (Not what RDMA reads among them have brought.)
  void delivered(std::uint64_t messages);
  // What has not completed completes as flushed. The device has forgotten it.
  void flush();
  // Shows receives that have not completed to the queue pair, which does not know them.
  void post_again();

  // ---- with the mutex of completions() held ----

  bool has_outstanding() const { return completed_ != posted_; }
  // The device has finished with the oldest descriptor.
  void complete(const vi::Completion& completion);
  // Handlers that wait for its descriptors, or for entries of its CQ, get what there is.
  [[gnu::cold]] void make_due_calls();

 private:
  Place& place(std::uint64_t i) const { return ring_[i & mask_]; }

  // Posting. `Work` is vi::SendWork or vi::ReceiveWork.
  template <class Work>
  static constexpr bool kIsReceive = std::is_same_v<Work, vi::ReceiveWork>;
  template <class Work>
  VIP_RETURN post(Handle vi, VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory, Work& work);
  template <class Work>
  bool is_executing() const;
  bool give_to_device(vi::SendWork& work);
  bool give_to_device(vi::ReceiveWork& work);
  [[gnu::cold]] bool is_full();
  [[gnu::cold]] void clip_receive();
  [[gnu::cold]] VIP_RETURN append_bad(std::uint32_t error);
  [[gnu::cold]] void refused(std::uint32_t error);
  void turn_bad(Place& it, std::uint32_t error);
  bool is_there(const Place& it) const;
  bool has_data_in(const Place& it, VIP_MEM_HANDLE handle) const;
  std::uint32_t read_again(const Place& it, vi::ReceiveWork& work, vi::Segment* to) const;

  // Completing, always the oldest that has not completed.
  void succeed(Place& it, const vi::Completion& completion);
  [[gnu::cold]] void fail(const vi::Completion& completion);
  bool is_silent(const Place& it) const;
  void finish_flushed();
  std::uint32_t error_of_failed_receive(vi::Outcome outcome) const;
  void finish(const Place& it);
  void finish_failed(std::uint32_t status);
  void pass();
  [[gnu::cold]] void complete_bad();

  VIP_RETURN take_completed(std::uint64_t at, VIP_DESCRIPTOR*& descriptor);
  VIP_RETURN take_from_device(VIP_DESCRIPTOR*& descriptor);
  VIP_RETURN take(VIP_DESCRIPTOR*& descriptor);
  // done() with the mutex held, which it gives back...
  VIP_RETURN done_by_device(VIP_DESCRIPTOR*& descriptor);
  // ... and where another thread has it.
  [[gnu::cold]] VIP_RETURN done_after_wait(Handle vi, VIP_DESCRIPTOR*& descriptor);
  void cancel_calls();

  // First: so the queue's address is also that of the lock, which is taken for each descriptor.
  Mutex post_mutex_;
  const bool receive_;
  Vi& vi_;
  std::atomic<Completions*> completions_{nullptr};
  Cq* cq_ = nullptr;
  std::unique_ptr<Place[]> ring_;
  std::uint64_t mask_ = 0;
  std::uint64_t depth_ = 0;

  std::uint64_t full_ = 0;  // where posted_ was last known to end
  std::atomic<std::uint64_t> posted_{0};
  // Places with errors that have not completed: behind one, on a reliable VI, nothing is executed.
  std::atomic<std::uint32_t> bad_{0};

  WorkReader reader_;
  // What is being posted; what never changes in it stays.
  vi::SendWork send_work_{};
  vi::ReceiveWork receive_work_{};
  std::unique_ptr<vi::Segment[]> segments_;

  alignas(64) std::uint64_t completed_ = 0;
  std::atomic<std::uint64_t> taken_{0};
  // Of this connection: where it begins, and what was posted and is silent before that; how many
  // have completed without being executed; how far the other side has all.
  std::uint64_t first_ = 0, silent_before_ = 0, failed_ = 0, delivered_end_ = 0;
  Calls calls_;  // handlers that wait for descriptors
  Completions own_;
  VIP_DESCRIPTOR nobodys_{};  // in the place of those that are forgotten
};

}  // namespace viaduct::vipl
