// Several processes: some share an address, and either side is killed at every step.
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "libvipl/connection/rendezvous_socket.hpp"
#include "tests/vipl/connection/own_nic.hpp"
#include "tests/vipl/connection/process.hpp"

namespace viaduct::vipl::test {
namespace {

const std::string kSuccess = std::to_string(VIP_SUCCESS), kNoMatch = std::to_string(VIP_NO_MATCH),
                  kTimeout = std::to_string(VIP_TIMEOUT);

std::string call(const NicAddress& to, const std::string& name) {
  return to.text() + " " + name;
}

// Until somebody waits there, so that a request cannot come too early.
void await_rendezvous(const NicAddress& at, const std::string& name, std::size_t place = 0) {
  const std::string rendezvous =
      rendezvous_name(Model::client_server, {at, disc(name)}, {}) + ":" + std::to_string(place);
  for (const auto end = Clock::now() + kLong; Clock::now() < end;) {
    std::ifstream sockets("/proc/net/unix");
    for (std::string line; std::getline(sockets, line);)
      if (line.find(rendezvous) != std::string::npos) return;
    std::this_thread::sleep_for(1ms);
  }
  ADD_FAILURE() << "nobody waits at " << rendezvous;
}

// Its command is "serve NAME", which accepts a request, or "hold NAME", which keeps it.
void start(Process& server, const std::string& how, const NicAddress& at, const std::string& name) {
  server.tell(how + " " + name);
  await_rendezvous(at, name);
}

void connect(Process& client, Process& server, const NicAddress& at, const std::string& name) {
  start(server, "serve", at, name);
  EXPECT_EQ(client.ask("request " + call(at, name)), kSuccess);
  EXPECT_EQ(server.answer(), kSuccess);
}

void disconnect(Process& client, Process& server) {
  EXPECT_EQ(client.ask("disconnect"), "idle");
  EXPECT_EQ(server.ask("await error"), "error");
  EXPECT_EQ(server.ask("disconnect"), "idle");
}

TEST(ConnectionProcesses, ShareAnAddressAndGetTheirOwnRequests) {
  constexpr int kServers = 5;
  std::vector<std::unique_ptr<Process>> servers;
  for (int i = 0; i < kServers; ++i) servers.push_back(std::make_unique<Process>(nic(1)));
  Process client(nic(2)), local(nic(1));  // on another address, and on the same
  for (int round = 0; round < 6; ++round)
    for (int i = 0; i < kServers; ++i) {
      Process& caller = round % 2 == 0 ? client : local;
      Process& server = *servers[static_cast<std::size_t>((i * 3 + round) % kServers)];
      connect(caller, server, nic(1), std::to_string(i));
      disconnect(caller, server);
    }
}

TEST(ConnectionProcesses, SeveralWaitForTheSameAndEachGetsOne) {
  constexpr std::size_t kServers = 4;
  std::vector<std::unique_ptr<Process>> servers, clients;
  for (std::size_t i = 0; i < kServers; ++i) {
    servers.push_back(std::make_unique<Process>(nic(1)));
    clients.push_back(std::make_unique<Process>(nic(2)));
    servers.back()->tell("serve same");
  }
  await_rendezvous(nic(1), "same", kServers - 1);
  for (auto& client : clients) EXPECT_EQ(client->ask("request " + call(nic(1), "same")), kSuccess);
  for (auto& server : servers) EXPECT_EQ(server->answer(), kSuccess);
}

// Processes of the same address come and die all the time; a request may be in their hands.
TEST(ConnectionProcesses, BystandersMayDieAtAnyMoment) {
  Process client(nic(2)), server(nic(1));
  std::atomic<bool> stop{false};
  std::thread killer([&] {
    std::vector<std::unique_ptr<Process>> bystanders(4);
    for (std::size_t i = 0; !stop; ++i) bystanders[i % 4] = std::make_unique<Process>(nic(1));
  });
  for (int round = 0; round < 200; ++round) {
    connect(client, server, nic(1), "x");
    disconnect(client, server);
  }
  stop = true;
  killer.join();
}

TEST(ConnectionProcesses, AStoppedBystanderDelaysButDoesNotPrevent) {
  Process client(nic(2)), server(nic(1)), stopped(nic(1));
  stopped.signal(SIGSTOP);
  for (int round = 0; round < 3; ++round) {
    connect(client, server, nic(1), "x");
    disconnect(client, server);
  }
}

// It finds what the client has given up meanwhile, and then what the client still waits for.
TEST(ConnectionProcesses, AServerThatWasStoppedServesTheClientThatStillWaits) {
  Process client(nic(2)), bystander(nic(1)), server(nic(1));
  start(server, "serve", nic(1), "x");
  server.signal(SIGSTOP);
  client.tell("request " + call(nic(1), "x"));
  std::this_thread::sleep_for(5s);  // it asks again after 3
  server.signal(SIGCONT);
  EXPECT_EQ(client.answer(), kSuccess);
  EXPECT_EQ(server.answer(), kSuccess);
}

struct Kill : testing::Test {
  // Those that are not killed, and must not notice.
  Process client{nic(2)}, server{nic(1)};

