// Every order of steps (of the larger jobs, many orders) of small jobs: two or three processes, a
// few sends, receives and cancels of all kinds, perhaps a process that dies at any point. In each
// end state nothing is left that could still meet, whatever was received is what MPI's rules of
// matching say, and no buffer is left open. So there is no order in which a rendezvous or a Remote
// Write gets stuck.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <unordered_set>

#include "libmpi_lite/core/data/datatype_builder.hpp"
#include "tests/mpi/transfer/step_net.hpp"
#include "tests/support/effort.hpp"

namespace viaduct::mpi::interleavings {
namespace {

constexpr std::uint32_t kContext = 4;
constexpr std::size_t kShort = 8, kLong = 60, kPiece = 32;

// What a process does, in the order of its program.
struct Operation {
  enum class Kind { send, receive, cancel } kind;
  int peer;  // may be MPI_ANY_SOURCE
  int tag;   // may be MPI_ANY_TAG
  std::size_t bytes;
  bool gaps, synchronous;
  std::size_t cancels;  // an operation before it
};
struct Scenario {
  std::vector<std::vector<Operation>> programs;  // by rank
  int dies = -1;                                 // the process that may die at any time
  WriteProtocol protocol = WriteProtocol::automatic;
};

Scenario random_scenario(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const int processes = 2 + (pick(4) == 0);
  Scenario scenario{std::vector<std::vector<Operation>>(static_cast<std::size_t>(processes))};
  // Most sends have receives that could be theirs; the order of both is any.
  const int messages = processes == 2 ? 2 + pick(2) : 2;
  for (int m = 0; m < messages; ++m) {
    const int from = pick(processes), to = (from + 1 + pick(processes - 1)) % processes;
    const int tag = pick(2);
    auto& sender = scenario.programs[static_cast<std::size_t>(from)];
    auto& receiver = scenario.programs[static_cast<std::size_t>(to)];
    sender.push_back(
        {Operation::Kind::send, to, tag, pick(3) ? kLong : kShort, pick(4) == 0, pick(4) == 0, 0});
    receiver.push_back({Operation::Kind::receive, pick(4) ? from : MPI_ANY_SOURCE,
                        pick(4) ? tag : MPI_ANY_TAG, pick(6) ? kLong : kPiece, pick(4) == 0, false,
                        0});
    for (auto* program : {&sender, &receiver})
      if (pick(8) == 0)
        program->push_back(
            {Operation::Kind::cancel, 0, 0, 0, false, false, random() % program->size()});
  }
  if (pick(4) == 0) scenario.dies = pick(processes);
  return scenario;
}

// What happened in all of them, to see that what is tested did.
struct Seen {
  std::uint64_t complete = 0;  // searches
  std::uint64_t ends = 0, writes = 0, rtrs_missed = 0, cancelled = 0, truncated = 0, lost = 0;
} seen;

// One job on its way from the start.
class Job {
 public:
  explicit Job(const Scenario& scenario)
      : scenario_(scenario), net_(scenario.protocol == WriteProtocol::sr) {
    const int size = static_cast<int>(scenario.programs.size());
    TransferConfig config;
    config.write_protocol = scenario.protocol;
    config.piece = kPiece;
    config.eager_budget = 200;
    std::vector<int> everybody;
    for (int rank = 0; rank < size; ++rank) everybody.push_back(rank);
    processes_.resize(everybody.size());
    for (const int rank : everybody) {
      Process& p = process(rank);
      p.comm = make<Comm>(kContext, make<Group>(everybody, rank), nullptr, nullptr);
      p.transfer = std::make_unique<Transfer>(
          [&](ChannelSink& sink) {
            std::vector<std::unique_ptr<Channel>> channels;
            auto end = std::make_unique<StepNet::End>(net_, sink, rank);
            p.end = end.get();
            channels.push_back(std::move(end));
            return channels;
          },
          [](int) { return 0; }, rank, size, config);
    }
  }

