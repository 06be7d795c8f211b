// The events that point-to-point communication reports to the collective operations, which are a
// layer above. runtime/process.cpp registers the implementation (collective_sink() in
// collective/collective.hpp) with the Transfer, so that this layer does not depend on it.
//
// When ranks disagree about a collective operation, some of them would wait for messages that are
// never sent. Refusals and status queries end such waits: a rank at which an operation fails
// refuses it at all others, and a rank that waits for long sends queries to those it waits for.
#pragma once

#include <cstdint>
#include <functional>

namespace viaduct::mpi {

class MatchQueues;
class Unexpected;
struct Refusal;

// The query "has that operation ended at your end?": if so, no more of its messages will come.
struct StatusQuery {
  std::uint32_t context, number;  // the operation, among those of its communicator
  int tag;  // what the querying process takes the operation for: CollectiveTag
};

// Only the thread that is in the library calls these functions, from inside Transfer::progress() or
// a wait. They may send control messages, and must not wait. `queues` are those of the collective
// context; `process` is a rank in MPI_COMM_WORLD.
class CollectiveSink {
 public:
  // Continues collectives whose messages have completed. Returns whether there were any.
  virtual bool progress() = 0;
  // A message has arrived for which no receive is posted. It may be early, or show that ranks
  // disagree about an operation.
  virtual void on_early_message(MatchQueues& queues, const Unexpected& message) = 0;
  // An operation has failed at another process.
  virtual void on_refusal(MatchQueues& queues, const Refusal& refusal) = 0;
  // Calls visit(process, query) for each message that operations under way wait for, if a query is
  // due: the longer an operation has waited, the rarer its queries are.
  virtual void for_each_status_query(const MatchQueues& queues,
                                     const std::function<void(int, const StatusQuery&)>& visit) = 0;
  // That process has sent a query. Returns whether the answer is that the operation has ended here.
  // If it has failed here, that is told by a refusal instead.
  virtual bool on_status_query(MatchQueues& queues, const StatusQuery& query, int process) = 0;
  // That process has answered that the operation has ended there. The answer is in order behind all
  // messages that it has sent.
  virtual void on_status_ended(MatchQueues& queues, std::uint32_t number, int process) = 0;

 protected:
  ~CollectiveSink() = default;
};

// Ignores all events: for tests of this layer alone.
class NoCollectives final : public CollectiveSink {
 public:
  static CollectiveSink& self() {
    static NoCollectives none;
    return none;
  }

 private:
  bool progress() override { return false; }
  void on_early_message(MatchQueues&, const Unexpected&) override {}
  void on_refusal(MatchQueues&, const Refusal&) override {}
  void for_each_status_query(const MatchQueues&,
                             const std::function<void(int, const StatusQuery&)>&) override {}
  bool on_status_query(MatchQueues&, const StatusQuery&, int) override { return false; }
  void on_status_ended(MatchQueues&, std::uint32_t, int) override {}
};

}  // namespace viaduct::mpi
