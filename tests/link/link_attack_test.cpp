// Frames nobody honest sends: malformed, truncated, replayed, forged, foreign. Each is counted
// under its reason and changes nothing.
#include <gtest/gtest.h>

#include <random>

#include "drivers/link/crc32c.hpp"
#include "tests/link/sim_world.hpp"

namespace viaduct::link::test {
namespace {

using Bytes = std::vector<std::byte>;

FrameHeader& header_of(Bytes& frame) {
  return *reinterpret_cast<FrameHeader*>(frame.data());
}

Bytes sealed(Bytes frame, std::uint32_t seed) {
  FrameHeader& header = header_of(frame);
  header.checksum = frame_checksum(
      header, crc32c(frame.data() + kFrameHeader, header.length, route_checksum(header, seed)));
  return frame;
}

struct LinkAttack : ::testing::Test {
  World world;
  Node& a = world.add();
  Node& b = world.add();
  SimPort& mallory = world.net.add_port();
  std::vector<Bytes> recorded;  // what a has sent to b
  std::uint32_t seed = 0;       // of their checksums
  int delivered = 0;
  PeerId peer;

  LinkAttack() {
    world.net.hook = [this](std::uint32_t port, Bytes& bytes) {
      if (port == 0) recorded.push_back(bytes);
      if (port == 1 && type_of(bytes) == FrameType::welcome)
        std::memcpy(&seed, bytes.data() + kFrameHeader + offsetof(Handshake, seed), sizeof seed);
      return true;
    };
    b.sink.message = [this](const Incoming&) { return ++delivered, Verdict::taken; };
    peer = a.link->peer(b.address());
    send_text(a, peer, "an honest message", world.net.now());
    EXPECT_TRUE(world.run_until([this] { return a.link->idle() && delivered == 1; }, seconds{1}));
  }
  static FrameType type_of(Bytes& frame) {
    return static_cast<FrameType>(header_of(frame).version_type & 15);
  }
  // With the checksum that b expects.
  Bytes sealed(const Bytes& frame) const { return test::sealed(frame, seed); }
  Bytes last(FrameType type) {
    for (auto f = recorded.rbegin(); f != recorded.rend(); ++f)
      if (type_of(*f) == type) return *f;
    ADD_FAILURE() << "no such frame was sent";
    return Bytes(kFrameHeader);
  }
  // What b's counters say of one injected frame; everything else must stay as it was.
  void expect_dropped(Bytes frame, Counter reason) {
    const auto before = b.link->counters();
    const auto ups = before[Counter::peers_up], downs = before[Counter::peers_down];
    world.net.inject(mallory, std::move(frame));
    world.run(microseconds{200});
    const auto& after = b.link->counters();
    EXPECT_EQ(after[reason] - before[reason], 1u)
        << kCounterInfo[static_cast<std::size_t>(reason)].name;
    EXPECT_EQ(after.drops() - before.drops(), 1u);
    EXPECT_EQ(after[Counter::peers_up], ups);
    EXPECT_EQ(after[Counter::peers_down], downs);
    EXPECT_EQ(delivered, 1);
  }
  ~LinkAttack() override {  // after any attack the connection still works
    delivered = 0;
    send_text(a, peer, "still here", world.net.now());
    EXPECT_TRUE(world.run_until([this] { return delivered == 1; }, seconds{1}));
    world.net.hook = nullptr;  // `recorded` dies before the links say goodbye
  }
};

TEST_F(LinkAttack, HeadersThatLie) {
  const Bytes good = last(FrameType::data);
  Bytes f = good;
  header_of(f).ether_type = 0x0008;
  expect_dropped(f, Counter::drop_foreign);
  f = good;
  f.resize(20);
  expect_dropped(f, Counter::drop_length);
  f = good;
  f.resize(kFrameHeader + 3);
  expect_dropped(f, Counter::drop_length);
  f = good;
  header_of(f).length = 0xffff;
  expect_dropped(f, Counter::drop_length);
  f = good;
  header_of(f).version_type = (kVersion - 1) << 4 | 1;
  expect_dropped(f, Counter::drop_version);
  f = good;
  header_of(f).lane_flags |= 0x80;
  expect_dropped(f, Counter::drop_type);
  f = good;
  header_of(f).version_type = kVersion << 4 | 9;
  expect_dropped(sealed(f), Counter::drop_type);
  f = good;
  header_of(f).lane_flags |= 3;
  expect_dropped(sealed(f), Counter::drop_type);
  f = good;
  header_of(f).checksum ^= 1;
  expect_dropped(f, Counter::drop_checksum);
  f = good;
  f[kFrameHeader + 5] ^= std::byte{1};
  expect_dropped(f, Counter::drop_checksum);
}

TEST_F(LinkAttack, GuessesAndReplays) {
  Bytes f = last(FrameType::data);
  expect_dropped(f, Counter::drop_duplicate);  // replayed as it was
  Bytes guess = f;
  header_of(guess).token ^= 1;
  header_of(guess).sequence += 1;
  expect_dropped(sealed(guess), Counter::drop_token);
  guess = f;
  header_of(guess).from[5] ^= 1;  // the right token from the wrong place
  header_of(guess).sequence += 1;
  expect_dropped(sealed(guess), Counter::drop_token);
  for (const std::uint16_t connection : {0, 2, 0x7fff, 0xffff}) {
    guess = f;
    header_of(guess).connection = connection;
    expect_dropped(sealed(guess), Counter::drop_incarnation);
  }
  // The right token, if it is guessed, is not enough.
  guess = f;
  header_of(guess).sequence += 1;
  for (const std::uint32_t guessed : {0u, seed ^ 1, ~seed})
    expect_dropped(test::sealed(guess, guessed), Counter::drop_checksum);
  Bytes goodbye(kFrameHeader);
  std::memcpy(goodbye.data(), f.data(), kFrameHeader);
  header_of(goodbye).version_type = kVersion << 4 | static_cast<int>(FrameType::goodbye);
  header_of(goodbye).length = 0;
  header_of(goodbye).lane_flags = 0;
  header_of(goodbye).token ^= 0x100;
  expect_dropped(sealed(goodbye), Counter::drop_token);
}

TEST_F(LinkAttack, SequencesOutOfReach) {
  Bytes f = last(FrameType::data);
  for (const std::uint32_t ahead : {600u, 0x7fffffffu}) {
    Bytes far = f;
    header_of(far).sequence += ahead;
    expect_dropped(sealed(far), Counter::drop_credit);
  }
  Bytes past = f;
  header_of(past).sequence -= 1000;
  expect_dropped(sealed(past), Counter::drop_duplicate);
}

TEST_F(LinkAttack, AcknowledgementsOfWhatWasNeverSent) {
  Bytes f = last(FrameType::data);
  Bytes ack(kFrameHeader + sizeof(AckBlock) + 8);
  std::memcpy(ack.data(), f.data(), kFrameHeader);
  header_of(ack).version_type = kVersion << 4 | static_cast<int>(FrameType::ack);
  header_of(ack).lane_flags = 0;
  header_of(ack).length = sizeof(AckBlock) + 8;
  AckBlock block{};
  const auto with = [&](const AckBlock& changed, std::uint64_t bitmap) {
    header_of(ack).length = static_cast<std::uint16_t>(sizeof(AckBlock) + (changed.words ? 8 : 0));
    std::memcpy(ack.data() + kFrameHeader, &changed, sizeof(changed));
    std::memcpy(ack.data() + kFrameHeader + sizeof(changed), &bitmap, 8);
    return sealed(ack);
  };
  block.ack = header_of(f).ack + 100;  // of lane 1, where b has sent nothing
  block.credit = 1;
  block.lane_flags = 1;
  block.words = 1;
  expect_dropped(with(block, 1), Counter::drop_ack);
  block.ack = header_of(f).ack;
  expect_dropped(with(block, 1), Counter::drop_ack);  // a frame that has not been sent
  block.words = 0;
  for (const std::size_t credit : {std::size_t{kMaxWindow} + 1, std::size_t{UINT16_MAX}}) {
    block.credit = static_cast<std::uint16_t>(credit);
    expect_dropped(with(block, 0), Counter::drop_ack);
  }
  block.credit = 2;
  for (const std::uint8_t lane_flags : {3, 7, 0x11, 0x81}) {
    block.lane_flags = lane_flags;
    expect_dropped(with(block, 0), Counter::drop_ack);
  }
  block.lane_flags = 1;
  block.words = 1;
  expect_dropped(with(block, std::uint64_t{1} << 63), Counter::drop_ack);
  block.words = 200;
  expect_dropped(with(block, 1), Counter::drop_ack);
  header_of(ack).length = 5;
  expect_dropped(sealed(ack), Counter::drop_length);
}

TEST_F(LinkAttack, HandshakesWithImpossibleValues) {
  const Bytes good = recorded.front();
  ASSERT_EQ(header_of(const_cast<Bytes&>(good)).version_type & 15,
            static_cast<int>(FrameType::hello));
  const auto changed = [&good](auto change) {
    Bytes f = good;
    Handshake h;
    std::memcpy(&h, f.data() + kFrameHeader, sizeof(h));
    change(h);
    std::memcpy(f.data() + kFrameHeader, &h, sizeof(h));
    return test::sealed(f, 0);
  };
  expect_dropped(changed([](Handshake& h) { h.job_key = 99; }), Counter::drop_job);
  expect_dropped(changed([](Handshake& h) { h.mtu = 100; }), Counter::drop_handshake);
  expect_dropped(changed([](Handshake& h) { h.window[1] = 5000; }), Counter::drop_handshake);
  expect_dropped(changed([](Handshake& h) { h.incarnation = 0; }), Counter::drop_handshake);
  expect_dropped(changed([](Handshake& h) { h.connection = 0; }), Counter::drop_handshake);
  Bytes from_group = changed([](Handshake&) {});
  header_of(from_group).from[0] |= 1;
  expect_dropped(test::sealed(from_group, 0), Counter::drop_handshake);
  Bytes from_itself = good;
  std::memcpy(header_of(from_itself).from, b.address().bytes.data(), 6);
  expect_dropped(test::sealed(from_itself, 0), Counter::drop_handshake);
  Bytes cut = good;
  header_of(cut).length = 20;
  expect_dropped(test::sealed(cut, 0), Counter::drop_length);
}

// A hello of an earlier life, replayed: it gets a welcome that nobody confirms, and the live
// connection goes on.
TEST_F(LinkAttack, AReplayedHelloOfAnEarlierLifeEndsNothing) {
  Bytes hello = recorded.front();
  Handshake h;
  std::memcpy(&h, hello.data() + kFrameHeader, sizeof(h));
  h.incarnation ^= 0x1234;
  h.token ^= 1;
  std::memcpy(hello.data() + kFrameHeader, &h, sizeof(h));
  const auto frames = b.link->peers().size();
  for (int i = 0; i < 50; ++i) {
    world.net.inject(mallory, test::sealed(hello, 0));
    world.run(milliseconds{1});
  }
  EXPECT_LE(b.link->peers().size(), frames + 1);
  EXPECT_EQ(b.link->counters()[Counter::peers_down], 0u);
  world.run(seconds{12}, milliseconds{1});  // the half-open one is forgotten
  EXPECT_EQ(b.link->peers().size(), frames);
}

// Hellos from thousands of made-up addresses: half-open peers are bounded, honest ones still work.
TEST_F(LinkAttack, AFloodOfHellosIsBounded) {
  const Bytes hello = recorded.front();
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i) {
    Bytes f = hello;
    header_of(f).from[0] = 6;
    for (int k = 1; k < 6; ++k) header_of(f).from[k] = static_cast<std::uint8_t>(random());
    world.net.inject(mallory, test::sealed(f, 0));
    if (i % 50 == 0) world.run(microseconds{50});
  }
  world.run(milliseconds{1});
  EXPECT_LE(b.link->peers().size(), 70u);
  EXPECT_GT(b.link->counters()[Counter::drop_peers_full], 4000u);
}

// Inside a frame from a peer gone mad: messages whose lengths do not add up.
TEST_F(LinkAttack, MalformedMessagesInAValidFrame) {
  Bytes f = last(FrameType::data);
  header_of(f).sequence += 1;
  Bytes cut = f;
  cut.resize(kFrameHeader + 3);
  header_of(cut).length = 3;
  expect_dropped(sealed(cut), Counter::drop_message);
  header_of(f).sequence += 1;
  Bytes long_message = f;
  const MessageHeader m{60000, 15, 0};
  std::memcpy(long_message.data() + kFrameHeader, &m, sizeof(m));
  expect_dropped(sealed(long_message), Counter::drop_message);
  header_of(f).sequence += 1;
  Bytes unknown = f;
  unknown[kFrameHeader + 2] = std::byte{200};
  expect_dropped(sealed(unknown), Counter::drop_protocol);
  // The three stand in the places of a's next frames; tell a, as an honest peer would have.
  world.kill(a);
  LinkConfig again;
  again.seed = 9;
  a.start(again);
  peer = a.link->peer(b.address());
}

TEST_F(LinkAttack, NoiseOfAnyLengthIsSurvived) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    Bytes f(random() % 200);
    for (auto& byte : f) byte = static_cast<std::byte>(random());
    if (f.size() >= kEthernetHeader) {
      std::memcpy(f.data(), b.address().bytes.data(), 6);
      if (i % 2) f[12] = std::byte{0x88}, f[13] = std::byte{0xb5};
    }
    world.net.inject(mallory, f);
    if (i % 100 == 0) world.run(microseconds{20});
  }
  world.run(milliseconds{1});
  EXPECT_EQ(delivered, 1);
  EXPECT_GT(b.link->counters().drops(), 10000u);
}

}  // namespace
}  // namespace viaduct::link::test
