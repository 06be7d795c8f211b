// Both models within one process: every outcome, every order.
#include <gtest/gtest.h>

#include <deque>
#include <future>

#include "libvipl/connection/socket/wakeups.hpp"
#include "tests/vipl/connection/bed.hpp"

namespace viaduct::vipl::test {
namespace {

using State = FakeVi::State;

Clock::duration duration_of(const std::function<void()>& function) {
  const auto start = Clock::now();
  function();
  return Clock::now() - start;
}

// However many they are, all wake, and when those that are left for later do the lock is free.
TEST(BellsOfTheManager, WakeEveryThread) {
  constexpr std::size_t kThreads = 20;
  std::mutex mutex;
  Wakeups wakeups;
  bool rung = false;
  std::size_t blocked = 0;
  std::deque<Wakeup> all;
  std::vector<std::future<void>> threads;
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.push_back(std::async(std::launch::async, [&, wakeup = all.emplace_back(make_wakeup())] {
      std::unique_lock lock(mutex);
      ++blocked;
      wakeup->wait(lock, [&] { return rung; });
    }));
  for (bool ready = false; !ready; std::this_thread::yield()) {
    const std::lock_guard lock(mutex);
    ready = blocked == kThreads;
  }
  {
    Wakeups::Later later;
    const std::lock_guard lock(mutex);
    const Wakeups::Holding holding(wakeups, later);
    rung = true;
    for (const Wakeup& wakeup : all) wakeups.wake(wakeup);
    EXPECT_GT(later.count, 0u);
  }
  for (std::future<void>& thread : threads) thread.get();
}

using ConnectionManager = TwoNics;

// Unreliable VIs: of five messages two have arrived, of three one.
class UnreliableConnections : public TwoNics {
 protected:
  UnreliableConnections() {
    client.mine.reliability = server.mine.reliability = VIP_SERVICE_UNRELIABLE;
    client.mine_so_far = {.received = 1, .sent = 5};
    server.mine_so_far = {.received = 2, .sent = 3};
  }
  static void expect_drops(Nic& nic, const std::string& text) {
    for (const auto end = Clock::now() + kLong; nic.manager.drops() != text && Clock::now() < end;)
      std::this_thread::sleep_for(1ms);
    EXPECT_EQ(nic.manager.drops(), text);
  }
  // After so many connections.
  static std::string drops(unsigned sent, unsigned to_here, unsigned missing_sent,
                           unsigned missing_here) {
    return "unreliable VIs: " + std::to_string(missing_sent) + " of " + std::to_string(sent) +
           " messages sent were dropped, " + std::to_string(missing_here) + " of " +
           std::to_string(to_here) +
           " sent to here; 0 connections ended without the other side's count";
  }
};

TEST_F(UnreliableConnections, BothSidesKnowWhatWasDropped) {
  for (unsigned i = 1; i <= 4; ++i) {
    connect(a, client, b, server);
    if (i % 2 == 0) {
      a.disconnect(client);
      EXPECT_TRUE(server.wait_for(State::error));
      b.disconnect(server);
    } else {
      b.disconnect(server);
      EXPECT_TRUE(client.wait_for(State::error));
      a.disconnect(client);
    }
    expect_drops(a, drops(5 * i, 3 * i, 3 * i, 2 * i));
    expect_drops(b, drops(3 * i, 5 * i, 2 * i, 3 * i));
  }
}

TEST_F(UnreliableConnections, ThatBothSidesEndAtOnce) {
  for (unsigned i = 1; i <= 50; ++i) {
    connect(a, client, b, server);
    auto other = std::async(std::launch::async, [&] { b.disconnect(server); });
    a.disconnect(client);
    other.get();
    expect_drops(a, drops(5 * i, 3 * i, 3 * i, 2 * i));
    expect_drops(b, drops(3 * i, 5 * i, 2 * i, 3 * i));
  }
}

// ... and who ends everything at once waits for the answer, if he is told to.
TEST_F(UnreliableConnections, ThatEndWithTheNic) {
  connect(a, client, b, server);
  a.manager.shutdown(kLong);
  EXPECT_EQ(a.manager.drops(), drops(5, 3, 3, 2));
  EXPECT_TRUE(server.wait_for(State::error));
  b.disconnect(server);
}

TEST_F(ConnectionManager, ConnectsAndTellsBothSidesAboutEachOther) {
  server.mine.rdma_write = false;
  connect(a, client, b, server);
  EXPECT_EQ(client.state(), State::connected);
  EXPECT_EQ(server.state(), State::connected);
  EXPECT_EQ(client.remote().queue_pair.number, server.mine.queue_pair.number);
  EXPECT_EQ(client.remote().queue_pair.psn, server.mine.queue_pair.psn);
  EXPECT_EQ(server.remote().queue_pair.number, client.mine.queue_pair.number);
  EXPECT_FALSE(client.remote().rdma_write);
  EXPECT_TRUE(server.remote().rdma_write);
}

TEST_F(ConnectionManager, WaitTellsWhoCalls) {
  auto [incoming, outcome] = hold_request(a, client, b);
  EXPECT_EQ(Manager::caller(*incoming).endpoint, a.at("client"));
  EXPECT_EQ(Manager::caller(*incoming).card.max_transfer_size, client.mine.max_transfer_size);
  EXPECT_TRUE(b.manager.is_from_here(*incoming));
  EXPECT_FALSE(a.manager.is_from_here(*incoming));
  EXPECT_EQ(Manager::reject(incoming), VIP_SUCCESS);
  EXPECT_EQ(outcome.get(), VIP_REJECT);
  EXPECT_EQ(client.state(), State::idle);
  EXPECT_EQ(Manager::reject(incoming), VIP_INVALID_PARAMETER);
  EXPECT_EQ(Manager::accept(incoming, server), VIP_INVALID_PARAMETER);
}

TEST_F(ConnectionManager, NobodyWaitsMeansNoMatchAtOnce) {
  EXPECT_LT(duration_of([&] { EXPECT_EQ(a.request(client, b.at("server")), VIP_NO_MATCH); }), 2s);
  EXPECT_LT(duration_of([&] {
              EXPECT_EQ(a.request(client, {nic(77), disc("x")}), VIP_NO_MATCH);
            }),
            2s);
  EXPECT_EQ(client.state(), State::idle);
  EXPECT_EQ(client.times_abandoned(), 2u);
}

TEST_F(ConnectionManager, OtherDiscriminatorsDoNotMatch) {
  auto served = std::async(std::launch::async, [&] { return b.serve(server, "one", 400ms); });
  for (const auto* other : {"on", "onf", "one ", ""})
    EXPECT_EQ(a.request(client, b.at(other)), VIP_NO_MATCH) << other;
  EXPECT_EQ(served.get(), VIP_TIMEOUT);
}

TEST_F(ConnectionManager, TimeoutsAreMilliseconds) {
  std::shared_ptr<ReceivedRequest> incoming;
  const auto waited = duration_of([&] {
    EXPECT_EQ(b.manager.wait(disc("server"), deadline_after(120), incoming), VIP_TIMEOUT);
  });
  EXPECT_GE(waited, 120ms);
  EXPECT_LT(waited, 10s);
  EXPECT_EQ(deadline_after(0xffffffff), std::nullopt);
  EXPECT_EQ(deadline_after(~0UL), std::nullopt);
  EXPECT_NE(deadline_after(0xfffffffe), std::nullopt);
}

TEST_F(ConnectionManager, AServerThatDoesNotAnswerLetsTheClientTimeOut) {
  std::shared_ptr<ReceivedRequest> incoming;
  auto waited = std::async(std::launch::async,
                           [&] { return b.manager.wait(disc("server"), in(kLong), incoming); });
  VIP_RETURN result = VIP_NO_MATCH;
  Clock::duration took{};
  while (result == VIP_NO_MATCH)
    took = duration_of([&] { result = a.request(client, b.at("server"), 1s); });
  EXPECT_EQ(result, VIP_TIMEOUT);
  EXPECT_GE(took, 1s);
  EXPECT_EQ(waited.get(), VIP_SUCCESS);
  std::this_thread::sleep_for(20ms);  // the reset is on its way
  EXPECT_EQ(Manager::accept(incoming, server), VIP_TIMEOUT);
  EXPECT_EQ(server.state(), State::idle);
  EXPECT_EQ(Manager::reject(incoming), VIP_SUCCESS);
}

TEST_F(ConnectionManager, WhatMustBeEqualIsCheckedByTheServerWhoMayTryAgain) {
  auto [incoming, outcome] = hold_request(a, client, b);
  const EndpointInfo well = server.mine;
  server.mine.reliability = VIP_SERVICE_UNRELIABLE;
  EXPECT_EQ(Manager::accept(incoming, server), VIP_INVALID_RELIABILITY_LEVEL);
  server.mine = well;
  server.mine.max_transfer_size = 1000;
  EXPECT_EQ(Manager::accept(incoming, server), VIP_INVALID_MTU);
  server.mine = well;
  server.mine.has_qos = true;
  EXPECT_EQ(Manager::accept(incoming, server), VIP_INVALID_QOS);
  EXPECT_EQ(server.state(), State::idle);
  EXPECT_EQ(client.state(), State::pending);  // has heard nothing
  server.mine = well;
  EXPECT_EQ(Manager::accept(incoming, server), VIP_SUCCESS);
  EXPECT_EQ(outcome.get(), VIP_SUCCESS);
}

TEST_F(ConnectionManager, ADeviceThatRefusesIsAnErrorOfResources) {
  server.device_refuses = true;
  auto [incoming, outcome] = hold_request(a, client, b);
  EXPECT_EQ(Manager::accept(incoming, server), VIP_ERROR_RESOURCE);
  EXPECT_EQ(server.state(), State::idle);
  client.device_refuses = true;
  server.device_refuses = false;
  EXPECT_EQ(Manager::accept(incoming, server), VIP_TIMEOUT);
  EXPECT_EQ(outcome.get(), VIP_ERROR_RESOURCE);
  EXPECT_EQ(client.state(), State::idle);
  EXPECT_EQ(server.state(), State::idle);
}

TEST_F(ConnectionManager, DisconnectIsSeenByTheOtherSideAndTheSameViConnectsAgain) {
  client.mine_so_far = {70, 3};
  server.mine_so_far = {std::uint64_t{1} << 40, 80};
  for (int round = 0; round < 50; ++round) {
    connect(a, client, b, server);
    const bool client_first = round % 2 == 0;
    (client_first ? a : b).disconnect(client_first ? client : server);
    FakeVi& other = client_first ? server : client;
    ASSERT_TRUE(other.wait_for(State::error));
    EXPECT_EQ(other.close_reason(), CloseReason::disconnected);
    EXPECT_EQ(other.delivered(), (client_first ? client : server).mine_so_far);
    (client_first ? b : a).disconnect(other);
    EXPECT_EQ(client.state(), State::idle);
  }
}

TEST_F(ConnectionManager, DisconnectOfAViThatIsNotConnectedIsHarmless) {
  a.disconnect(client);
  a.disconnect(client);
  connect(a, client, b, server);
  a.disconnect(client);
  a.disconnect(client);
}

TEST_F(ConnectionManager, EveryReasonReachesTheOtherSide) {
  for (std::uint8_t reason = 0; reason <= kLastCloseReason; ++reason) {
    connect(a, client, b, server);
    a.manager.fail(client, static_cast<CloseReason>(reason));
    ASSERT_TRUE(server.wait_for(State::error));
    EXPECT_EQ(server.close_reason(), static_cast<CloseReason>(reason));
    EXPECT_EQ(client.state(), State::connected);  // knew before
    a.disconnect(client);
    b.disconnect(server);
  }
}

TEST_F(ConnectionManager, AReasonIsToldEvenIfDisconnectFollowsAtOnce) {
  for (int round = 0; round < 50; ++round) {
    connect(a, client, b, server);
    a.manager.fail(client, CloseReason::receive_queue_empty);
    a.disconnect(client);
    ASSERT_TRUE(server.wait_for(State::error));
    EXPECT_EQ(server.close_reason(), CloseReason::receive_queue_empty);
    b.disconnect(server);
  }
}

TEST_F(ConnectionManager, APollTakesWhatCameSinceTheLastOne) {
  auto requested = std::async(std::launch::async,
                              [&] { return request_until_matched(a, client, b.at("server")); });
  std::shared_ptr<ReceivedRequest> incoming;
  const auto end = Clock::now() + kLong;
  VIP_RETURN result = VIP_TIMEOUT;
  while (result == VIP_TIMEOUT && Clock::now() < end) {
    result = b.manager.wait(disc("server"), deadline_after(0), incoming);
    std::this_thread::sleep_for(1ms);
  }
  ASSERT_EQ(result, VIP_SUCCESS);
  EXPECT_EQ(Manager::accept(incoming, server), VIP_SUCCESS);
  EXPECT_EQ(requested.get(), VIP_SUCCESS);
}

// On a busy machine a request may come later than it was meant to: every other has to do.
struct BetweenWaits : ConnectionManager {
  FakeVi &client2 = vis.add(), &server2 = vis.add();

