// What point-to-point communication tells the collective operations, which are above it. They are
// registered with the Transfer (runtime/process.cpp), so that this layer does not know them.
#pragma once

#include <cstdint>
#include <functional>

namespace viaduct::mpi {

class MatchQueues;
class Unexpected;
struct Refusal;

// What a process that has waited for long asks another one: whether it has nothing more to send in
// that operation, which the asking one takes for what the tag says.
struct Question {
  std::uint32_t context, number;
  int tag;
};

// Called by the thread that is in the library.
class CollectiveSink {
 public:
  // Continues collectives whose messages have completed. Whether there were any.
  virtual bool progress() = 0;
  // A message has arrived for which nothing is posted: ranks may disagree about what they are
  // doing.
  virtual void on_early_message(MatchQueues& queues, const Unexpected& message) = 0;
  // Another process has said that an operation fails.
  virtual void on_refusal(MatchQueues& queues, const Refusal& refusal) = 0;
  // Calls visit(process, question) for each message that operations under way wait for; the longer
  // one has waited, the less often.
  virtual void for_each_question(const MatchQueues& queues,
                                 const std::function<void(int, const Question&)>& visit) = 0;
  // Another process asks. Whether the answer is yes.
  virtual bool on_question(MatchQueues& queues, const Question& question, int process) = 0;
  // Another process has answered yes, after all that it had to send.
  virtual void on_ended(MatchQueues& queues, std::uint32_t number, int process) = 0;

 protected:
  ~CollectiveSink() = default;
};

// For a process without collective operations.
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
  void for_each_question(const MatchQueues&,
                         const std::function<void(int, const Question&)>&) override {}
  bool on_question(MatchQueues&, const Question&, int) override { return false; }
  void on_ended(MatchQueues&, std::uint32_t, int) override {}
};

}  // namespace viaduct::mpi
