// Random sends and receives between three processes, with wildcards, two contexts, all modes and
// all protocols, types with and without gaps, cancels, and messages that cross in every way,
// against the rules of MPI 5.0, section 3.5: messages of one sender do not overtake each other,
// receives take messages in the order in which they were posted, and nothing that could match is
// left over.
#include <gtest/gtest.h>

#include "libmpi_lite/core/data/datatype_builder.hpp"
#include "tests/mpi/transfer/fake_net.hpp"
#include "tests/support/effort.hpp"

namespace viaduct::mpi {
namespace {

constexpr int kProcesses = 3;
constexpr std::size_t kLargest = 80;  // bytes; above FakeNet::kEager messages are long

// Memory of a program: the bytes of a message, one after the other or with gaps between them.
class Memory {
 public:
  Memory() = default;
  Memory(const std::vector<std::byte>& data, bool gaps) : gaps_(gaps), bytes_(data) {
    if (!gaps) return;
    bytes_.assign(2 * data.size(), kGap);
    for (std::size_t i = 0; i < data.size(); ++i) bytes_[2 * i] = data[i];
  }
  Items items() {
    static const Ref<Datatype> spread = make_resized(datatype(MPI_BYTE), 0, 2);
    return {bytes_.data(), static_cast<MPI_Count>(size()),
            gaps_ ? spread.get() : &datatype(MPI_BYTE)};
  }
  std::size_t size() const { return gaps_ ? bytes_.size() / 2 : bytes_.size(); }
  std::vector<std::byte> data() const {
    if (!gaps_) return bytes_;
    std::vector<std::byte> data;
    for (std::size_t i = 0; i < bytes_.size(); i += 2) {
      data.push_back(bytes_[i]);
      EXPECT_EQ(bytes_[i + 1], kGap) << "written into a gap";
    }
    return data;
  }

 private:
  static constexpr std::byte kGap{0xaa};
  bool gaps_ = false;
  std::vector<std::byte> bytes_;
};

struct Sent {
  std::uint32_t context;
  int from, to, tag;
  std::vector<std::byte> data;
  Memory memory;
  Ref<SendRequest> request;
  int received_by = -1;  // index of the receive
};
struct Posted {
  std::uint32_t context;
  int at, source, tag;
  Memory buffer;
  Ref<ReceiveRequest> request;
  int got = -1;  // index of the message
  bool cancel_tried = false;
};

bool accepts(const Posted& r, const Sent& m) {
  return r.context == m.context && r.at == m.to &&
         (r.source == MPI_ANY_SOURCE || r.source == m.from) &&
         (r.tag == MPI_ANY_TAG || r.tag == m.tag);
}

// What happened in all scenarios, to see that what is tested did.
struct Seen {
  std::uint64_t unexpected = 0, writes = 0, empty_writes = 0, written_now = 0, rtrs_missed = 0,
                cancelled_receives = 0, cancelled_sends = 0, truncated = 0;
} seen;

class Scenario {
 public:
  Scenario(std::uint64_t seed, WriteProtocol protocol) : net_(seed, protocol == WriteProtocol::sr) {
    TransferConfig config;
    config.write_protocol = protocol;
    config.eager_budget = 600;  // is exhausted now and then
    config.piece = 32;
    for (int r = 0; r < kProcesses; ++r) {
      processes_.push_back(std::make_unique<Transfer>(
          [&](ChannelSink& sink) {
            std::vector<std::unique_ptr<Channel>> channels;
            channels.push_back(std::make_unique<FakeNet::End>(net_, sink, r));
            return channels;
          },
          [](int) { return 0; }, r, kProcesses, config));
      comms_.push_back(make<Comm>(4u, make<Group>(std::vector{0, 1, 2}, r), nullptr, nullptr));
    }
  }

  void run() {
    const int operations = 10 + static_cast<int>(net_.random() % 60);
    for (int i = 0; i < operations; ++i) {
      act();
      for (auto n = net_.random() % 8; n > 0; --n) progress_one();
    }
    settle();
    drain();
    check();
  }

 private:
  int pick(int n) { return static_cast<int>(net_.random() % static_cast<unsigned>(n)); }
  Envelope envelope(int process, std::uint32_t context, int rank, int tag) {
    return {comms_[static_cast<std::size_t>(process)].get(), context, rank, tag};
  }
  void progress_one() { processes_[static_cast<std::size_t>(pick(kProcesses))]->progress(); }