  // The steps that can be taken; their order depends on the state alone.
  struct Step {
    enum class Kind { post, hear, move, hear_moved, pump, die, hear_death } kind;
    int rank, from = 0;
  };
  std::vector<Step> steps() const {
    std::vector<Step> steps;
    const int size = static_cast<int>(processes_.size());
    for (int rank = 0; rank < size; ++rank) {
      const Process& p = process(rank);
      if (p.dead) continue;
      if (p.posted.size() < program(rank).size()) steps.push_back({Step::Kind::post, rank});
      for (const int from : p.end->talkers()) steps.push_back({Step::Kind::hear, rank, from});
      if (p.end->transfer_to() >= 0 && !process(p.end->transfer_to()).dead)
        steps.push_back({Step::Kind::move, rank});
      if (p.end->has_moved()) steps.push_back({Step::Kind::hear_moved, rank});
      if ((p.transfer->has_backlog() && p.pumped_at != net_.room_made) ||
          p.transfer->has_due_rtrs())
        steps.push_back({Step::Kind::pump, rank});
      if (scenario_.dies == rank) steps.push_back({Step::Kind::die, rank});
      if (scenario_.dies >= 0 && process(scenario_.dies).dead && !p.knows_death)
        steps.push_back({Step::Kind::hear_death, rank});
    }
    return steps;
  }

  void take(const Step& step) {
    Process& p = process(step.rank);
    switch (step.kind) {
      case Step::Kind::post: return post(step.rank);
      case Step::Kind::hear: return p.end->hear(step.from);
      case Step::Kind::move: return p.end->move();
      case Step::Kind::hear_moved: return p.end->hear_moved();
      case Step::Kind::pump:
        p.pumped_at = net_.room_made;
        return p.end->attempt([&] { return p.transfer->progress(); });
      case Step::Kind::die: p.dead = true; return;
      case Step::Kind::hear_death: p.knows_death = true; return p.end->lose(scenario_.dies);
    }
  }

  // Two ways to the same state have shown each process the same in the same order.
  std::uint64_t state() const {
    std::uint64_t state = 0;
    for (const Process& p : processes_) {
      state = (state ^ p.end->history()) * 0xff51afd7ed558ccdu;
      state ^= state >> 32;
      state += p.dead + 2u * p.knows_death + 4u * (p.pumped_at != net_.room_made);
    }
    return state;
  }

  // Nothing more can happen.
  void check_end() {
    ++seen.ends;
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
      Process& p = processes_[rank];
      if (p.dead) continue;
      ASSERT_FALSE(p.transfer->has_backlog()) << "rank " << rank << " has something left to say";
      ASSERT_EQ(p.transfer->counters(0).malformed, 0u);
      std::size_t open = 0;
      for (const Posted& o : p.posted) {
        check_operation(static_cast<int>(rank), o);
        if (o.receive && !o.receive->complete && o.receive->rtr_sent) ++open;
      }
      ASSERT_EQ(p.end->left_open(), open) << "at rank " << rank;
      seen.writes += p.transfer->counters(0).sent.of(Protocol::write).messages;
      seen.rtrs_missed += p.transfer->counters(0).rtrs_missed;
    }
    for (std::size_t rank = 0; rank < processes_.size(); ++rank)
      check_order(static_cast<int>(rank));
  }

 private:
  struct Posted {
    const Operation* operation;
    std::vector<std::byte> memory;
    Ref<SendRequest> send;
    Ref<ReceiveRequest> receive;
  };
  struct Process {
    Ref<Comm> comm;
    std::unique_ptr<Transfer> transfer;
    StepNet::End* end = nullptr;
    std::deque<Posted> posted;
    std::uint64_t pumped_at = 0;
    bool dead = false, knows_death = false;
  };
  struct Message {
    int from;
    std::size_t number;  // in its sender's program
  };

  Process& process(int rank) { return processes_[static_cast<std::size_t>(rank)]; }
  const Process& process(int rank) const { return processes_[static_cast<std::size_t>(rank)]; }
  const std::vector<Operation>& program(int rank) const {
    return scenario_.programs[static_cast<std::size_t>(rank)];
  }

  void post(int rank) {
    Process& p = process(rank);
    const std::size_t number = p.posted.size();
    const Operation& o = program(rank)[number];
    p.end->note(6000 + number);
    p.posted.push_back({&o, std::vector<std::byte>(2 * o.bytes), nullptr, nullptr});
    Posted& posted = p.posted.back();
    static const Ref<Datatype> spread = make_resized(datatype(MPI_BYTE), 0, 2);
    const Items items{posted.memory.data(), static_cast<MPI_Count>(o.bytes),
                      o.gaps ? spread.get() : &datatype(MPI_BYTE)};
    const Envelope envelope{p.comm.get(), kContext, o.peer, o.tag};
    switch (o.kind) {
      case Operation::Kind::send:
        for (std::size_t i = 0; i < o.bytes; ++i)
          posted.memory[o.gaps ? 2 * i : i] = byte_of(rank, number, i);
        posted.send = make<SendRequest>(items, envelope, o.peer,
                                        o.synchronous ? SendMode::synchronous : SendMode::standard);
        if (scenario_.protocol == WriteProtocol::sr &&
            p.transfer->send_now(items, envelope, posted.send->mode)) {
          posted.send->complete = true;
          return;
        }
        return p.transfer->start(*posted.send);
      case Operation::Kind::receive:
        posted.receive = make<ReceiveRequest>(items, envelope, o.peer < 0 ? -1 : o.peer);
        return p.transfer->start(*posted.receive);
      case Operation::Kind::cancel:
        const Posted& target = p.posted[o.cancels];
        if (target.send && !target.send->complete) p.transfer->cancel(*target.send);
        if (target.receive && !target.receive->complete) p.transfer->cancel(*target.receive);
    }
  }