  void TearDown() override {
    connect(client, server, nic(1), "afterwards");
    disconnect(client, server);
  }
};

TEST_F(Kill, AServerThatAccepts) {
  for (const std::string where : {"card", "establish"}) {
    Process victim(nic(1), where);
    start(victim, "serve", nic(1), "x");
    EXPECT_EQ(client.ask("request " + call(nic(1), "x")), kNoMatch) << where;
    EXPECT_EQ(victim.answer(), "");
    EXPECT_EQ(client.ask("state"), "idle");
  }
}

TEST_F(Kill, AServerThatHasTheRequest) {
  Process victim(nic(1));
  start(victim, "hold", nic(1), "x");
  client.tell("request " + call(nic(1), "x"));
  EXPECT_EQ(victim.answer(), kSuccess);
  victim.kill();
  EXPECT_EQ(client.answer(), kNoMatch);
}

TEST_F(Kill, AServerThatWaits) {
  Process victim(nic(1));
  start(victim, "serve", nic(1), "x");
  victim.kill();
  EXPECT_EQ(client.ask("request " + call(nic(1), "x")), kNoMatch);
}

TEST_F(Kill, AConnectedServer) {
  Process victim(nic(1));
  connect(client, victim, nic(1), "x");
  victim.kill();
  EXPECT_EQ(client.ask("await error"), "error");
  client.ask("disconnect");
}

TEST_F(Kill, AClientThatHasNotAskedYet) {
  Process victim(nic(2), "card");
  start(server, "serve", nic(1), "x");
  EXPECT_EQ(victim.ask("request " + call(nic(1), "x")), "");
  EXPECT_EQ(client.ask("request " + call(nic(1), "x")), kSuccess);
  EXPECT_EQ(server.answer(), kSuccess);
  disconnect(client, server);
}

TEST_F(Kill, AClientThatWaitsForTheAnswer) {
  Process victim(nic(2));
  start(server, "hold", nic(1), "x");
  victim.tell("request " + call(nic(1), "x"));
  EXPECT_EQ(server.answer(), kSuccess);
  victim.kill();
  EXPECT_EQ(server.ask("accept"), kTimeout);
  EXPECT_EQ(server.ask("state"), "idle");
}

TEST_F(Kill, AClientThatHasTheAnswer) {
  Process victim(nic(2), "establish");
  start(server, "serve", nic(1), "x");
  EXPECT_EQ(victim.ask("request " + call(nic(1), "x")), "");
  EXPECT_EQ(server.answer(), kTimeout);
  EXPECT_EQ(server.ask("state"), "idle");
}

TEST_F(Kill, AConnectedClient) {
  Process victim(nic(2));
  connect(victim, server, nic(1), "x");
  victim.kill();
  EXPECT_EQ(server.ask("await error"), "error");
  server.ask("disconnect");
}

// The survivor goes on looking, and finds the peer that is started anew; in both roles of the
// tie-break, which here the addresses decide.
TEST_F(Kill, APeerAtEveryStep) {
  for (const bool higher_dies : {true, false}) {
    const NicAddress dying = nic(higher_dies ? 2 : 1), living = nic(higher_dies ? 1 : 2);
    Process& survivor = higher_dies ? server : client;
    for (const std::string where : {"card", "establish", "never"}) {
      for (const bool victim_first : {true, false}) {
        Process victim(dying, where);
        if (!victim_first) {
          EXPECT_EQ(survivor.ask("peer " + call(dying, "p")), kSuccess);
        }
        victim.tell("peer " + call(living, "p"));
        if (where == "never") {
          EXPECT_EQ(victim.answer(), kSuccess);
        }
        if (victim_first) {
          EXPECT_EQ(survivor.ask("peer " + call(dying, "p")), kSuccess);
        }
        if (where == "never") {
          EXPECT_EQ(victim.ask("finish"), kSuccess);
          EXPECT_EQ(survivor.ask("finish"), kSuccess);
          victim.kill();
          EXPECT_EQ(survivor.ask("await error"), "error");
        } else {
          victim.tell("finish");
          while (!victim.answer().empty()) {
          }
          Process again(dying);
          EXPECT_EQ(again.ask("peer " + call(living, "p")), kSuccess);
          EXPECT_EQ(again.ask("finish"), kSuccess) << where << higher_dies << victim_first;
          EXPECT_EQ(survivor.ask("finish"), kSuccess);
          EXPECT_EQ(survivor.ask("state"), "connected");
        }
        survivor.ask("disconnect");
      }
    }
  }
}

TEST_F(Kill, APeerAtAnyMoment) {
  std::minstd_rand random(5);
  for (int round = 0; round < 60; ++round) {
    const bool higher_dies = round % 2 == 0;
    const NicAddress dying = nic(higher_dies ? 2 : 1), living = nic(higher_dies ? 1 : 2);
    Process& survivor = higher_dies ? server : client;
    Process victim(dying), again(dying);
    victim.tell("peer " + call(living, "p"));
    EXPECT_EQ(survivor.ask("peer " + call(dying, "p")), kSuccess);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1500));
    victim.kill();
    // Either the victim was met before it died, or the survivor still waits.
    EXPECT_EQ(again.ask("peer " + call(living, "p")), kSuccess);
    EXPECT_EQ(survivor.ask("finish"), kSuccess);
    while (again.ask("state") != "connected" && survivor.ask("state") != "error")
      std::this_thread::sleep_for(1ms);
    if (survivor.ask("state") == "error") {
      survivor.ask("disconnect");
      EXPECT_EQ(survivor.ask("peer " + call(dying, "p")), kSuccess);
      EXPECT_EQ(survivor.ask("finish"), kSuccess);
    }
    EXPECT_EQ(again.ask("finish"), kSuccess);
    survivor.ask("disconnect");
    EXPECT_EQ(again.ask("await error"), "error");
  }
}

