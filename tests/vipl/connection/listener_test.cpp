// Listeners for peers (VipPeerListen): several processes at one NIC address, requests that wait,
// and what is no business of theirs. tests/vipl/programs has those of one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "libvipl/connection/connection_table.hpp"
#include "tests/vipl/connection/own_nic.hpp"
#include "tests/vipl/connection/raw.hpp"

namespace viaduct::vipl::test {
namespace {

using State = FakeVi::State;

struct Listeners : testing::Test {
  static VIP_RETURN ask(Manager& from, FakeVi& vi, const Endpoint& remote,
                        const std::string& local = "caller", Clock::duration longest = kLong) {
    return from.peer_request(vi, disc(local), remote, in(longest));
  }
  static VIP_RETURN finish(Nic& nic, FakeVi& vi) {
    EndpointInfo card;
    return nic.manager.peer_wait(vi, card);
  }

  Vis vis;
  FakeVi &x = vis.add(), &y = vis.add();
  Nic a{nic(1)};
};

// Whichever of the processes accepts the request: three have the address, one of them listens.
TEST_F(Listeners, AreFoundFromOtherProcesses) {
  Nic neighbour(nic(2)), another(nic(2));
  OwnNic b(nic(2));
  ASSERT_EQ(b.listen("rank7"), VIP_SUCCESS);
  for (int i = 0; i < 20; ++i) {
    FakeVi &one = vis.add(), &two = vis.add();
    const std::string local = numbered("rank7.", static_cast<std::size_t>(i));
    ASSERT_EQ(ask(a.manager, one, {nic(2), disc(local)}), VIP_SUCCESS);
    ASSERT_TRUE(b.turn_until([&] { return b.asked() == 1; }));
    EXPECT_EQ(b.events[0].local, (Endpoint{nic(2), disc(local)}));
    EXPECT_EQ(b.events[0].remote, (Endpoint{nic(1), disc("caller")}));
    ASSERT_EQ(ask(b.manager, two, b.events[0].remote, local), VIP_SUCCESS);
    ASSERT_TRUE(b.turn_until([&] { return two.state() == State::connected; }));
    EXPECT_EQ(finish(a, one), VIP_SUCCESS);
    EXPECT_EQ(one.remote().queue_pair.number, two.mine.queue_pair.number);
    ASSERT_TRUE(b.turn_until([&] { return b.events.size() == 2; }));
    EXPECT_TRUE(b.events[1].is_outcome);
    EXPECT_EQ(b.events[1].outcome, VIP_SUCCESS);
    b.events.clear();
  }
}

// ... and many at once, more than a unix socket keeps for its process.
TEST_F(Listeners, TellOfManyThatAskAtOnce) {
  constexpr std::size_t kNics = 8, kPeers = 64;
  Nic neighbour(nic(2)), another(nic(2));
  OwnNic b(nic(2));
  ASSERT_EQ(b.listen("rank7"), VIP_SUCCESS);
  std::deque<Nic> nics;
  for (std::size_t i = 0; i < kNics; ++i) nics.emplace_back(nic(static_cast<std::uint8_t>(10 + i)));
  const std::vector<FakeVi*> theirs = vis.add(kPeers), ours = vis.add(kPeers);
  for (std::size_t i = 0; i < kPeers; ++i)
    ASSERT_EQ(ask(nics[i % kNics].manager, *theirs[i], {nic(2), disc("rank7")}, numbered("p", i)),
              VIP_SUCCESS);
  ASSERT_TRUE(b.turn_until([&] { return b.asked() == kPeers; }));
  std::vector<ConnectEvent> asked;
  asked.swap(b.events);
  for (std::size_t i = 0; i < kPeers; ++i) {
    EXPECT_FALSE(asked[i].is_outcome);
    ASSERT_EQ(ask(b.manager, *ours[i], asked[i].remote, "rank7"), VIP_SUCCESS);
  }
  ASSERT_TRUE(b.turn_until([&] { return b.events.size() == kPeers; }));
  for (const ConnectEvent& event : b.events) EXPECT_EQ(event.outcome, VIP_SUCCESS);
  for (std::size_t i = 0; i < kPeers; ++i) {
    EXPECT_EQ(finish(nics[i % kNics], *theirs[i]), VIP_SUCCESS);
    EXPECT_TRUE(std::any_of(ours.begin(), ours.end(), [&](const FakeVi* vi) {
      return vi->mine.queue_pair.number == theirs[i]->remote().queue_pair.number &&
             vi->remote().queue_pair.number == theirs[i]->mine.queue_pair.number;
    }));
  }
  EXPECT_EQ(b.asked(), 0u);
}

// Requests for exact names still find their peers, next to a listener for others.
TEST_F(Listeners, LeaveOthersAlone) {
  Nic neighbour(nic(2));
  OwnNic b(nic(2), true);
  ASSERT_EQ(b.listen("mine"), VIP_SUCCESS);
  EXPECT_NE(b.manager.self().port, kPort);
  ASSERT_EQ(ask(a.manager, x, {nic(2), disc("theirs")}), VIP_SUCCESS);
  ASSERT_EQ(ask(neighbour.manager, y, {nic(1), disc("caller")}, "theirs"), VIP_SUCCESS);
  EXPECT_EQ(finish(neighbour, y), VIP_SUCCESS);
  EXPECT_EQ(finish(a, x), VIP_SUCCESS);
  // Nobody has that beginning, nor is a client or a server meant.
  EXPECT_EQ(a.request(vis.add(), {nic(2), disc("mine")}), VIP_NO_MATCH);
  b.turn();
  EXPECT_TRUE(b.events.empty());
}

// Requests at the same time from two threads, hundreds of times: always one connection.
TEST_F(Listeners, BothAskAtOnce) {
  OwnNic left(nic(3), true), right(nic(4), true);
  ASSERT_EQ(left.listen("l"), VIP_SUCCESS);
  ASSERT_EQ(right.listen("r"), VIP_SUCCESS);
  std::minstd_rand random(1);
  for (int round = 0; round < 300; ++round) {
    const unsigned lag = random() % 4000;
    std::atomic<int> ready{0};
    const auto connect = [&](OwnNic& own, FakeVi& vi, const Endpoint& to, const char* local,
                             unsigned wait) {
      for (++ready; ready < 2;) {
      }
      for (unsigned i = 0; i < wait; ++i) asm volatile("");
      ASSERT_EQ(ask(own.manager, vi, to, local), VIP_SUCCESS);
      const auto outcomes = [&] { return own.events.size() - own.asked(); };
      ASSERT_TRUE(own.turn_until([&] { return outcomes() == 1; }));
      for (const ConnectEvent& event : own.events) {
        ASSERT_EQ(event.outcome, VIP_SUCCESS);
      }
      own.events.clear();
    };
    std::thread other([&] { connect(right, y, {left.manager.self(), disc("l")}, "r", lag); });
    connect(left, x, {right.manager.self(), disc("r")}, "l", 0);
    other.join();
    ASSERT_EQ(x.remote().queue_pair.psn, y.mine.queue_pair.psn) << round;
    ASSERT_EQ(y.remote().queue_pair.psn, x.mine.queue_pair.psn) << round;
    for (const auto& [own, vi] : {std::pair(&left, &x), std::pair(&right, &y)})
      own->manager.disconnect(*vi, [vi = vi] {
        vi->reset();
        return VIP_SUCCESS;
      });
    left.turn();
    right.turn();
    left.events.clear();
    right.events.clear();
    ASSERT_EQ(x.complaint() + y.complaint(), "");
  }
  EXPECT_EQ(left.manager.peer_counts(disc("l"))->waiting, 0u);
  EXPECT_EQ(right.manager.peer_counts(disc("r"))->waiting, 0u);
}

Request request_of(const Endpoint& callee, const std::string& caller, std::uint64_t nonce) {
  return {.model = Model::peer_to_peer,
          .nonce = nonce,
          .callee = callee,
          .caller = {nic(99), disc(caller)},
          .card = FakeVi().mine};
}

// Of requests with the same names one waits; the same request on a new connection takes its place.
TEST_F(Listeners, OneOfEachNameWaits) {
  OwnNic b(nic(2));
  ASSERT_EQ(b.listen("r"), VIP_SUCCESS);
  const auto waiting = [&] { return b.manager.peer_counts(disc("r"))->waiting; };
  const Endpoint to{nic(2), disc("r")};
  Raw first(nic(2)), again(nic(2)), other(nic(2));
  first.send(encode(request_of(to, "c", 1)));
  ASSERT_TRUE(b.turn_until([&] { return waiting() == 1; }));
  EXPECT_EQ(first.receive()->type, MessageType::held);
  other.send(encode(request_of(to, "c", 2)));
  for (int i = 0; i < 100; ++i, std::this_thread::sleep_for(1ms)) b.turn();
  const auto answer = other.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->type, MessageType::refused);
  EXPECT_EQ(answer->code, static_cast<std::uint8_t>(Refusal::no_match));
  again.send(encode(request_of(to, "c", 1)));
  for (int i = 0; i < 100; ++i, std::this_thread::sleep_for(1ms)) b.turn();
  EXPECT_EQ(again.receive()->type, MessageType::held);
  EXPECT_TRUE(first.closed_within(1000));
  EXPECT_EQ(waiting(), 1u);
  // The process that asks dies; another message than a caller's ends the wait as well.
  again.close();
  ASSERT_TRUE(b.turn_until([&] { return waiting() == 0; }));
  Raw rude(nic(2));
  rude.send(encode(request_of(to, "c", 3)));
  ASSERT_TRUE(b.turn_until([&] { return waiting() == 1; }));
  rude.send(Message{.type = MessageType::ready});
  ASSERT_TRUE(b.turn_until([&] { return waiting() == 0; }));
}

// The peer dies half way and is started anew; the new one's request may come before the old one's
// end. It waits then, because a VI here is still busy with the old one.
TEST_F(Listeners, ThePeerThatWasStartedAnew) {
  OwnNic b(nic(2));
  ASSERT_EQ(b.listen("r"), VIP_SUCCESS);
  const auto waiting = [&] { return b.manager.peer_counts(disc("r"))->waiting; };
  const Endpoint to{nic(2), disc("r")};
  Raw dying(nic(2)), anew(nic(2));
  dying.send(encode(request_of(to, "c", 1)));
  ASSERT_TRUE(b.turn_until([&] { return waiting() == 1; }));
  ASSERT_EQ(ask(b.manager, y, {nic(99), disc("c")}, "r"), VIP_SUCCESS);
  ASSERT_TRUE(b.turn_until([&] { return y.state() == State::connected; }));
  anew.send(encode(request_of(to, "c", 2)));
  ASSERT_TRUE(b.turn_until([&] { return waiting() == 1; }));
  dying.close();
  ASSERT_TRUE(b.turn_until([&] { return waiting() == 0 && y.state() == State::connected; }));
  EXPECT_EQ(anew.receive()->type, MessageType::held);
  EXPECT_EQ(anew.receive()->type, MessageType::accepted);
  anew.send(Message{.type = MessageType::ready});
  ASSERT_TRUE(b.turn_until([&] { return b.events.size() > b.asked(); }));
  EXPECT_EQ(b.events.back().outcome, VIP_SUCCESS);
  EXPECT_EQ(y.times_abandoned(), 1u);
}

// What this side has asked for goes on: of one VI the request is on its way, of the other it is
// still to begin, and the peer's waits.
TEST_F(Listeners, StopWhileAttemptsGoOn) {
  OwnNic b(nic(2));
  ASSERT_EQ(b.listen("r"), VIP_SUCCESS);
  Raw waits(nic(2)), late(nic(2));
  waits.send(encode(request_of({nic(2), disc("r1")}, "c", 1)));
  ASSERT_TRUE(b.turn_until([&] { return b.asked() == 1; }));
  ASSERT_EQ(ask(b.manager, x, {nic(99), disc("c")}, "r2"), VIP_SUCCESS);
  b.turn();
  b.turn();
  ASSERT_EQ(ask(b.manager, y, {nic(99), disc("c")}, "r1"), VIP_SUCCESS);
  EXPECT_EQ(b.manager.peer_stop_listening(disc("r")), VIP_SUCCESS);
  ASSERT_TRUE(b.turn_until([&] { return y.state() == State::connected; }));
  EXPECT_EQ(waits.receive()->type, MessageType::held);
  EXPECT_EQ(waits.receive()->type, MessageType::accepted);
  late.send(encode(request_of({nic(2), disc("r2")}, "c", 2)));
  ASSERT_TRUE(b.turn_until([&] { return x.state() == State::connected; }));
  EXPECT_EQ(late.receive()->type, MessageType::held);
  EXPECT_EQ(late.receive()->type, MessageType::accepted);
  Raw nobody(nic(2));
  nobody.send(encode(request_of({nic(2), disc("r3")}, "c", 3)));
  for (int i = 0; i < 100; ++i, std::this_thread::sleep_for(1ms)) b.turn();
  EXPECT_EQ(nobody.receive()->code, static_cast<std::uint8_t>(Refusal::no_match));
  EXPECT_EQ(b.asked(), 1u);
}

// A program that forgets a request: its peer is told to ask again, and then the program is, too.
TEST_F(Listeners, ABoundedTimeIsWaited) {
  const auto table = std::make_shared<ConnectionTable>(nic(2));
  PeerListeners listeners(*table, 50ms);
  const auto run_until = [&](const std::function<bool()>& condition) {
    const auto end = Clock::now() + kLong;
    const std::lock_guard lock(table->mutex);
    while (!condition() && Clock::now() < end) table->loop.run();
    return condition();
  };
  const auto waiting = [&] { return listeners.counts(disc("r"))->waiting; };
  ASSERT_EQ(listeners.open(disc("r"), {}), VIP_SUCCESS);
  for (const bool is_told : {true, false}) {
    Raw peer(nic(2));
    const auto sent = Clock::now();
    peer.send(encode(request_of({nic(2), disc("r")}, "c", 1)));
    ASSERT_TRUE(run_until([&] { return waiting() == 1; }));
    if (is_told) {
      EXPECT_EQ(listeners.next()->request().caller, (Endpoint{nic(99), disc("c")}));
    }
    EXPECT_EQ(listeners.has_next(), !is_told);
    ASSERT_TRUE(run_until([&] { return waiting() == 0; }));
    EXPECT_GE(Clock::now() - sent, 50ms);
    EXPECT_FALSE(listeners.has_next());
    EXPECT_EQ(peer.receive()->type, MessageType::held);
    const auto answer = peer.receive();
    EXPECT_EQ(answer->type, MessageType::refused);
    EXPECT_EQ(answer->code, static_cast<std::uint8_t>(Refusal::no_match));
    EXPECT_EQ(listeners.answer(disc("r"), {nic(99), disc("c")}), nullptr);
  }
  EXPECT_EQ(PeerListeners::kLongestWait, 30s);
}

TEST_F(Listeners, ABoundedNumberWaits) {
  constexpr std::size_t kBound = 1024, kMore = 20;
  OwnNic b(nic(2));
  ASSERT_EQ(b.listen("r"), VIP_SUCCESS);
  const auto waiting = [&] { return b.manager.peer_counts(disc("r"))->waiting; };
  std::deque<Raw> all;
  for (std::size_t i = 0; i < kBound + kMore; ++i) {
    all.emplace_back(nic(2)).send(encode(request_of({nic(2), disc("r")}, numbered("c", i), i + 1)));
    ASSERT_TRUE(b.turn_until([&] { return waiting() == std::min(i + 1, kBound); }));
    b.turn();
  }
  for (int i = 0; i < 20; ++i, std::this_thread::sleep_for(1ms)) b.turn();
  EXPECT_EQ(waiting(), kBound);
  EXPECT_EQ(b.asked(), kBound);
  EXPECT_EQ(all.back().receive()->type, MessageType::refused);
  // One goes, and there is room for one.
  all.pop_front();
  ASSERT_TRUE(b.turn_until([&] { return waiting() == kBound - 1; }));
  ASSERT_EQ(ask(a.manager, x, {nic(2), disc("r")}), VIP_SUCCESS);
  ASSERT_TRUE(b.turn_until([&] { return waiting() == kBound; }));
}

// The device has no queue pair left when the request begins.
TEST_F(Listeners, ARequestThatCannotBegin) {
  OwnNic b(nic(2));
  y.device_refuses = true;  // refuses when the other's request is answered
  ASSERT_EQ(b.listen("r"), VIP_SUCCESS);
  ASSERT_EQ(ask(a.manager, x, {nic(2), disc("r")}), VIP_SUCCESS);
  ASSERT_TRUE(b.turn_until([&] { return b.asked() == 1; }));
  ASSERT_EQ(ask(b.manager, y, {nic(1), disc("caller")}, "r"), VIP_SUCCESS);
  ASSERT_TRUE(b.turn_until([&] { return b.events.size() == 2; }));
  EXPECT_EQ(b.events[1].outcome, VIP_ERROR_RESOURCE);
  // The peer goes on, and is heard of once more.
  ASSERT_TRUE(b.turn_until([&] { return b.asked() == 2; }));
  y.device_refuses = false;
  ASSERT_EQ(ask(b.manager, y, {nic(1), disc("caller")}, "r"), VIP_SUCCESS);
  ASSERT_TRUE(b.turn_until([&] { return b.events.size() == 4; }));
  EXPECT_EQ(b.events[3].outcome, VIP_SUCCESS);
  EXPECT_EQ(finish(a, x), VIP_SUCCESS);
}

}  // namespace
}  // namespace viaduct::vipl::test