  // Tells whose message it is.
  static std::byte byte_of(int rank, std::size_t number, std::size_t i) {
    return static_cast<std::byte>(static_cast<std::size_t>(rank) * 80 + number * 16 + i % 16);
  }
  static bool received(const Posted& o) {
    return o.receive && o.receive->complete && !o.receive->cancelled &&
           o.receive->error != MPI_ERR_PROC_ABORTED;
  }
  static Message message_in(const Posted& o) {
    const auto first = static_cast<std::size_t>(o.memory[0]);
    return {static_cast<int>(first / 80), first % 80 / 16};
  }
  static bool accepts(const Operation& receive, int from, const Operation& send) {
    return (receive.peer == MPI_ANY_SOURCE || receive.peer == from) &&
           (receive.tag == MPI_ANY_TAG || receive.tag == send.tag);
  }
  bool may_have_died(int peer) const { return peer < 0 || peer == scenario_.dies; }

  void check_operation(int rank, const Posted& o) {
    const bool death = scenario_.dies >= 0 && process(scenario_.dies).dead;
    if (received(o)) return check_data(rank, o);
    const Request* const request = o.send ? static_cast<const Request*>(o.send.get())
                                          : static_cast<const Request*>(o.receive.get());
    if (!request) return;
    if (request->error == MPI_ERR_PROC_ABORTED) {
      ++seen.lost;
      ASSERT_TRUE(death && may_have_died(o.operation->peer));
      return;
    }
    seen.cancelled += request->cancelled;
    ASSERT_TRUE(request->complete || !death || !may_have_died(o.operation->peer))
        << "rank " << rank << " waits for the dead";
    if (o.receive && !o.receive->complete) check_unmet(rank, o);
    // A send that is not complete has sent an RTS or is synchronous, and no receive is there for
    // it.
    if (!o.send || o.send->complete) return;
    for (const Posted& r : process(o.operation->peer).posted) {
      const bool waits = r.receive && !r.receive->complete;
      ASSERT_FALSE(waits && accepts(*r.operation, rank, *o.operation))
          << "rank " << rank << "'s send and a receive of rank " << o.operation->peer
          << " do not meet";
    }
  }

  // It waits, so no message is there for it: each has been received, was cancelled, or its sender
  // died.
  void check_unmet(int rank, const Posted& waiting) {
    for (int from = 0; from < static_cast<int>(processes_.size()); ++from) {
      if (process(from).dead) continue;
      for (std::size_t n = 0; n < process(from).posted.size(); ++n) {
        const Posted& o = process(from).posted[n];
        if (!o.send || o.operation->peer != rank || o.send->cancelled ||
            !accepts(*waiting.operation, from, *o.operation))
          continue;
        ASSERT_TRUE(is_received(rank, {from, n}))
            << "message " << n << " of rank " << from << " and a receive of rank " << rank
            << " do not meet";
      }
    }
  }
  bool is_received(int rank, Message message) const {
    return std::ranges::any_of(process(rank).posted, [&](const Posted& o) {
      if (!received(o)) return false;
      const Message in = message_in(o);
      return in.from == message.from && in.number == message.number;
    });
  }

