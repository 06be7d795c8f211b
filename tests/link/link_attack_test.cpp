// Frames nobody honest sends: malformed, truncated, replayed, forged, foreign. Each is counted
// under its reason and changes nothing.
#include <gtest/gtest.h>

#include <random>

#include "drivers/base/crc32c.hpp"
#include "tests/link/sim_world.hpp"

namespace viaduct::link::test {
namespace {

using Bytes = std::vector<std::byte>;

FrameHeader& header_of(Bytes& frame) {
  return *reinterpret_cast<FrameHeader*>(frame.data());
}

Bytes sealed(Bytes frame, std::uint32_t seed) {
  FrameHeader& header = header_of(frame);
  header.checksum = frame_checksum(header, base::crc32c(frame.data() + kFrameHeader, header.length,
                                                        route_checksum(header, seed)));
  return frame;
}

// A hello, with something in it changed.
template <class Change>
Bytes changed(Bytes f, Change change) {
  Handshake h;
  std::memcpy(&h, f.data() + kFrameHeader, sizeof h);
  change(h);
  std::memcpy(f.data() + kFrameHeader, &h, sizeof h);
  return sealed(f, 0);
}

struct LinkAttack : ::testing::Test {
  World world;
  Node& a = world.add();
  Node& b = world.add();
  sim::SimPort& mallory = world.net.add_port();
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
    b.sink.message = [this](const Incoming&) { return ++delivered, RxResult::consumed; };
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
  expect_dropped(changed(good, [](Handshake& h) { h.job_key = 99; }), Counter::drop_job);
  expect_dropped(changed(good, [](Handshake& h) { h.mtu = 100; }), Counter::drop_handshake);
  expect_dropped(changed(good, [](Handshake& h) { h.window[1] = 5000; }), Counter::drop_handshake);
  expect_dropped(changed(good, [](Handshake& h) { h.incarnation = 0; }), Counter::drop_handshake);
  expect_dropped(changed(good, [](Handshake& h) { h.connection = 0; }), Counter::drop_handshake);
  const Bytes padded = last(FrameType::hello);
  expect_dropped(changed(padded, [](Handshake& h) { h.mtu += 1; }), Counter::drop_handshake);
  Bytes from_group = changed(good, [](Handshake&) {});
  header_of(from_group).from[0] |= 1;
  expect_dropped(test::sealed(from_group, 0), Counter::drop_handshake);
  Bytes from_itself = good;
  std::memcpy(header_of(from_itself).from, b.address().bytes.data(), 6);
  expect_dropped(test::sealed(from_itself, 0), Counter::drop_handshake);
  Bytes cut = good;
  header_of(cut).length = 20;
  expect_dropped(test::sealed(cut, 0), Counter::drop_length);
}

// A hello of an earlier incarnation whose cookie is still good, replayed: it gets a welcome that
// nobody confirms, and the live connection goes on.
TEST_F(LinkAttack, AReplayedHelloOfAnEarlierLifeEndsNothing) {
  const Bytes hello = changed(last(FrameType::hello), [](Handshake& h) { h.token ^= 1; });
  const auto peers = b.link->peers().size();
  for (int i = 0; i < 50; ++i) {
    world.net.inject(mallory, hello);
    world.run(milliseconds{1});
    EXPECT_EQ(b.link->peers().size(), peers + 1);
  }
  EXPECT_EQ(b.link->counters()[Counter::peers_down], 0u);
  world.run(seconds{4}, milliseconds{1});  // the half-open one is forgotten
  EXPECT_EQ(b.link->peers().size(), peers);
}

// A cookie is good for one incarnation at one address, and not for ever.
TEST_F(LinkAttack, ACookieOfSomebodyElseIsWorthNothing) {
  const Bytes hello = last(FrameType::hello);
  const auto gets_a_retry = [&](const Bytes& f) {
    const auto peers = b.link->peers().size();
    const auto retries = b.link->counters()[Counter::retries_sent];
    world.net.inject(mallory, f);
    world.run(microseconds{200});
    EXPECT_EQ(b.link->counters()[Counter::retries_sent], retries + 1);
    EXPECT_EQ(b.link->peers().size(), peers);
  };
  gets_a_retry(changed(hello, [](Handshake& h) { h.incarnation ^= 1; }));
  gets_a_retry(changed(hello, [](Handshake& h) { h.cookie ^= 0x100; }));
  gets_a_retry(changed(hello, [](Handshake& h) { h.cookie = 1; }));
  Bytes elsewhere = hello;
  header_of(elsewhere).from[5] ^= 0x40;
  gets_a_retry(test::sealed(elsewhere, 0));
  world.run(seconds{9}, milliseconds{1});
  gets_a_retry(changed(hello, [](Handshake& h) { h.token ^= 1; }));
}

// What an attacker does while honest peers connect and talk; what b answers is noted.
struct LinkFlood : LinkAttack {
  static constexpr auto kGap = microseconds{100};  // 10,000 forged requests a second
  std::mt19937 random{3};
  std::uint64_t bytes_injected = 0, bytes_answered = 0;
  std::vector<std::pair<Bytes, std::uint64_t>> cookies;  // to which made-up address, which
  Bytes request;