  void act() {
    switch (pick(10)) {
      case 0: return cancel();
      case 1:
      case 2:
      case 3:
      case 4: return send();
      default: return receive(pick(5) == 0);
    }
  }

  void send() {
    Sent m{.context = 4u + static_cast<unsigned>(pick(2)),
           .from = pick(kProcesses),
           .to = 0,
           .tag = pick(3),
           .data = {},
           .memory = {},
           .request = nullptr};
    m.to = (m.from + 1 + pick(kProcesses - 1)) % kProcesses;
    m.data.resize(net_.random() % kLargest);
    for (std::byte& b : m.data) b = static_cast<std::byte>(net_.random());
    m.memory = Memory(m.data, pick(3) == 0);
    sent_.push_back(std::move(m));
    Sent& kept = sent_.back();
    const SendMode mode = pick(4) == 0 ? SendMode::synchronous : SendMode::standard;
    const Envelope to = envelope(kept.from, kept.context, kept.to, kept.tag);
    Transfer& sender = *processes_[static_cast<std::size_t>(kept.from)];
    kept.request = make<SendRequest>(kept.memory.items(), to, kept.to, mode);
    // As MPI_Isend does it: a request is needed only if the message does not go at once.
    if (sender.send_now(kept.memory.items(), to, mode))
      kept.request->complete = true;
    else
      sender.start(*kept.request);
  }

  void receive(bool wild) {
    Posted r{.context = 4u + static_cast<unsigned>(pick(2)),
             .at = pick(kProcesses),
             .source = MPI_ANY_SOURCE,
             .tag = pick(4),
             .buffer = {},
             .request = nullptr};
    if (!wild) r.source = (r.at + 1 + pick(kProcesses - 1)) % kProcesses;
    if (r.tag == 3) r.tag = MPI_ANY_TAG;
    const std::size_t room = pick(5) == 0 ? net_.random() % kLargest : kLargest;
    r.buffer = Memory(std::vector<std::byte>(room), pick(3) == 0);
    post(std::move(r));
  }
  void post(Posted r) {
    posted_.push_back(std::move(r));
    Posted& kept = posted_.back();
    kept.request = make<ReceiveRequest>(kept.buffer.items(),
                                        envelope(kept.at, kept.context, kept.source, kept.tag),
                                        kept.source < 0 ? -1 : kept.source);
    processes_[static_cast<std::size_t>(kept.at)]->start(*kept.request);
  }

  void cancel() {
    if (pick(2) && !posted_.empty()) {
      Posted& r = posted_[net_.random() % posted_.size()];
      r.cancel_tried = true;
      processes_[static_cast<std::size_t>(r.at)]->cancel(*r.request);
    } else if (!sent_.empty()) {
      Sent& m = sent_[net_.random() % sent_.size()];
      processes_[static_cast<std::size_t>(m.from)]->cancel(*m.request);
    }
  }

  void settle() {
    for (int quiet = 0; quiet < 200; ++quiet) {
      progress_one();
      for (FakeNet::End* end : net_.ends)
        if (!end->quiet()) quiet = 0;
      for (const auto& p : processes_)
        if (p->busy()) quiet = 0;
    }
  }

  // Takes what has not been received by receives from anybody, and takes receives back.
  void drain() {
    for (Posted& r : posted_)
      if (!r.request->complete) {
        r.cancel_tried = true;
        processes_[static_cast<std::size_t>(r.at)]->cancel(*r.request);
      }
    settle();
    const std::size_t messages = sent_.size();
    for (std::size_t i = 0; i < messages; ++i) {
      Sent& m = sent_[i];
      Posted r{.context = m.context,
               .at = m.to,
               .source = m.from,
               .tag = m.tag,
               .buffer = Memory(std::vector<std::byte>(kLargest), pick(2) == 0),
               .request = nullptr};
      MatchQueues& queues = processes_[static_cast<std::size_t>(m.to)]->queues(m.context);
      if (queues.find_message(m.from, m.tag)) post(std::move(r));
    }
    settle();
  }

