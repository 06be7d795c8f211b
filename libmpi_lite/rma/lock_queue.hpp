// The lock of a window at one target: who holds it, and who waits for it. First come, first served,
// so no origin waits for ever. A pure data structure: the caller tells the origins.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

namespace viaduct::mpi {

class LockQueue {
 public:
  // Calls grant(rank) for each origin that has got the lock by this call. Each origin may ask once
  // before it releases the lock.
  template <class Grant>
  void request(int rank, bool exclusive, Grant grant) {
    waiting_.push_back({rank, exclusive});
    serve(grant);
  }
  // The origin gives the lock back, or takes its request back, or is lost.
  template <class Grant>
  void release(int rank, Grant grant) {
    std::erase(holders_, rank);
    std::erase_if(waiting_, [&](const Request& request) { return request.rank == rank; });
    if (holders_.empty()) exclusive_ = false;
    serve(grant);
  }
  bool knows(int rank) const {
    return std::ranges::find(holders_, rank) != holders_.end() ||
           std::ranges::find(waiting_, rank, &Request::rank) != waiting_.end();
  }

 private:
  struct Request {
    int rank;
    bool exclusive;
  };
  template <class Grant>
  void serve(Grant grant) {
    while (!waiting_.empty() && !exclusive_ && (holders_.empty() || !waiting_.front().exclusive)) {
      const Request next = waiting_.front();
      waiting_.pop_front();
      holders_.push_back(next.rank);
      exclusive_ = next.exclusive;
      grant(next.rank);
    }
  }

  std::vector<int> holders_;  // several share it; one has it alone if exclusive_
  bool exclusive_ = false;
  std::deque<Request> waiting_;
};

}  // namespace viaduct::mpi
