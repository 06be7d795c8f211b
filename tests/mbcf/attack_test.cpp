// Messages that no honest engine sends, and honest ones told twice: counted by reason, answered
// where there is a peer to answer, and nothing outside the exported memory changes.
#include <limits>

#include "tests/mbcf/bed.hpp"

namespace viaduct::mbcf {
namespace {

using link::Lane;
using link::Order;
using link::SendStatus;

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kSize = 4096;   // of the segment under attack...
constexpr std::size_t kPlace = 65'536;  // ... which lies here in the victim's memory
constexpr std::uint32_t kId = 0x00010000;

Lane lane_of(Kind kind) {
  switch (kind) {
    case Kind::answer:
    case Kind::value:
    case Kind::grant:
    case Kind::recall:
    case Kind::gone: return Lane::high;
    case Kind::long_write:
    case Kind::long_more:
    case Kind::long_then:
    case Kind::data: return Lane::bulk;
    default: return Lane::low;
  }
}

// Node 0 is the victim, node 1 the attacker: it knows all keys and speaks to the link directly.
class Attack : public ::testing::Test {
 protected:
  Attack() {
    key = bed[0].engine.export_segment(bed[0].bytes(kPlace, kSize), Rights::all);
    fifo = bed[0].engine.create_fifo(4096);
    signal = bed[0].engine.create_signal([this](std::uint64_t count) { signals += count; });
    bed[0].engine.withdraw(bed[0].all);
    EXPECT_TRUE(bed.run([&] {
      bed[1].link.connect(bed.peer(1, 0), bed.now());
      return bed[1].link.connected(bed.peer(1, 0)) && bed[0].link.connected(bed.peer(0, 1));
    }));
  }
  // As an honest node.
  void restart_attacker() {
    bed.restart(1);
    EXPECT_TRUE(bed.run(
        [&] {
          bed[1].link.connect(bed.peer(1, 0), bed.now());
          return bed[1].link.connected(bed.peer(1, 0));
        },
        std::chrono::seconds{10}));
  }

  void send_on(Lane lane, Order order, std::uint8_t kind, std::span<const std::byte> head,
               std::size_t body = 0) {
    const std::vector<std::byte> bytes(body, std::byte{0xee});
    SendStatus status = SendStatus::try_again;
    ASSERT_TRUE(bed.run([&] {
      status = bed[1].link.try_send(bed.peer(1, 0), lane, order, {link::Protocol::mbcf, kind}, head,
                                    bytes, link::Urgency::now, bed.now());
      return status == SendStatus::sent;
    }));
    ASSERT_TRUE(bed.run([&] { return bed[1].link.idle(); }));
    bed.run_for(std::chrono::microseconds{100});
  }
  template <class... Heads>
  void send(Kind kind, std::size_t body, const Heads&... heads) {
    std::vector<std::byte> all;
    (all.insert(all.end(), bytes_of(heads).begin(), bytes_of(heads).end()), ...);
    send_on(lane_of(kind), Order::ordered, static_cast<std::uint8_t>(kind), all, body);
  }
  void send_silent(Kind kind, std::size_t body, std::uint64_t name, std::uint32_t offset) {
    const SilentTarget target{offset, name};
    send_on(lane_of(kind), Order::ordered, silent_type(kind).kind, bytes_of(target), body);
  }
  std::uint64_t count(Counter c) { return bed[0].count(c); }
  // How often `c` has been counted since the last call.
  std::uint64_t newly_counted(Counter c) {
    const std::uint64_t before = seen[static_cast<std::size_t>(c)];
    return (seen[static_cast<std::size_t>(c)] = count(c)) - before;
  }
  std::size_t written() { return bed[0].written(); }
  std::uint32_t lend(std::uint32_t blocks) {
    send(Kind::want, 0, Want{fifo->key().value, 5, blocks});
    return static_cast<std::uint32_t>(fifo->lent_blocks());
  }

  // Whatever came before, an honest request to the victim still works.
  void TearDown() override {
    const Remote at{bed.peer(1, 0), key, 0};
    const auto run = [&](auto issue) { return bed.complete(1, issue).status; };
    for (Completion c; bed[1].engine.next_completion(c);) continue;
    EXPECT_EQ(run([&] { return bed[1].engine.write(at, bed[1].bytes(0, 3000), {}, bed.now()); }),
              Status::ok);
    EXPECT_EQ(run([&] { return bed[1].engine.read(at, bed[1].bytes(0, 3000), {}, bed.now()); }),
              Status::ok);
  }