  bool once(Nic& first, Nic& second) {
    connect(a, client, first, server);
    auto requested =
        std::async(std::launch::async, [&] { return a.request(client2, second.at("server")); });
    std::this_thread::sleep_for(20ms);
    const VIP_RETURN served = second.serve(server2, "server", 2s);
    const VIP_RETURN result = requested.get();
    a.disconnect(client);
    a.disconnect(client2);
    first.disconnect(server);
    second.disconnect(server2);
    return served == VIP_SUCCESS && result == VIP_SUCCESS;
  }
  int of_six(Nic& first, Nic& second) {
    int well = 0;
    for (int i = 0; i < 6; ++i) well += once(first, second) ? 1 : 0;
    return well;
  }
};

TEST_F(BetweenWaits, ARequestGetsTheNextOne) {
  EXPECT_GE(of_six(b, b), 3);
}

// Also if that is another program's than the one before, in whichever order they have come.
TEST_F(BetweenWaits, ARequestGetsTheNextOneOfAnotherProgram) {
  Nic b2(b.manager.self());
  EXPECT_GE(of_six(b, b2), 3);
  EXPECT_GE(of_six(b2, b), 3);
}

TEST_F(ConnectionManager, SeveralThreadsWaitForTheSameAndForDifferentOnes) {
  constexpr std::size_t kEach = 8;
  const auto servers = vis.add(2 * kEach), clients = vis.add(2 * kEach);
  std::vector<std::future<VIP_RETURN>> served, requested;
  for (std::size_t i = 0; i < servers.size(); ++i)
    served.push_back(std::async(std::launch::async, [&, i] {
      return b.serve(*servers[i], i % 2 == 0 ? "same" : numbered("other", i));
    }));
  for (std::size_t i = 0; i < clients.size(); ++i)
    requested.push_back(std::async(std::launch::async, [&, i] {
      return request_until_matched(a, *clients[i],
                                   b.at(i % 2 == 0 ? "same" : numbered("other", i)));
    }));
  for (auto& result : requested) EXPECT_EQ(result.get(), VIP_SUCCESS);
  for (auto& result : served) EXPECT_EQ(result.get(), VIP_SUCCESS);
}

TEST_F(ConnectionManager, TwoNicHandlesOfOneAddress) {
  Nic b2(b.manager.self());
  FakeVi &client2 = vis.add(), &server2 = vis.add();
  connect(a, client, b, server, "first");
  connect(a, client2, b2, server2, "second");
  EXPECT_EQ(client2.remote().queue_pair.number, server2.mine.queue_pair.number);
  // Both wait for the same: each gets one.
  const auto clients = vis.add(2), servers = vis.add(2);
  auto one = std::async(std::launch::async, [&] { return b.serve(*servers[0], "same"); });
  auto two = std::async(std::launch::async, [&] { return b2.serve(*servers[1], "same"); });
  EXPECT_EQ(request_until_matched(a, *clients[0], b.at("same")), VIP_SUCCESS);
  EXPECT_EQ(request_until_matched(a, *clients[1], b.at("same")), VIP_SUCCESS);
  EXPECT_EQ(one.get(), VIP_SUCCESS);
  EXPECT_EQ(two.get(), VIP_SUCCESS);
}

TEST_F(ConnectionManager, WithinOneNic) {
  connect(a, client, a, server);
  a.disconnect(client);
  EXPECT_TRUE(server.wait_for(State::error));
}

TEST_F(ConnectionManager, DisconnectEndsABlockedRequestAndABlockedAccept) {
  auto [incoming, outcome] = hold_request(a, client, b);
  a.disconnect(client);
  EXPECT_EQ(outcome.get(), VIP_INVALID_STATE);
  EXPECT_EQ(Manager::accept(incoming, server), VIP_TIMEOUT);
}

TEST_F(ConnectionManager, ShutdownEndsEverythingThatBlocks) {
  auto nic_c = std::make_unique<Nic>(nic(3));
  std::shared_ptr<ReceivedRequest> never;
  FakeVi &pending = vis.add(), &peer = vis.add();
  auto waited = std::async(
      std::launch::async, [&] { return nic_c->manager.wait(disc("server"), std::nullopt, never); });
  HeldRequest held = hold_request(*nic_c, pending, a, "hold");
  ASSERT_EQ(nic_c->manager.peer_request(peer, disc("p"), a.at("p"), std::nullopt), VIP_SUCCESS);
  auto peered = std::async(std::launch::async, [&] {
    EndpointInfo card;
    return nic_c->manager.peer_wait(peer, card);
  });
  connect(*nic_c, client, b, server);
  std::this_thread::sleep_for(500ms);  // all of them block by now
  nic_c->manager.shutdown();
  EXPECT_EQ(waited.get(), VIP_ERROR_RESOURCE);
  EXPECT_EQ(held.outcome.get(), VIP_ERROR_RESOURCE);
  EXPECT_EQ(peered.get(), VIP_ERROR_RESOURCE);
  EXPECT_TRUE(server.wait_for(State::error));
  FakeVi& late = vis.add();
  EXPECT_EQ(nic_c->request(late, a.at("hold")), VIP_ERROR_RESOURCE);
  nic_c.reset();
}

// A request that comes in the last moment is nobody's: afterwards the manager must be gone.
TEST_F(ConnectionManager, AWaitThatShutdownEndsHasNoRequest) {
  for (int round = 0; round < 100; ++round) {
    Nic c(nic(3));
    FakeVi late;
    std::shared_ptr<ReceivedRequest> incoming;
    auto waited = std::async(std::launch::async,
                             [&] { return c.manager.wait(disc("c"), in(kLong), incoming); });
    auto requested = std::async(std::launch::async, [&] {
      return a.request(late, {nic(3), disc("c")});
    });
    std::this_thread::sleep_for(std::chrono::microseconds(20 * round));
    c.manager.shutdown();
    EXPECT_EQ(waited.get() == VIP_SUCCESS, incoming != nullptr);
    EXPECT_EQ(requested.get(), VIP_NO_MATCH);
  }
}

// Two threads of a program that does not know what it does: nobody waits for ever.
TEST_F(ConnectionManager, ASecondAttemptOfAPartyEndsTheFirst) {
  auto [incoming, outcome] = hold_request(a, client, b);
  EXPECT_EQ(a.request(client, b.at("nobody")), VIP_NO_MATCH);
  EXPECT_EQ(outcome.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(Manager::accept(incoming, server), VIP_TIMEOUT);
  EXPECT_EQ(outcome.get(), VIP_INVALID_STATE);
}

TEST_F(ConnectionManager, ARequestOutlivesItsNic) {
  auto nic_c = std::make_unique<Nic>(nic(3));
  std::shared_ptr<ReceivedRequest> held;
  std::atomic<bool> closed{false};
  auto requested = std::async(std::launch::async, [&] {
    VIP_RETURN result = VIP_NO_MATCH;
    while (result == VIP_NO_MATCH && !closed) result = a.request(client, {nic(3), disc("c")});
    return result;
  });
  ASSERT_EQ(nic_c->manager.wait(disc("c"), in(kLong), held), VIP_SUCCESS);
  closed = true;
  nic_c.reset();
  EXPECT_EQ(requested.get(), VIP_NO_MATCH);
  EXPECT_EQ(Manager::accept(held, server), VIP_INVALID_PARAMETER);
  EXPECT_EQ(Manager::reject(held), VIP_INVALID_PARAMETER);
}

TEST_F(ConnectionManager, NoRouteIsNotReachable) {
  // From a loopback address nothing else can be reached.
  EXPECT_EQ(a.request(client, {{{198, 51, 100, 1}, kPort}, disc("x")}), VIP_NOT_REACHABLE);
  EXPECT_EQ(client.state(), State::idle);
}

TEST_F(ConnectionManager, AliasesReachTheOtherSideBeforeAnnounceReturns) {
  a.manager.announce(11, 111);
  connect(a, client, b, server);
  using Map = std::map<std::uint32_t, std::uint32_t>;
  EXPECT_EQ(server.aliases(), (Map{{11, 111}}));
  EXPECT_EQ(client.aliases(), Map{});
  a.manager.announce(12, 112);
  EXPECT_EQ(server.aliases(), (Map{{11, 111}, {12, 112}}));
  a.manager.announce(11, 0);
  EXPECT_EQ(server.aliases(), (Map{{12, 112}}));
  b.manager.announce(5, 55);
  EXPECT_EQ(client.aliases(), (Map{{5, 55}}));
  b.disconnect(server);
  EXPECT_TRUE(client.wait_for(State::error));
  a.manager.announce(13, 113);  // nobody is there: returns at once
  a.disconnect(client);
  connect(a, client, b, server);
  EXPECT_EQ(server.aliases(), (Map{{12, 112}, {13, 113}}));
  EXPECT_EQ(client.aliases(), (Map{{5, 55}}));
}

TEST_F(ConnectionManager, ThousandsOfAliasesPassWhileConnecting) {
  for (std::uint32_t i = 1; i <= 5000; ++i) {
    a.manager.announce(i, i + 1);
    b.manager.announce(i, i + 2);
  }
  connect(a, client, b, server);
  a.manager.announce(1, 9);  // all before it are known as well
  EXPECT_EQ(server.aliases().size(), 5000u);
  EXPECT_EQ(server.aliases().at(1), 9u);
  EXPECT_EQ(client.aliases().size(), 5000u);
}

// Whether its program may still take it over, which at a port of its own forgets all there was.
TEST_F(ConnectionManager, IsInUse) {
  EXPECT_TRUE(b.manager.is_unused());
  b.manager.announce(5, 6);
  EXPECT_FALSE(b.manager.is_unused());
  b.manager.announce(5, 0);
  EXPECT_TRUE(b.manager.is_unused());
  HeldRequest held = hold_request(a, client, b);
  EXPECT_FALSE(a.manager.is_unused());
  EXPECT_FALSE(b.manager.is_unused());
  EXPECT_EQ(Manager::reject(held.incoming), VIP_SUCCESS);
  EXPECT_EQ(held.outcome.get(), VIP_REJECT);
  EXPECT_TRUE(b.manager.is_unused());
}

}  // namespace
}  // namespace viaduct::vipl::test