  void check_data(int rank, const Posted& o) {
    const Message in = message_in(o);
    ASSERT_LT(static_cast<std::size_t>(in.from), processes_.size());
    ASSERT_LT(in.number, process(in.from).posted.size());
    const Posted& sent = process(in.from).posted[in.number];
    ASSERT_TRUE(sent.send && !sent.send->cancelled && sent.operation->peer == rank);
    ASSERT_TRUE(accepts(*o.operation, in.from, *sent.operation));
    const std::size_t bytes = std::min(o.operation->bytes, sent.operation->bytes);
    ASSERT_EQ(status_bytes(o.receive->status), static_cast<std::int64_t>(bytes));
    const bool truncated = sent.operation->bytes > o.operation->bytes;
    ASSERT_EQ(o.receive->error, truncated ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    seen.truncated += truncated;
    for (std::size_t i = 0; i < o.operation->bytes; ++i)
      ASSERT_EQ(o.memory[o.operation->gaps ? 2 * i : i],
                i < bytes ? byte_of(in.from, in.number, i) : std::byte{});
  }

  // Of two receives that could both take the later one's message, the earlier has an earlier
  // message of that sender, or one of another's, or it was cancelled.
  void check_order(int rank) {
    const Process& p = process(rank);
    if (p.dead) return;
    for (std::size_t later = 0; later < p.posted.size(); ++later) {
      if (!received(p.posted[later])) continue;
      const Message second = message_in(p.posted[later]);
      const Operation& sent = *process(second.from).posted[second.number].operation;
      for (std::size_t n = 0; n < later; ++n) {
        const Posted& earlier = p.posted[n];
        if (!earlier.receive || !accepts(*earlier.operation, second.from, sent)) continue;
        if (!received(earlier)) {
          ASSERT_TRUE(earlier.receive->complete) << "a receive was passed over";
          continue;
        }
        const Message first = message_in(earlier);
        ASSERT_TRUE(first.from != second.from || first.number < second.number)
            << "a message overtook another";
      }
      // And no earlier message that this receive would have taken is left, or was received later.
      for (std::size_t n = 0; n < second.number; ++n) {
        const Posted& before = process(second.from).posted[n];
        if (!before.send || before.operation->peer != rank || before.send->cancelled ||
            !accepts(*p.posted[later].operation, second.from, *before.operation))
          continue;
        ASSERT_TRUE(is_received(rank, {second.from, n}) || process(second.from).dead)
            << "a message was passed over";
      }
    }
  }

  const Scenario& scenario_;
  StepNet net_;
  std::vector<Process> processes_;
};

// Of a job with more states some are left out.
constexpr std::size_t kMaxStates = test::effort(30'000);

// Depth first: each path from the start is taken again up to where it leaves those before it, and
// from there to a state that has been seen or to the end.
class Search {
 public:
  explicit Search(const Scenario& scenario) : scenario_(scenario) {}

  void run() {
    for (open_.push_back({}); !open_.empty() && !testing::Test::HasFailure();) {
      if (seen_.size() > kMaxStates) return;
      std::vector<std::uint8_t> path = std::move(open_.back());
      open_.pop_back();
      follow(std::move(path));
    }
    ++seen.complete;
  }

 private:
  void follow(std::vector<std::uint8_t> path) {
    Job job(scenario_);
    for (const std::uint8_t step : path) job.take(job.steps()[step]);
    while (!testing::Test::HasFailure()) {
      if (!seen_.insert(job.state()).second) return;
      const std::vector<Job::Step> steps = job.steps();
      if (steps.empty()) return job.check_end();
      for (std::uint8_t other = 1; other < steps.size(); ++other) {
        open_.push_back(path);
        open_.back().push_back(other);
      }
      path.push_back(0);
      job.take(steps[0]);
    }
  }

  const Scenario& scenario_;
  std::vector<std::vector<std::uint8_t>> open_;
  std::unordered_set<std::uint64_t> seen_;
};

void search_all(WriteProtocol protocol) {
  define_datatypes();
  seen = {};
  // Of fewer than 20, none loses a process. With fewer states of each, more are tried, so that as
  // many are searched to their end.
  constexpr std::uint64_t kScenarios = std::max<std::uint64_t>(test::effort(50), 30);
  constexpr std::uint64_t kComplete = std::max<std::uint64_t>(test::effort(50) / 3, 6);
  for (std::uint64_t seed = 1; seed <= kScenarios; ++seed) {
    SCOPED_TRACE("scenario " + std::to_string(seed));
    Scenario scenario = random_scenario(seed);
    scenario.protocol = protocol;
    Search(scenario).run();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(seen.complete, kComplete);
  EXPECT_GT(seen.ends, 0u);
  EXPECT_GT(seen.writes, 0u);
  EXPECT_GT(seen.rtrs_missed, 0u);
  EXPECT_GT(seen.cancelled, 0u);
  EXPECT_GT(seen.truncated, 0u);
  EXPECT_GT(seen.lost, 0u);
}

TEST(Interleavings, NoneGetsStuckOrBreaksTheRules) {
  search_all(WriteProtocol::automatic);
}

TEST(Interleavings, NoneGetsStuckOrBreaksTheRulesIfAllReceivesAsk) {
  search_all(WriteProtocol::sr);
}

}  // namespace
}  // namespace viaduct::mpi::interleavings
