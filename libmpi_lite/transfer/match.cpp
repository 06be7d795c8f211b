// The parts of matching that are not in line in match.hpp: searches over several bins, and the
// bookkeeping of the queues. The hot path (match_message) is in the header.
#include "libmpi_lite/transfer/match.hpp"

#include <algorithm>

namespace viaduct::mpi {
namespace {

// Whether some message could satisfy receives with either tag.
bool tags_overlap(int a, int b) {
  return a == MPI_ANY_TAG || b == MPI_ANY_TAG || a == b;
}

}  // namespace

MatchQueues::~MatchQueues() {
  for_each_posted([&](ReceiveRequest& r) { unpost(r); });
  for (Queue<Unexpected>& queue : unexpected_)
    while (!queue.empty()) take(queue.front());
}

Unexpected* MatchQueues::find_message(int rank, int tag) {
  if (rank != MPI_ANY_SOURCE) {
    for (Unexpected& m : unexpected_[bin(rank)])
      if (m.matches(rank, tag)) return &m;
    return nullptr;
  }
  // Each bin is in order of arrival, so the search of a bin ends at its first match, or at a
  // message younger than the best one so far.
  Unexpected* oldest = nullptr;
  for (Queue<Unexpected>& queue : unexpected_)
    for (Unexpected& m : queue) {
      if (oldest && m.serial > oldest->serial) break;
      if (m.matches(rank, tag)) oldest = &m;
    }
  return oldest;
}

void MatchQueues::post(ReceiveRequest& receive) {
  receive.serial = ++serial_;
  receive.posted = true;
  ++silent_;
  posted_[bin_of(receive)].push_back(*Ref(&receive).detach());
}

Unexpected& MatchQueues::queue_unexpected(Ref<Unexpected> message) {
  message->serial = ++serial_;
  ++unexpected_count_;
  Unexpected* const kept = message.detach();
  unexpected_[bin(kept->head.source)].push_back(*kept);
  return *kept;
}

Ref<Unexpected> MatchQueues::take(Unexpected& message) {
  Queue<Unexpected>& queue = unexpected_[bin(message.head.source)];
  queue.erase(queue.iterator_to(message));
  --unexpected_count_;
  return Ref<Unexpected>::adopt(&message);
}

// All bins are searched: a cancellation names the process and not the rank in the communicator.
Unexpected* MatchQueues::find_cancellable(int peer, std::uint64_t sender_id) {
  for (Queue<Unexpected>& queue : unexpected_)
    for (Unexpected& m : queue)
      if (m.peer == peer && m.sender_id == sender_id) return &m;
  return nullptr;
}

// Receives that could take the same messages: those from the same rank, and those from
// MPI_ANY_SOURCE, with a tag that overlaps. Other ranks share the bin, so the rank is compared.
ReceiveRequest& MatchQueues::search_without_rtr(ReceiveRequest& receive) {
  ReceiveRequest* oldest = &receive;
  for (const std::size_t b : {bin(receive.rank), kAny})
    for (ReceiveRequest& r : posted_[b]) {
      if (r.serial >= oldest->serial) break;
      if (!r.asks() && (b == kAny || r.rank == receive.rank) && tags_overlap(r.tag, receive.tag))
        oldest = &r;
    }
  return *oldest;
}

bool MatchQueues::empty() const {
  const auto is_empty = [](const auto& queue) { return queue.empty(); };
  return std::ranges::all_of(posted_, is_empty) && std::ranges::all_of(unexpected_, is_empty);
}

void MatchTable::forget(std::uint32_t context) {
  const auto found = contexts_.find(context);
  if (found == contexts_.end() || !found->second->empty()) return;
  if (last_queues_ == found->second.get()) last_queues_ = nullptr;
  contexts_.erase(found);
}

MatchQueues& MatchTable::find(std::uint32_t context) {
  std::unique_ptr<MatchQueues>& queues = contexts_[context];
  if (!queues) queues = std::make_unique<MatchQueues>();
  last_ = context;
  last_queues_ = queues.get();
  return *last_queues_;
}

}  // namespace viaduct::mpi
