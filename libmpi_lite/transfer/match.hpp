// Matching (MPI 5.0, section 3.5): which receive a message belongs to. Each context has a queue of
// posted receives and a queue of unexpected messages, both split into bins by source so that many
// peers do not make long lists.
//
// The order rules: a message takes the oldest posted receive that accepts it, and a receive takes
// the oldest unexpected message that it accepts. `serial` numbers restore the order across bins.
//
// Ownership: the queues hold a Ref to each object, detached into the links of the object itself, so
// that queueing allocates nothing. take() hands the Ref to the caller. Only the thread that is in
// the library uses the queues.
#pragma once

#include <array>
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "libmpi_lite/channel/copy.hpp"
#include "libmpi_lite/transfer/requests.hpp"
#include "libmpi_lite/transfer/wire.hpp"

namespace viaduct::mpi {

// An unexpected message: it has arrived before its receive was posted. `head.kind` tells what has
// arrived: a whole message (eager), an RTS, or a loss notice.
class Unexpected final : public Message, public Recycled<Unexpected> {
 public:
  using Recycled::operator new;
  using Recycled::operator delete;

  Head head{};
  int peer = 0;                 // the sending process
  std::uint64_t sender_id = 0;  // synchronous messages and RTSs: id of the sender's request; else 0
  std::uint64_t length = 0;     // bytes of the whole message
  bool offered = false;         // RTS: `offer` holds the sender's remote key
  RemoteKey offer;
  int lost = -1;   // loss notices: the lost process; else -1
  Ref<Comm> comm;  // set when MPI_Mprobe takes the message

  // Eager messages: copies the data, which is the whole message.
  void keep(Bytes data) {
    length = data.size();
    if (length > few_.size()) many_.reset(new std::byte[length]);
    copy_data(many_ ? many_.get() : few_.data(), data);
  }
  Bytes data() const { return {many_ ? many_.get() : few_.data(), length}; }

  bool matches(int rank, int tag) const {
    return (rank == MPI_ANY_SOURCE || rank == head.source) &&
           (tag == MPI_ANY_TAG || tag == head.tag);
  }

  QueueHook hook;
  std::uint64_t serial = 0;  // order of arrival, within its context

 private:
  // The data: in `few_`, for which no memory is allocated, or, if it is longer, in `many_`.
  std::array<std::byte, 64> few_;
  std::unique_ptr<std::byte[]> many_;
};

// First in first out. Does not count references.
template <class T>
using Queue = boost::intrusive::list<T, boost::intrusive::member_hook<T, QueueHook, &T::hook>,
                                     boost::intrusive::constant_time_size<false>>;

class Collective;

// A collective operation of the communicator has failed at that process, which may be this one.
struct Refusal {
  std::uint32_t number;  // of the operation, among those of its communicator
  int process, error;    // rank in MPI_COMM_WORLD; error class
};

// The posted receives and unexpected messages of one context.
class MatchQueues {
 public:
  MatchQueues() = default;
  MatchQueues(const MatchQueues&) = delete;
  MatchQueues& operator=(const MatchQueues&) = delete;
  ~MatchQueues();  // releases receives and messages that never met
  // Takes the oldest posted receive that accepts such a message out of the queue; nullptr: none.
  // The candidates are the first match in the bin of the source, and the first match among receives
  // from MPI_ANY_SOURCE; the one that was posted earlier wins.
  Ref<ReceiveRequest> match_message(const Head& head) {
    ReceiveRequest* const exact = first_match(posted_[bin(head.source)], head);
    ReceiveRequest* const any = first_match(posted_[kAny], head);
    ReceiveRequest* const r = exact && (!any || exact->serial < any->serial) ? exact : any;
    return r ? take(*r) : nullptr;
  }
  // The oldest message that a receive with that source and tag accepts; it stays in the queue.
  Unexpected* find_message(int rank, int tag);
  // The queue holds the receive until it is taken.
  void post(ReceiveRequest& receive);
  // The receive must be posted; the caller gets the queue's hold.
  Ref<ReceiveRequest> take(ReceiveRequest& posted) {
    Queue<ReceiveRequest>& queue = posted_[bin_of(posted)];
    queue.erase(queue.iterator_to(posted));
    posted.posted = false;
    if (!posted.asks()) --silent_;
    return Ref<ReceiveRequest>::adopt(&posted);
  }
  // Takes the receive out if it is posted. The caller needs a hold of its own.
  void unpost(ReceiveRequest& receive) {
    if (receive.posted) take(receive);
  }
  // Queues an unexpected message.
  Unexpected& queue_unexpected(Ref<Unexpected> message);
  // The message must be in the queue; the caller gets the queue's hold.
  Ref<Unexpected> take(Unexpected& message);
  // The queued synchronous message or RTS of process `peer` whose request has that id; nullptr:
  // none. It has not matched, so its sender can cancel it.
  Unexpected* find_cancellable(int peer, std::uint64_t sender_id);
  // Write protocol: among `receive` and the older posted receives that could take the same
  // messages, the oldest for which no RTR was sent or is due. `receive` itself must have none
  // either.
  ReceiveRequest& first_without_rtr(ReceiveRequest& receive) {
    return silent_ == 1 ? receive : search_without_rtr(receive);
  }
  // An RTR becomes due for that posted receive, or will not be sent after all.
  void set_rtr_due(ReceiveRequest& receive, bool due) {
    receive.rtr_due = due;
    due ? --silent_ : ++silent_;
  }
  bool empty() const;  // neither receives nor messages
  bool has_unexpected() const { return unexpected_count_ > 0; }
  // Calls visit(message) for the oldest unexpected messages, at most `most` in each bin. `visit`
  // may take that message out, and no other.
  template <class Visit>
  void for_oldest_unexpected(unsigned most, Visit visit) {
    for (Queue<Unexpected>& queue : unexpected_) {
      auto m = queue.begin();
      for (unsigned n = 0; m != queue.end() && n < most; ++n) visit(*m++);
    }
  }
  // Calls visit(receive) for each posted receive. `visit` may take that receive out, and no other.
  template <class Visit>
  void for_each_posted(Visit visit) {
    for (Queue<ReceiveRequest>& q : posted_)
      for (auto r = q.begin(); r != q.end();) visit(*r++);
  }