// A peer that asks a listener: before the program is told, before it answers, and when it has.
TEST_F(Kill, APeerThatAsksAListener) {
  const Endpoint dying{nic(5), disc("r")};
  const std::string ask = "peer " + call(nic(4), "r");
  Vis vis;
  FakeVi& vi = vis.add();
  OwnNic b(nic(4));
  ASSERT_EQ(b.listen("r"), VIP_SUCCESS);
  const auto wait_until = [&](std::size_t waiting) {
    const auto done = [&] { return b.manager.peer_counts(disc("r"))->waiting == waiting; };
    for (const auto end = Clock::now() + kLong; !done() && Clock::now() < end;)
      b.manager.progress();
    EXPECT_TRUE(done());
  };
  {
    Process victim(nic(5));
    EXPECT_EQ(victim.ask(ask), kSuccess);
    wait_until(1);
    victim.kill();
    wait_until(0);
    b.turn();
    EXPECT_EQ(b.asked(), 0u);
  }
  {
    Process victim(nic(5));
    EXPECT_EQ(victim.ask(ask), kSuccess);
    ASSERT_TRUE(b.turn_until([&] { return b.asked() == 1; }));
    victim.kill();
    wait_until(0);
    EXPECT_EQ(b.manager.peer_refuse(disc("r"), dying), VIP_NO_MATCH);
  }
  Process victim(nic(5), "establish");
  EXPECT_EQ(victim.ask(ask), kSuccess);
  ASSERT_TRUE(b.turn_until([&] { return b.asked() == 2; }));
  ASSERT_EQ(b.manager.peer_request(vi, disc("r"), dying, in(kLong)), VIP_SUCCESS);
  ASSERT_TRUE(b.turn_until([&] { return vi.times_abandoned() == 1; }));
  // The VI goes on, and meets the peer that is started anew.
  Process again(nic(5));
  EXPECT_EQ(again.ask(ask), kSuccess);
  ASSERT_TRUE(b.turn_until([&] { return b.events.size() > b.asked(); }));
  EXPECT_EQ(b.events.back().outcome, VIP_SUCCESS);
  EXPECT_EQ(again.ask("finish"), kSuccess);
  again.kill();
  ASSERT_TRUE(b.turn_until([&] { return vi.state() == FakeVi::State::error; }));
}

}  // namespace
}  // namespace viaduct::vipl::test

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--process")
    return viaduct::vipl::test::run_process(argv[2], argv[3]);
  ::signal(SIGPIPE, SIG_IGN);  // those who are told something may be dead
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