  LinkFlood() {
    request = recorded.front();
    world.kill(b);
    LinkConfig patient;
    patient.seed = 17;
    patient.dead_after = std::chrono::hours{1};  // as MPI has it
    b.start(patient);
    world.kill(a);
    LinkConfig again;
    again.seed = 18;
    a.start(again);
    peer = a.link->peer(b.address());
    world.run(milliseconds{1});
    recorded.clear();
    world.net.hook = [this](std::uint32_t port, Bytes& bytes) {
      if (port == 0) recorded.push_back(bytes);
      if (port == 1 && header_of(bytes).to[0] == 6) {
        bytes_answered += bytes.size();
        if (type_of(bytes) == FrameType::retry) {
          Handshake h;
          std::memcpy(&h, bytes.data() + kFrameHeader, sizeof h);
          cookies.emplace_back(Bytes(bytes.begin(), bytes.begin() + 6), std::uint64_t{h.cookie});
        }
      }
      return true;
    };
  }
  Bytes forged_request() {
    Bytes f = request;
    header_of(f).from[0] = 6;
    for (int k = 1; k < 6; ++k) header_of(f).from[k] = static_cast<std::uint8_t>(random());
    return test::sealed(f, 0);
  }
  void inject(Bytes f) {
    bytes_injected += f.size();
    world.net.inject(mallory, std::move(f));
  }
  // How long a newcomer's first message takes, with `attack` every kGap meanwhile.
  template <class Attack>
  Duration first_message(Attack attack) {
    LinkConfig config;
    config.seed = 100 + world.nodes.size();
    Node& newcomer = world.add(config);
    delivered = 0;
    const Time start = world.net.now();
    send_text(newcomer, newcomer.link->peer(b.address()), "here I am", start);
    while (delivered == 0 && world.net.now() - start < seconds{1}) {
      attack();
      world.run_until([this] { return delivered != 0; }, kGap);
    }
    EXPECT_EQ(delivered, 1);
    return world.net.now() - start;
  }
};

TEST_F(LinkFlood, ForgedRequestsDelayNoHonestPeerAndLeaveNothing) {
  const Duration usual = first_message([] {});
  EXPECT_LT(usual, microseconds{200});
  const auto peers = b.link->peers().size();
  const auto attack = [this] { inject(forged_request()); };
  for (int i = 0; i < 10 * 10'000; ++i) {  // ten seconds
    attack();
    if (i % 10'000 == 5'000) {
      EXPECT_LE(first_message(attack), 3 * usual);
    } else {
      world.run(kGap, kGap);
    }
  }
  EXPECT_EQ(b.link->peers().size(), peers + 10);
  EXPECT_EQ(b.link->counters()[Counter::drop_peers_full], 0u);
  EXPECT_EQ(b.link->counters()[Counter::half_open_evicted], 0u);
  EXPECT_GE(b.link->counters()[Counter::retries_sent], 100'000u);
  EXPECT_LE(bytes_answered, bytes_injected);
  EXPECT_LE(b.port->most_frames_in_use(), 64u);
  const auto answered = bytes_answered;  // and when it ends it ends
  world.run(seconds{5}, milliseconds{1});
  EXPECT_EQ(bytes_answered, answered);
}

// An attacker to whom the answers come, and who returns the cookies.
TEST_F(LinkFlood, HalfOpenConnectionsAreBoundedAndTheOldestGiveWay) {
  const Duration usual = first_message([] {});
  const auto peers = b.link->peers().size();
  const auto attack = [this] {
    for (const auto& [to, cookie] : std::exchange(cookies, {})) {
      Bytes f = request;
      f.resize(kEthernetHeader + 1500);
      std::memcpy(header_of(f).from, to.data(), 6);
      header_of(f).length = 1500 - kLinkHeader;
      inject(changed(f, [cookie = cookie](Handshake& h) { h.cookie = cookie; }));
    }
    inject(forged_request());
  };
  for (int i = 0; i < 10'000; ++i) {
    attack();
    world.run(kGap, kGap);
    EXPECT_LE(b.link->peers().size(), peers + kMaxHalfOpen);
  }
  EXPECT_EQ(b.link->peers().size(), peers + kMaxHalfOpen);
  EXPECT_GT(b.link->counters()[Counter::half_open_evicted], 9'000u);
  for (int i = 0; i < 10; ++i) EXPECT_LE(first_message(attack), 3 * usual);
  EXPECT_LE(b.port->most_frames_in_use(), 256u);
  world.run(seconds{4}, milliseconds{1});  // though b would wait for an hour for its own peers
  EXPECT_EQ(b.link->peers().size(), peers + 10);
}

// More than may be half-open at a time: peers that find no room try again, and no peer is
// evicted whose connection is being made.
TEST(LinkPeers, ManyMayConnectAtOnce) {
  World world;
  Node& hub = world.add({}, {.pool = 4096, .receive_ring = 4096});
  std::size_t got = 0, down = 0;
  hub.sink.message = [&](const Incoming&) { return ++got, RxResult::consumed; };
  hub.sink.down = [&](PeerId, const Address&, DownReason) { ++down; };
  constexpr std::size_t kPeers = 2 * kMaxHalfOpen;
  for (std::size_t i = 0; i < kPeers; ++i) {
    Node& node = world.add({}, {.pool = 64, .receive_ring = 16});
    send_text(node, node.link->peer(hub.address()), "x", world.net.now());
  }
  EXPECT_TRUE(world.run_until([&] { return got == kPeers; }, milliseconds{500}, milliseconds{1}));
  EXPECT_EQ(hub.link->counters()[Counter::half_open_evicted], 0u);
  EXPECT_GT(hub.link->counters()[Counter::drop_peers_full], 0u);
  EXPECT_EQ(down, 0u);
}

// All slots are taken by connections: the link tells a peer that it refuses why.
TEST(LinkPeers, AFullTableSaysSo) {
  World world;
  LinkConfig small;
  small.max_peers = 1;
  Node& b = world.add(small);
  Node& a = world.add();
  send_text(a, a.link->peer(b.address()), "first", world.net.now());
  ASSERT_TRUE(world.run_until([&] { return a.link->idle(); }, milliseconds{10}));
  Node& c = world.add();
  std::vector<DownReason> reasons;
  c.sink.down = [&](PeerId, const Address&, DownReason r) { reasons.push_back(r); };
  const PeerId refused = c.link->peer(b.address());
  send_text(c, refused, "second", world.net.now());
  world.run(milliseconds{100});
  EXPECT_TRUE(c.link->view(refused).answered);
  EXPECT_TRUE(c.link->view(refused).no_room);
  EXPECT_GT(b.link->counters()[Counter::drop_peers_full], 0u);
  world.run(seconds{6}, milliseconds{1});
  EXPECT_EQ(reasons, std::vector{DownReason::no_room});
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