  // Calls visit(message) for each unexpected message.
  template <class Visit>
  void for_each_message(Visit visit) const {
    for (const Queue<Unexpected>& q : unexpected_)
      for (const Unexpected& m : q) visit(m);
  }

  // State of the collective operations of a communicator, in the queues of its collective context.
  // Only collective/collective_request.cpp uses these fields.
  std::uint32_t next_collective = 0;  // number of the next operation, modulo 2^32
  bool inter = false;                 // the communicator is an intercommunicator
  Collective* under_way = nullptr;    // list of the operations that are not complete, newest first
  std::vector<Refusal> refusals;      // recent and future operations that have failed, here or at
                                      // another process

 private:
  static constexpr std::size_t kBins = 16;
  static constexpr std::size_t kAny = kBins;  // the bin of posted receives from MPI_ANY_SOURCE
  static std::size_t bin(int source) { return static_cast<std::size_t>(source) % kBins; }
  static std::size_t bin_of(const ReceiveRequest& r) {
    return r.rank == MPI_ANY_SOURCE ? kAny : bin(r.rank);
  }
  static ReceiveRequest* first_match(Queue<ReceiveRequest>& queue, const Head& head) {
    for (ReceiveRequest& r : queue)
      if (r.matches(head.source, head.tag)) return &r;
    return nullptr;
  }

  ReceiveRequest& search_without_rtr(ReceiveRequest& receive);

  std::array<Queue<ReceiveRequest>, kBins + 1> posted_;
  std::size_t silent_ = 0;  // receives in posted_ for which no RTR was sent or is due
  std::array<Queue<Unexpected>, kBins> unexpected_;
  std::size_t unexpected_count_ = 0;  // messages in unexpected_
  std::uint64_t serial_ = 0;          // of the last receive or message that was queued
};

// The queues of all contexts. A context gets its queues when the first message arrives or the first
// receive starts in it. It loses them when its communicator is freed. References to MatchQueues
// stay valid until then.
class MatchTable {
 public:
  // nullptr: nothing has happened in that context, or its communicator is gone.
  MatchQueues* known(std::uint32_t context) const {
    const auto found = contexts_.find(context);
    return found == contexts_.end() ? nullptr : found->second.get();
  }
  // Makes the queues if there are none. Most calls name the same context as the call before, so the
  // last answer is kept and spares the look-up.
  MatchQueues& operator[](std::uint32_t context) {
    if (context == last_ && last_queues_) [[likely]]
      return *last_queues_;
    return find(context);
  }
  // Frees the queues, if they are empty. Queues with contents stay until the table goes: another
  // process may still name what is in them.
  void forget(std::uint32_t context);
  // `visit` must not release the last reference to a communicator: that would call forget(), and
  // erase an element under the loop.
  template <class Visit>
  void for_each(Visit visit) {
    for (auto& [context, queues] : contexts_) visit(*queues);
  }

 private:
  MatchQueues& find(std::uint32_t context);

  std::unordered_map<std::uint32_t, std::unique_ptr<MatchQueues>> contexts_;
  std::uint32_t last_ = 0;              // context of last_queues_
  MatchQueues* last_queues_ = nullptr;  // of the last look-up; nullptr: they are gone
};

}  // namespace viaduct::mpi