  // Which message each receive got: by its bytes, which are random, in the order of sending.
  void find_pairs() {
    for (std::size_t i = 0; i < posted_.size(); ++i) {
      Posted& r = posted_[i];
      ASSERT_TRUE(r.request->complete) << "receive " << i << " is still open";
      if (r.request->cancelled) {
        ++seen.cancelled_receives;
        ASSERT_TRUE(r.cancel_tried);
        continue;
      }
      const auto bytes = static_cast<std::size_t>(status_bytes(r.request->status));
      const std::vector<std::byte> arrived = r.buffer.data();
      for (std::size_t k = 0; k < sent_.size() && r.got < 0; ++k) {
        Sent& m = sent_[k];
        if (m.received_by >= 0 || m.request->cancelled || !accepts(r, m) ||
            m.from != r.request->status.MPI_SOURCE || m.tag != r.request->status.MPI_TAG ||
            bytes != std::min(m.data.size(), r.buffer.size()) ||
            (r.request->error == MPI_ERR_TRUNCATE) != (m.data.size() > r.buffer.size()) ||
            (bytes && std::memcmp(m.data.data(), arrived.data(), bytes) != 0))
          continue;
        r.got = static_cast<int>(k);
        m.received_by = static_cast<int>(i);
      }
      seen.truncated += r.request->error == MPI_ERR_TRUNCATE;
      ASSERT_GE(r.got, 0) << "receive " << i << " got what nobody sent";
    }
  }

  void check() {
    find_pairs();
    if (testing::Test::HasFatalFailure()) return;
    for (std::size_t k = 0; k < sent_.size(); ++k) {
      ASSERT_TRUE(sent_[k].request->complete) << "send " << k << " is still open";
      ASSERT_EQ(sent_[k].request->cancelled, sent_[k].received_by < 0) << "message " << k;
      seen.cancelled_sends += sent_[k].request->cancelled;
    }
    for (std::size_t i = 0; i < posted_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) check_order(posted_[j], posted_[i]);
    for (const auto& p : processes_) {
      const TransferCounters& c = p->counters(0);
      ASSERT_EQ(c.malformed, 0u);
      seen.unexpected += c.unexpected;
      seen.writes += c.sent.of(Protocol::write).messages;
      seen.empty_writes += c.sent.by[static_cast<std::size_t>(Protocol::write)][0].messages;
      seen.rtrs_missed += c.rtrs_missed;
    }
    seen.written_now += net_.written_now;
    for (const FakeNet::End* end : net_.ends) {
      ASSERT_EQ(end->left_open(), 0u);
    }
  }

  // `older` was posted before `newer`. What is very short cannot be told apart; the pairs were then
  // made up in order and prove nothing.
  void check_order(const Posted& older, const Posted& newer) {
    if (older.at != newer.at || older.context != newer.context || newer.got < 0) return;
    const Sent& second = sent_[static_cast<std::size_t>(newer.got)];
    if (second.data.size() < 8 || newer.buffer.size() < 8) return;
    if (older.got < 0) return;  // cancelled at some time
    const Sent& first = sent_[static_cast<std::size_t>(older.got)];
    if (first.data.size() < 8 || older.buffer.size() < 8) return;
    if (first.from != second.from) return;
    // If either could have gone to either receive, the first one sent went to the first one posted.
    EXPECT_TRUE(!accepts(older, second) || older.got < newer.got)
        << "a message overtook another of the same sender";
  }

  FakeNet net_;
  std::vector<std::unique_ptr<Transfer>> processes_;
  std::vector<Ref<Comm>> comms_;
  std::deque<Sent> sent_;
  std::deque<Posted> posted_;
};

void run_scenarios(WriteProtocol protocol) {
  define_datatypes();
  seen = {};
  for (std::uint64_t seed = 1; seed <= test::effort(20'000); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Scenario(seed, protocol).run();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(seen.unexpected, 0u);
  EXPECT_GT(seen.cancelled_receives, 0u);
  EXPECT_GT(seen.cancelled_sends, 0u);
  EXPECT_GT(seen.truncated, 0u);
}

TEST(Matching, RandomScenariosKeepTheRules) {
  run_scenarios(WriteProtocol::automatic);
  EXPECT_GT(seen.writes, 0u);
  EXPECT_GT(seen.rtrs_missed, 0u);
  EXPECT_EQ(seen.written_now, 0u);
}

// Messages of all sizes are written into receives.
TEST(Matching, RandomScenariosKeepTheRulesIfAllReceivesAsk) {
  run_scenarios(WriteProtocol::sr);
  EXPECT_GT(seen.writes, seen.written_now);
  EXPECT_GT(seen.written_now, 0u);
  EXPECT_GT(seen.empty_writes, 0u);
  EXPECT_GT(seen.rtrs_missed, 0u);
}

TEST(Matching, RandomScenariosKeepTheRulesIfNoReceiveAsks) {
  run_scenarios(WriteProtocol::nsr);
  EXPECT_EQ(seen.writes + seen.rtrs_missed, 0u);
}

}  // namespace
}  // namespace viaduct::mpi