  Bed bed;
  Key key, signal;
  Fifo* fifo = nullptr;
  std::uint64_t signals = 0;
  std::array<std::uint64_t, kCounters> seen{};
};

TEST_F(Attack, ForgedAndForeignKeys) {
  for (const std::uint64_t bad : {std::uint64_t{0}, std::uint64_t{1}, kMax, key.value ^ 1u << 16,
                                  key.value ^ std::uint64_t{1} << 63, key.value ^ 1}) {
    send(Kind::write, 8, TargetHead{bad, 0, kId});
    for (const Kind kind : {Kind::write, Kind::append, Kind::signal})
      send_silent(kind, kind == Kind::signal ? 0 : 8, bad, 8);
    send(Kind::write_then, 8, TargetHead{bad, 0, kId}, ThenHead{signal.value, 0, 0, 2, 0, 0});
    send(Kind::write_then, 8, TargetHead{key.value, 0, kId}, ThenHead{bad, 0, 0, 2, 0, 0});
    send(Kind::long_write, 100, TargetHead{bad, 0, kId}, LongHead{1000, 0});
    send(Kind::append, 8, TargetHead{bad, 8, kId});
    send(Kind::read, 0, TargetHead{bad, 0, kId}, LongHead{8, 0});
    send(Kind::atomic, 0, TargetHead{bad, 0, kId}, AtomicHead{1, 0, 1, 8, 0});
    send(Kind::signal, 0, TargetHead{bad, 0, kId});
    send(Kind::want, 0, Want{bad, 5, 1});
    EXPECT_EQ(newly_counted(Counter::refused_no_key), 12u) << bad;
  }
  EXPECT_EQ(written(), 0u);
  EXPECT_EQ(signals, 0u);
  EXPECT_FALSE(fifo->front());
}

TEST_F(Attack, RangesAtEveryEdge) {
  struct {
    std::uint64_t offset, length;
  } const outside[] = {{kSize, 1},      {kSize + 1, 0}, {kSize + 1, 8},    {kMax, 0},
                       {kMax, 1},       {kMax - 7, 8},  {kMax - 6, 8},     {kSize - 7, 8},
                       {1ull << 63, 8}, {0, kSize + 1}, {0, kMax},         {1, kMax},
                       {8, kMax - 7},   {kSize, kMax},  {kMax, kMax},      {kSize - 1, 2},
                       {0 - kSize, 8},  {0 - 8ull, 16}, {0 - 1ull, kSize}, {kSize / 2, kSize}};
  std::uint64_t refused = 0;
  for (const auto& [offset, length] : outside) {
    const auto body = static_cast<std::size_t>(std::min<std::uint64_t>(length, 64));
    if (length <= 64) {
      send(Kind::write, body, TargetHead{key.value, offset, kId});
      send(Kind::write_then, body, TargetHead{key.value, offset, kId},
           ThenHead{signal.value, 0, 0, 2, 0, 0});
      refused += 2;
      if (offset <= std::numeric_limits<std::uint32_t>::max()) {
        send_silent(Kind::write, body, key.value, static_cast<std::uint32_t>(offset));
        ++refused;
      }
    }
    send(Kind::long_write, body, TargetHead{key.value, offset, kId}, LongHead{length, 0});
    send(Kind::read, 0, TargetHead{key.value, offset, kId}, LongHead{length, 0});
    refused += 2;
    if (length == 8) {
      send(Kind::atomic, 0, TargetHead{key.value, offset, kId}, AtomicHead{1, 0, 1, 8, 0});
      send(Kind::write_then, 0, TargetHead{key.value, 0, kId},
           ThenHead{key.value, offset, 1, 3, 8, 0});
      refused += 2;
    }
  }
  send_silent(Kind::write, 8, key.value, std::numeric_limits<std::uint32_t>::max());
  EXPECT_EQ(count(Counter::refused_out_of_range), refused + 1);
  EXPECT_EQ(written(), 0u);
  EXPECT_EQ(signals, 0u);
  // A long write must stay within what its first piece said.
  send(Kind::long_write, 10, TargetHead{key.value, 0, kId}, LongHead{20, 0});
  send(Kind::long_more, 11, StreamHead{kId});
  EXPECT_EQ(newly_counted(Counter::drop_length), 1u);
  EXPECT_EQ(written(), 10u);
  send(Kind::long_more, 10, StreamHead{kId});
  EXPECT_EQ(written(), 20u);
  send(Kind::long_more, 1, StreamHead{kId});
  EXPECT_EQ(newly_counted(Counter::drop_stream), 1u);
  EXPECT_EQ(written(), 20u);
}

TEST_F(Attack, TheLastBytesOfASegmentAreInside) {
  send_silent(Kind::write, 8, key.value, kSize - 8);
  send(Kind::atomic, 0, TargetHead{key.value, kSize - 16, kId}, AtomicHead{~0ull, 0, 0, 8, 0});
  send(Kind::write, 0, TargetHead{key.value, kSize, kId});
  EXPECT_EQ(written(), 16u);
  EXPECT_EQ(bed[0].memory[kPlace + kSize], std::byte{0});
  EXPECT_EQ(count(Counter::refused_out_of_range), 0u);
}

TEST_F(Attack, MisalignedWords) {
  for (std::uint64_t offset = 1; offset < 8; ++offset) {
    send(Kind::atomic, 0, TargetHead{key.value, offset, kId}, AtomicHead{1, 0, 1, 8, 0});
    send(Kind::write_then, 0, TargetHead{key.value, 0, kId},
         ThenHead{key.value, offset, 1, 3, 8, 0});
    EXPECT_EQ(newly_counted(Counter::refused_misaligned), 2u);
  }
  send(Kind::atomic, 0, TargetHead{key.value, 2, kId}, AtomicHead{1, 0, 1, 4, 0});
  EXPECT_EQ(newly_counted(Counter::refused_misaligned), 1u);
  EXPECT_EQ(written(), 0u);
}

TEST_F(Attack, ImpossibleLengthsFieldsKindsAndLanes) {
  const std::vector<std::byte> zeros(64);
  for (std::uint8_t kind = kKinds; kind != 0; ++kind) {
    if (kind >= kSilentKind && may_be_silent(Kind(kind - kSilentKind))) continue;
    send_on(Lane::low, Order::ordered, kind, zeros);
    EXPECT_EQ(newly_counted(Counter::drop_kind), 1u) << int{kind};
  }
  // Cut off within what each kind starts with.
  constexpr std::size_t kSaved = sizeof(TargetHead) - sizeof(SilentTarget);
  const std::size_t heads[kKinds] = {20, 48, 32, 4, 32, 20, 4,  32, 40, 20,
                                     4,  8,  12, 4, 16, 16, 12, 4,  8};
  for (std::uint8_t kind = 0; kind < kKinds; ++kind)
    for (std::size_t size = 0; size < heads[kind]; ++size) {
      send_on(lane_of(Kind{kind}), Order::ordered, kind, std::span(zeros).first(size));
      EXPECT_EQ(newly_counted(Counter::drop_length) + newly_counted(Counter::drop_field), 1u)
          << int{kind} << " of " << size;
      if (!may_be_silent(Kind{kind}) || size >= heads[kind] - kSaved) continue;
      send_on(Lane::low, Order::ordered, silent_type(Kind{kind}).kind,
              std::span(zeros).first(size));
      EXPECT_EQ(newly_counted(Counter::drop_length) + newly_counted(Counter::drop_field), 1u)
          << "silent " << int{kind} << " of " << size;
    }
  for (std::uint8_t kind = 0; kind < kKinds; ++kind) {
    for (const Lane lane : {Lane::high, Lane::low, Lane::bulk}) {
      if (lane == lane_of(Kind{kind}) || (Kind{kind} == Kind::data && lane == Lane::high)) continue;
      send_on(lane, Order::ordered, kind, zeros);
      EXPECT_EQ(newly_counted(Counter::drop_lane), 1u) << int{kind};
    }
    send_on(lane_of(Kind{kind}), Order::unordered, kind, zeros);
    EXPECT_EQ(newly_counted(Counter::drop_lane), 1u) << int{kind};
    if (!may_be_silent(Kind{kind})) continue;
    send_on(Lane::low, Order::unordered, silent_type(Kind{kind}).kind, zeros);
    send_on(Lane::bulk, Order::ordered, silent_type(Kind{kind}).kind, zeros);
    EXPECT_EQ(newly_counted(Counter::drop_lane), 2u) << "silent " << int{kind};
  }
  const TargetHead target{key.value, 0, kId};
  for (const AtomicHead& head :
       {AtomicHead{1, 0, 1, 0, 0}, AtomicHead{1, 0, 1, 2, 0}, AtomicHead{1, 0, 1, 16, 0},
        AtomicHead{1, 0, 3, 8, 0}, AtomicHead{1, 0, 255, 8, 0}, AtomicHead{1, 0, 1, 8, 1}})
    send(Kind::atomic, 0, target, head);
  for (const ThenHead& head :
       {ThenHead{key.value, 0, 1, 0, 8, 0}, ThenHead{key.value, 0, 1, 4, 8, 0},
        ThenHead{key.value, 0, 1, 3, 3, 0}, ThenHead{key.value, 0, 1, 3, 8, 1},
        ThenHead{signal.value, 0, 1, 2, 8, 1}, ThenHead{fifo->key().value, 0, 1, 1, 8, 129}})
    send(Kind::write_then, 200, target, head);
  for (const Kind kind : {Kind::write, Kind::append, Kind::signal})
    send(kind, 0, TargetHead{key.value, 0, kSilent});
  send(Kind::read, 0, TargetHead{key.value, 0, kSilent}, LongHead{8, 0});
  send(Kind::read, 0, target, LongHead{8, 1});
  send(Kind::long_write, 8, TargetHead{key.value, 0, kSilent}, LongHead{80, 0});
  send(Kind::long_write, 8, target, LongHead{80, 2});
  EXPECT_EQ(newly_counted(Counter::drop_field), 19u);
  send(Kind::write_then, 10, target, ThenHead{fifo->key().value, 0, 1, 1, 8, 11});
  send(Kind::long_write, 81, target, LongHead{80, 0});
  EXPECT_EQ(newly_counted(Counter::drop_length), 2u);
  EXPECT_EQ(written(), 0u);
  EXPECT_EQ(signals, 0u);
}

TEST_F(Attack, EntriesWithoutCreditAndLyingOnes) {
  const std::uint64_t name = fifo->key().value;
  send(Kind::append, 8, TargetHead{name, 8, kId});
  send(Kind::append, 0, TargetHead{name, 0, kId});
  send(Kind::write_then, 8, TargetHead{key.value, 0, kId}, ThenHead{name, 0, 0, 1, 0, 8});
  EXPECT_EQ(newly_counted(Counter::refused_no_credit), 3u);
  EXPECT_EQ(written(), 0u) << "nor has the write happened";
  ASSERT_EQ(lend(1), 32u);
  send(Kind::append, 100, TargetHead{name, 4096, kId});
  send(Kind::append, 100, TargetHead{name, 32 * 64 + 1, kId});
  EXPECT_EQ(newly_counted(Counter::refused_no_credit), 2u);
  send(Kind::append, 100, TargetHead{name, 4097, kId});
  send(Kind::append, 100, TargetHead{name, kMax, kId});
  EXPECT_EQ(newly_counted(Counter::refused_too_long), 2u);
  send(Kind::append, 100, TargetHead{name, 99, kId});
  send_silent(Kind::append, 8, name, 7);
  EXPECT_EQ(newly_counted(Counter::drop_length), 2u);
  send_silent(Kind::append, 8, name, 9);
  EXPECT_EQ(newly_counted(Counter::drop_field), 1u) << "long ones cannot be silent on the wire";
  EXPECT_FALSE(fifo->front());
  EXPECT_EQ(fifo->lent_blocks(), 32u);

  send(Kind::append, 100, TargetHead{name, 1000, kId});
  send(Kind::append, 100, TargetHead{name, 1000, kId + 1});  // two at once
  send(Kind::append_more, 100, StreamHead{kId + 1});
  EXPECT_EQ(newly_counted(Counter::drop_stream), 2u);
  send(Kind::append_more, 901, StreamHead{kId});
  EXPECT_EQ(newly_counted(Counter::drop_length), 1u);
  EXPECT_FALSE(fifo->front());
  send(Kind::append_more, 900, StreamHead{kId});
  ASSERT_TRUE(fifo->front());
  EXPECT_EQ(fifo->front()->bytes.size(), 1000u);
  send(Kind::append_more, 0, StreamHead{kId});
  EXPECT_EQ(newly_counted(Counter::drop_stream), 1u);
  fifo->pop();
  EXPECT_FALSE(fifo->front());
}

TEST_F(Attack, ImpossibleCredit) {
  const std::uint64_t name = fifo->key().value;
  send(Kind::give_back, 0, GiveBack{name, 0, 0});  // nobody it has ever heard of
  EXPECT_EQ(newly_counted(Counter::drop_credit), 1u);
  send(Kind::want, 0, Want{name, 5, 65});
  send(Kind::want, 0, Want{name, 5, ~0u});
  EXPECT_EQ(newly_counted(Counter::drop_credit), 2u);
  ASSERT_EQ(lend(1), 32u);
  send(Kind::give_back, 0, GiveBack{name, 33, 0});
  send(Kind::give_back, 0, GiveBack{name, ~0u, 0});
  EXPECT_EQ(newly_counted(Counter::drop_credit), 2u);
  EXPECT_EQ(fifo->lent_blocks(), 32u);
  send(Kind::give_back, 0, GiveBack{name, 32, 5});
  send(Kind::give_back, 0, GiveBack{name, 0, 5});
  EXPECT_EQ(fifo->free_blocks(), 64u);
  // Credit for FIFOs that we do not write to, or from another peer than the owner.
  send(Kind::grant, 0, Grant{0x10001, 1, 64});
  send(Kind::grant, 0, Grant{0, 1, 64});
  send(Kind::recall, 0, StreamHead{~0u});
  send(Kind::gone, 0, Answer{0x10001, 3});
  send(Kind::gone, 0, Answer{0x10001, 0});
  EXPECT_EQ(newly_counted(Counter::drop_credit), 5u);
  // Greedy and often: everything there is, and not more.
  for (int i = 0; i < 50; ++i) lend(64);
  EXPECT_LE(fifo->lent_blocks(), 64u);
}

TEST_F(Attack, AnswersThatNobodyWaitsFor) {
  send(Kind::answer, 0, Answer{0, 0});
  send(Kind::answer, 0, Answer{kId, 0});
  send(Kind::answer, 0, Answer{0xffff, 0});
  send(Kind::answer, 0, Answer{kSilent, 0});
  send(Kind::value, 0, ValueAnswer{0, 7});
  send(Kind::data, 8, StreamHead{0});
  EXPECT_EQ(newly_counted(Counter::drop_answer), 6u);
  send(Kind::answer, 0, Answer{0, kStatuses});
  send(Kind::answer, 0, Answer{0, ~0u});
  EXPECT_EQ(newly_counted(Counter::drop_field), 2u);
}

TEST_F(Attack, FailuresOfSilentRequestsCannotBeMadeUp) {
  for (std::uint32_t i = 0; i < 300; ++i) send(Kind::answer, 0, Answer{kSilent + i, 5});
  EXPECT_EQ(newly_counted(Counter::drop_answer), 300u);
  Completion c;
  EXPECT_FALSE(bed[0].engine.next_completion(c));
  // Nor can a peer say what only this side can know.
  bed[1].link.attach(link::Protocol::mbcf, nullptr);
  const Issued write =
      bed[0].engine.write({bed.peer(0, 1), {1}, 0}, bed[0].bytes(100, 8), {}, bed.now());
  send(Kind::answer, 0, Answer{write.id.value, static_cast<std::uint32_t>(Status::no_room)});
  send(Kind::answer, 0, Answer{write.id.value, static_cast<std::uint32_t>(Status::peer_down)});
  EXPECT_EQ(newly_counted(Counter::drop_field), 2u);
  EXPECT_FALSE(bed[0].engine.next_completion(c));
  restart_attacker();
}

// A broken writer's entries are refused, and it hears of each though the way back is shut for long.
TEST_F(Attack, EachRefusalOfASilentEntryIsTold) {
  bed.net.hook = [&](std::uint32_t port, std::vector<std::byte>&) {
    return port != 0 || bed.now().time_since_epoch() > std::chrono::milliseconds{20};
  };
  for (std::uint32_t sent = 0; sent < 3000;) {
    const SilentTarget head{0, fifo->key().value};
    const bool taken = bed[1].link.try_send(bed.peer(1, 0), Lane::low, Order::ordered,
                                            silent_type(Kind::append), bytes_of(head), {},
                                            link::Urgency::batch, bed.now()) == SendStatus::sent;
    sent += taken;
    if (!taken) bed.run_for(std::chrono::microseconds{20});
  }
  ASSERT_TRUE(bed.run([&] { return count(Counter::refused_no_credit) == 3000; }));
  EXPECT_TRUE(bed.run([&] { return bed[1].count(Counter::drop_answer) == 3000; }));
}

TEST_F(Attack, WrongKindsOfAnswersEndNothing) {
  // The victim reads from the attacker, whose own engine must not answer.
  bed[1].link.attach(link::Protocol::mbcf, nullptr);
  const Issued read =
      bed[0].engine.read({bed.peer(0, 1), {1}, 0}, bed[0].bytes(0, 10), {}, bed.now());
  const Issued write =
      bed[0].engine.write({bed.peer(0, 1), {1}, 0}, bed[0].bytes(100, 8), {}, bed.now());
  const Issued add =
      bed[0].engine.fetch_add({bed.peer(0, 1), {1}, 0}, Width::eight, 1, {}, bed.now());
  const Issued fence = bed[0].engine.fence(bed.peer(0, 1), {}, bed.now());
  send(Kind::answer, 0, Answer{read.id.value, 0});
  send(Kind::answer, 0, Answer{add.id.value, 0});
  send(Kind::answer, 0, Answer{fence.id.value, 3});
  send(Kind::value, 0, ValueAnswer{read.id.value, 1});
  send(Kind::value, 0, ValueAnswer{write.id.value, 1});
  send(Kind::data, 11, StreamHead{read.id.value});
  send(Kind::data, 0, StreamHead{write.id.value});
  EXPECT_EQ(newly_counted(Counter::drop_answer), 7u);
  EXPECT_EQ(written(), 0u);
  Completion c;
  EXPECT_FALSE(bed[0].engine.next_completion(c));
  send(Kind::data, 10, StreamHead{read.id.value});
  send(Kind::answer, 0, Answer{write.id.value, 0});
  send(Kind::value, 0, ValueAnswer{add.id.value, 1});
  send(Kind::answer, 0, Answer{fence.id.value, 0});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(bed[0].engine.next_completion(c));
  // Each once.
  send(Kind::data, 0, StreamHead{read.id.value});
  send(Kind::answer, 0, Answer{write.id.value, 0});
  EXPECT_EQ(newly_counted(Counter::drop_answer), 2u);
  // Give the attacker's engine back for the honest request at the end.
  restart_attacker();
}

TEST_F(Attack, ReplayedFramesActOnce) {
  std::vector<std::vector<std::byte>> frames;
  bed.net.hook = [&](std::uint32_t port, std::vector<std::byte>& frame) {
    if (port == 1) frames.push_back(frame);
    return true;
  };
  const Remote at{bed.peer(1, 0), key, 0};
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(
        bed.complete(1, [&] { return bed[1].engine.fetch_add(at, Width::eight, 1, {}, bed.now()); })
            .status,
        Status::ok);
    EXPECT_EQ(bed.complete(1, [&] { return bed[1].engine.signal(at.peer, signal, {}, bed.now()); })
                  .status,
              Status::ok);
  }
  bed.net.hook = nullptr;
  ASSERT_GE(frames.size(), 20u);
  for (int round = 0; round < 3; ++round)
    for (const auto& frame : frames) {
      bed.net.inject(bed[1].port, frame);
      bed.run_for(std::chrono::microseconds{20});
    }
  EXPECT_EQ(bed[0].word<std::uint64_t>(kPlace), 10u);
  EXPECT_EQ(signals, 10u);
  EXPECT_GE(bed[0].link.counters()[link::Counter::drop_duplicate], 60u);
}

// The last entry of each table's index range, and the one behind it, name nothing.
TEST_F(Attack, ASmallTableHasNothingBehindItsEnd) {
  BedConfig config;
  config.driver.engine.max_keys = 1;
  Bed small(config);
  for (const std::uint64_t slot : {0, 1, 2, 0x7fff, 0xffff}) {
    const Remote at{small.peer(0, 1), {std::uint64_t{77} << 16 | slot}, 0};
    EXPECT_EQ(
        small
            .complete(
                0, [&] { return small[0].engine.write(at, small[0].bytes(0, 8), {}, small.now()); })
            .status,
        Status::no_key);
  }
}

}  // namespace
}  // namespace viaduct::mbcf
