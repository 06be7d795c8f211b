// Matching (MPI 5.0, section 3.5): which receive a message belongs to. For each context the
// receives that wait for messages and the messages that wait for receives, both in bins by source
// so that many peers do not make long lists.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "libmpi_lite/transfer/requests.hpp"
#include "libmpi_lite/transfer/wire.hpp"

namespace viaduct::mpi {

// A message that has arrived before its receive.
class Unexpected final : public Message, public Recycled<Unexpected> {
 public:
  using Recycled::operator new;
  using Recycled::operator delete;

  Head head{};
  int peer = 0;
  std::uint64_t send = 0;  // synchronous and announced ones
  std::uint64_t length = 0;
  bool offered = false;
  RemoteKey offer;
  std::unique_ptr<std::byte[]> data;  // eager ones
  int lost = -1;                      // kind loss: the process whose loss it tells
  Ref<Comm> comm;                     // once MPI_Mprobe has taken it

  bool matches(int rank, int tag) const {
    return (rank == MPI_ANY_SOURCE || rank == head.source) &&
           (tag == MPI_ANY_TAG || tag == head.tag);
  }

  Unexpected *next = nullptr, *previous = nullptr;
  std::uint64_t serial = 0;
};

// Doubly linked, first in first out.
template <class T>
class Queue {
 public:
  T* first() const { return first_; }
  bool empty() const { return !first_; }
  void push_back(T* t) {
    t->next = nullptr;
    t->previous = last_;
    (last_ ? last_->next : first_) = t;
    last_ = t;
  }
  void remove(T* t) {
    (t->previous ? t->previous->next : first_) = t->next;
    (t->next ? t->next->previous : last_) = t->previous;
    t->next = t->previous = nullptr;
  }

 private:
  T *first_ = nullptr, *last_ = nullptr;
};

class Collective;

// A process has told that an operation of the communicator has failed there.
struct Refusal {
  std::uint32_t number;  // of the operation, among those of its communicator
  int process, error;
};

class MatchQueues {
 public:
  MatchQueues() = default;
  MatchQueues(const MatchQueues&) = delete;
  MatchQueues& operator=(const MatchQueues&) = delete;
  ~MatchQueues();  // lets go of what never met
  // The oldest posted receive for such a message, no longer posted; or nullptr.
  Ref<ReceiveRequest> match_message(const Head& head) {
    ReceiveRequest* const exact = first_match(posted_[bin(head.source)], head);
    ReceiveRequest* const any = first_match(posted_[kAny], head);
    ReceiveRequest* const r = exact && (!any || exact->serial < any->serial) ? exact : any;
    return r ? take(*r) : nullptr;
  }
  // The oldest message for such a receive; stays.
  Unexpected* find_message(int rank, int tag) const;
  void post(ReceiveRequest& receive);
  // It is posted; the queue gives up its hold.
  Ref<ReceiveRequest> take(ReceiveRequest& posted) {
    posted_[bin_of(posted)].remove(&posted);
    posted.posted = false;
    return Ref<ReceiveRequest>::adopt(&posted);
  }
  // Takes it out, if it is posted.
  void unpost(ReceiveRequest& receive) {
    if (receive.posted) take(receive);
  }
  Unexpected& keep(Ref<Unexpected> message);
  // The queue gives up its hold.
  Ref<Unexpected> take(Unexpected& message);
  // A message of that peer that can still be cancelled.
  Unexpected* find_announced(int peer, std::uint64_t send) const;
  // Write protocol: the oldest that is not wanted of `receive` and those before it that could take
  // its messages.
  ReceiveRequest& first_not_wanted(ReceiveRequest& receive) const;
  bool empty() const;
  bool keeps_messages() const { return kept_ > 0; }
  // Calls visit(message) for the oldest messages that wait here, at most `most` of those that share
  // a bin; it may take the message out.
  template <class Visit>
  void for_oldest_kept(unsigned most, Visit visit) {
    for (Queue<Unexpected>& queue : unexpected_) {
      unsigned n = 0;
      for (Unexpected* m = queue.first(); m && n < most; ++n) {
        Unexpected* next = m->next;
        visit(*m);
        m = next;
      }
    }
  }
  // For each posted receive; `visit` may take it out.
  template <class Visit>
  void for_each_posted(Visit visit) {
    for (Queue<ReceiveRequest>& q : posted_)
      for (ReceiveRequest* r = q.first(); r;) {
        ReceiveRequest* next = r->next;
        visit(*r);
        r = next;
      }
  }

  // For each message that waits for its receive.
  template <class Visit>
  void for_each_message(Visit visit) const {
    for (const Queue<Unexpected>& q : unexpected_)
      for (const Unexpected* m = q.first(); m; m = m->next) visit(*m);
  }

  // Of the context of a communicator's collectives, kept by those: how many have been started,
  // those under way, and those that have failed, here or as others tell, whether
  // they are past or to come.
  std::uint32_t next_collective = 0;
  bool inter = false;  // an intercommunicator's
  Collective* under_way = nullptr;
  std::vector<Refusal> refusals;

 private:
  static constexpr std::size_t kBins = 16;
  static constexpr std::size_t kAny = kBins;  // posted receives from MPI_ANY_SOURCE
  static std::size_t bin(int source) { return static_cast<std::size_t>(source) % kBins; }
  static std::size_t bin_of(const ReceiveRequest& r) {
    return r.rank == MPI_ANY_SOURCE ? kAny : bin(r.rank);
  }
  static ReceiveRequest* first_match(const Queue<ReceiveRequest>& queue, const Head& head) {
    ReceiveRequest* r = queue.first();
    while (r && !r->matches(head.source, head.tag)) r = r->next;
    return r;
  }

  std::array<Queue<ReceiveRequest>, kBins + 1> posted_;
  std::array<Queue<Unexpected>, kBins> unexpected_;
  std::size_t kept_ = 0;  // messages in them
  std::uint64_t serial_ = 0;
};

// All contexts. A context exists from the first message or receive in it on, until its communicator
// goes.
class MatchTable {
 public:
  // nullptr: nothing has happened in that context, or its communicator is gone.
  MatchQueues* known(std::uint32_t context) const {
    const auto found = contexts_.find(context);
    return found == contexts_.end() ? nullptr : found->second.get();
  }
  MatchQueues& operator[](std::uint32_t context) {
    if (context == last_ && last_queues_) [[likely]]
      return *last_queues_;
    return find(context);
  }
  // Unless somebody still waits there.
  void forget(std::uint32_t context);
  // `visit` must not let go of the last hold on a communicator.
  template <class Visit>
  void for_each(Visit visit) {
    for (auto& [context, queues] : contexts_) visit(*queues);
  }

 private:
  MatchQueues& find(std::uint32_t context);

  std::unordered_map<std::uint32_t, std::unique_ptr<MatchQueues>> contexts_;
  std::uint32_t last_ = 0;
  MatchQueues* last_queues_ = nullptr;
};

}  // namespace viaduct::mpi
