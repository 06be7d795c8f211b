// The client/server model of connecting.
#include <thread>

#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

namespace {

using Clock = std::chrono::steady_clock;

long milliseconds_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
}

class ClientServer : public PairTest {
 protected:
  // One request of `client` in a thread of its own, for a server that this thread plays.
  class Request {
   public:
    Request(const Vi& client, const Nic& server, const std::string& discriminator,
            VIP_ULONG timeout = kSoon)
        : thread_([=, &client, &server, this] {
            Address local(client.nic(), "the client"), remote(server, discriminator);
            code_ = vipl_test::request(client, local, remote, timeout, &attributes_);
          }) {}
    ~Request() {
      if (thread_.joinable()) thread_.join();
    }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    VIP_RETURN result() {
      thread_.join();
      return code_;
    }
    const VIP_VI_ATTRIBUTES& attributes() const { return attributes_; }

   private:
    VIP_RETURN code_ = VIP_NO_MATCH;
    VIP_VI_ATTRIBUTES attributes_{};
    std::thread thread_;
  };

  // The next request for this discriminator at b_.
  VIP_CONN_HANDLE wait(const std::string& discriminator) {
    Address local(b_, discriminator);
    VIP_CONN_HANDLE connection = nullptr;
    EXPECT_VIP(VIP_SUCCESS,
               VipConnectWait(b_, local, kSoon, caller_, &caller_attributes_, &connection));
    return connection;
  }

  // One request by this thread.
  VIP_RETURN ask(const Vi& client, VIP_NET_ADDRESS* remote, VIP_ULONG timeout) {
    Address local(client.nic(), "the client");
    VIP_VI_ATTRIBUTES attributes;
    return VipConnectRequest(client, local, remote, timeout, &attributes);
  }

  Address caller_;
  VIP_VI_ATTRIBUTES caller_attributes_{};
};

TEST_F(ClientServer, EachLearnsOfTheOther) {
  VIP_VI_ATTRIBUTES client_attributes = vi_attributes(), server_attributes = vi_attributes();
  client_attributes.EnableRdmaWrite = VIP_TRUE;
  server_attributes.EnableRdmaRead = VIP_TRUE;
  const Vi client(a_, client_attributes), server(b_, server_attributes);
  const std::string discriminator = fresh_discriminator();
  Request request(client, b_, discriminator);
  const VIP_CONN_HANDLE connection = wait(discriminator);
  EXPECT_EQ("the client", caller_.discriminator());
  ASSERT_EQ(6, caller_->HostAddressLen);
  EXPECT_EQ(0, std::memcmp(caller_->HostAddress, a_.attributes().LocalNicAddress, 6));
  EXPECT_EQ(VIP_SERVICE_RELIABLE_DELIVERY, caller_attributes_.ReliabilityLevel);
  EXPECT_EQ(client_attributes.MaxTransferSize, caller_attributes_.MaxTransferSize);
  EXPECT_EQ(VIP_TRUE, caller_attributes_.EnableRdmaWrite);
  EXPECT_EQ(VIP_FALSE, caller_attributes_.EnableRdmaRead);
  EXPECT_EQ(VIP_STATE_CONNECT_PENDING, client.state());
  EXPECT_VIP(VIP_SUCCESS, VipConnectAccept(connection, server));
  EXPECT_VIP(VIP_SUCCESS, request.result());
  EXPECT_EQ(VIP_FALSE, request.attributes().EnableRdmaWrite);
  EXPECT_EQ(VIP_TRUE, request.attributes().EnableRdmaRead);
  EXPECT_EQ(VIP_STATE_CONNECTED, client.state());
  EXPECT_EQ(VIP_STATE_CONNECTED, server.state());
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipConnectAccept(connection, server));  // used up
}

TEST_F(ClientServer, WaitTimesOut) {
  Address local(b_, fresh_discriminator()), remote;
  VIP_VI_ATTRIBUTES attributes;
  VIP_CONN_HANDLE connection;
  const auto start = Clock::now();
  EXPECT_VIP(VIP_TIMEOUT, VipConnectWait(b_, local, 300, remote, &attributes, &connection));
  EXPECT_GE(milliseconds_since(start), 300);
  EXPECT_VIP(VIP_TIMEOUT, VipConnectWait(b_, local, 0, remote, &attributes, &connection));
}

// Programs retry in a loop: it must come at once, however long they would wait for a connection.
TEST_F(ClientServer, NobodyWaits) {
  const Vi client(a_);
  Address remote(b_, fresh_discriminator());
  const auto start = Clock::now();
  EXPECT_VIP(VIP_NO_MATCH, ask(client, remote, VIP_INFINITE));
  EXPECT_VIP(VIP_NO_MATCH, ask(client, remote, ~0UL));
  EXPECT_LT(milliseconds_since(start), static_cast<long>(kSoon) / 2);
  EXPECT_EQ(VIP_STATE_IDLE, client.state());
}

TEST_F(ClientServer, AnotherDiscriminatorDoesNotMatch) {
  const Vi client(a_), server(b_);
  const std::string awaited = "prefix";
  Request good(client, b_, awaited);
  std::thread other([&] {
    const Vi stranger(a_);
    for (const std::string& wrong : {std::string("prefi"), std::string("prefixx"), std::string()}) {
      Address remote(b_, wrong);
      EXPECT_VIP(VIP_NO_MATCH, ask(stranger, remote, kSoon)) << wrong;
    }
  });
  const VIP_CONN_HANDLE connection = wait(awaited);
  EXPECT_VIP(VIP_SUCCESS, VipConnectAccept(connection, server));
  EXPECT_VIP(VIP_SUCCESS, good.result());
  other.join();
}

TEST_F(ClientServer, NoAnswerInTime) {
  const Vi client(a_), server(b_);
  const std::string discriminator = fresh_discriminator();
  Request request(client, b_, discriminator, 5000);
  const VIP_CONN_HANDLE connection = wait(discriminator);
  EXPECT_VIP(VIP_TIMEOUT, request.result());
  EXPECT_EQ(VIP_STATE_IDLE, client.state());
  EXPECT_VIP(VIP_TIMEOUT, VipConnectAccept(connection, server));
  EXPECT_EQ(VIP_STATE_IDLE, server.state());
}

TEST_F(ClientServer, NoSuchHost) {
  const Vi client(a_);
  const std::array<VIP_UINT8, 6> nobody{10, 9, 0, 77, 0x12, 0x34}, no_route{203, 0, 113, 1, 1, 1};
  Address dead(nobody, "x"), unreachable(no_route, "x");
  // Before the kernel gives up, and after.
  for (const VIP_ULONG timeout : {500, 5000}) EXPECT_VIP(VIP_TIMEOUT, ask(client, dead, timeout));
  EXPECT_VIP(VIP_NOT_REACHABLE, ask(client, unreachable, kSoon));
  EXPECT_EQ(VIP_STATE_IDLE, client.state());
}

TEST_F(ClientServer, BadParameters) {
  const Vi client(a_), server(b_);
  Address local(a_, "x"), remote(b_, fresh_discriminator());
  VIP_VI_ATTRIBUTES attributes;
  VIP_CONN_HANDLE connection;
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipConnectRequest(client, local, remote, 0, &attributes));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipConnectRequest(client, local, nullptr, kSoon, &attributes));
  EXPECT_VIP(VIP_INVALID_PARAMETER,
             VipConnectRequest(no_handle(), local, remote, kSoon, &attributes));
  EXPECT_VIP(VIP_INVALID_PARAMETER,
             VipConnectWait(no_handle(), local, kMoment, remote, &attributes, &connection));
  EXPECT_VIP(VIP_INVALID_PARAMETER,
             VipConnectWait(b_, nullptr, kMoment, remote, &attributes, &connection));
  EXPECT_VIP(VIP_INVALID_PARAMETER,
             VipConnectWait(b_, local, kMoment, remote, &attributes, nullptr));
  Address too_long(b_, std::string(b_.attributes().MaxDiscriminatorLen + 1u, 'x'));
  EXPECT_VIP(VIP_INVALID_PARAMETER, ask(client, too_long, kSoon));
  EXPECT_VIP(VIP_INVALID_PARAMETER,
             VipConnectWait(b_, too_long, kMoment, remote, &attributes, &connection));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipConnectAccept(no_handle(), server));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipConnectAccept(nullptr, server));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipConnectReject(no_handle()));
  EXPECT_EQ(VIP_STATE_IDLE, client.state());
}

TEST_F(ClientServer, TheLongestDiscriminator) {
  const Vi client(a_), server(b_);
  const std::string discriminator(b_.attributes().MaxDiscriminatorLen, 'd');
  Request request(client, b_, discriminator);
  EXPECT_VIP(VIP_SUCCESS, VipConnectAccept(wait(discriminator), server));
  EXPECT_VIP(VIP_SUCCESS, request.result());
}

TEST_F(ClientServer, Reject) {
  const Vi client(a_), server(b_);
  const std::string discriminator = fresh_discriminator();
  const Memory in(a_, 1, 64), out(b_, 1, 64);
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(client, in.receive(0, 64), in.handle()));
  {
    Request request(client, b_, discriminator);
    const VIP_CONN_HANDLE connection = wait(discriminator);
    EXPECT_VIP(VIP_SUCCESS, VipConnectReject(connection));
    EXPECT_VIP(VIP_INVALID_PARAMETER, VipConnectReject(connection));
    EXPECT_VIP(VIP_REJECT, request.result());
  }
  // The client tries again with the same VI; what it has posted still serves.
  EXPECT_EQ(VIP_STATE_IDLE, client.state());
  Request request(client, b_, discriminator);
  EXPECT_VIP(VIP_SUCCESS, VipConnectAccept(wait(discriminator), server));
  EXPECT_VIP(VIP_SUCCESS, request.result());
  out.fill(0, "hello");
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(server, out.send(0, 5), out.handle()));
  EXPECT_EQ(out.raw(0), next_sent(server));
  EXPECT_EQ(in.raw(0), next_received(client));
  EXPECT_EQ("hello", in.text(0, 5));
}

// The server may change its VI and try again; the client knows nothing of it.
TEST_F(ClientServer, AcceptInsistsOnEqualAttributes) {
  const Vi client(a_), server(b_);
  const std::string discriminator = fresh_discriminator();
  Request request(client, b_, discriminator);
  const VIP_CONN_HANDLE connection = wait(discriminator);
  const VIP_VI_ATTRIBUTES equal = vi_attributes();
  VIP_VI_ATTRIBUTES other = equal;
  other.ReliabilityLevel = VIP_SERVICE_RELIABLE_RECEPTION;
  ASSERT_VIP(VIP_SUCCESS, VipSetViAttributes(server, &other));
  EXPECT_VIP(VIP_INVALID_RELIABILITY_LEVEL, VipConnectAccept(connection, server));
  other = equal;
  other.MaxTransferSize /= 2;
  ASSERT_VIP(VIP_SUCCESS, VipSetViAttributes(server, &other));
  EXPECT_VIP(VIP_INVALID_MTU, VipConnectAccept(connection, server));
  int quality = 0;
  other = equal;
  other.QoS = &quality;
  ASSERT_VIP(VIP_SUCCESS, VipSetViAttributes(server, &other));
  EXPECT_VIP(VIP_INVALID_QOS, VipConnectAccept(connection, server));
  other = equal;
  other.EnableRdmaWrite = other.EnableRdmaRead = VIP_TRUE;  // need not be equal
  ASSERT_VIP(VIP_SUCCESS, VipSetViAttributes(server, &other));
  EXPECT_VIP(VIP_SUCCESS, VipConnectAccept(connection, server));
  EXPECT_VIP(VIP_SUCCESS, request.result());
}

TEST_F(ClientServer, StatesThatDoNotFit) {
  const Vi client(a_), server(b_), third(a_);
  connect(client, server);
  Address remote(b_, fresh_discriminator());
  EXPECT_VIP(VIP_INVALID_STATE, ask(client, remote, kSoon));
  const std::string discriminator = fresh_discriminator();
  Request request(third, b_, discriminator);
  const VIP_CONN_HANDLE connection = wait(discriminator);
  EXPECT_VIP(VIP_INVALID_STATE, VipConnectAccept(connection, server));
  const Vi fresh(b_);
  EXPECT_VIP(VIP_SUCCESS, VipConnectAccept(connection, fresh));
  EXPECT_VIP(VIP_SUCCESS, request.result());
}

// NT does not set the bytes of its own address.
TEST_F(ClientServer, TheClientsOwnAddressDoesNotMatter) {
  const Vi client(a_), server(b_);
  const std::string discriminator = fresh_discriminator();
  std::thread waiting(
      [&] { EXPECT_VIP(VIP_SUCCESS, VipConnectAccept(wait(discriminator), server)); });
  const std::array<VIP_UINT8, 6> nonsense{0xcd, 0xcd, 0xcd, 0xcd, 0xcd, 0xcd};
  Address local(nonsense, "mine"), remote(b_, discriminator);
  EXPECT_VIP(VIP_SUCCESS, vipl_test::request(client, local, remote));
  waiting.join();
  EXPECT_EQ("mine", caller_.discriminator());
}

TEST_F(ClientServer, DisconnectIsHarmless) {
  const Vi client(a_), server(b_);
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(client));  // never connected
  connect(client, server);
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(client));
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(client));
  EXPECT_EQ(VIP_STATE_IDLE, client.state());
  EXPECT_TRUE(eventually([&] { return server.state() == VIP_STATE_ERROR; }));
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(server));
  EXPECT_EQ(VIP_STATE_IDLE, server.state());
}

TEST_F(ClientServer, ReconnectTheSameVis) {
  const Vi client(a_), server(b_);
  const Memory out(a_, 1, 64), in(b_, 1, 64);
  for (int round = 0; round < 10; ++round) {
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in.receive(0, 64), in.handle()));
    if (round % 2)
      connect(server, client);
    else
      connect(client, server);
    const std::string text = "round " + std::to_string(round);
    out.fill(0, text);
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out.send(0, text.size()), out.handle()));
    EXPECT_EQ(out.raw(0), next_sent(client));
    EXPECT_EQ(in.raw(0), next_received(server));
    EXPECT_EQ(text, in.text(0, text.size()));
    EXPECT_VIP(VIP_SUCCESS, VipDisconnect(client));
    EXPECT_VIP(VIP_SUCCESS, VipDisconnect(server));
  }
}

TEST_F(ClientServer, BothEndsOnOneNic) {
  const Vi client(a_), server(a_);
  connect(client, server);
  const Memory memory(a_, 2, 64);
  memory.fill(0, "loop");
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, memory.receive(1, 64), memory.handle()));
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, memory.send(0, 4), memory.handle()));
  EXPECT_EQ(memory.raw(1), next_received(server));
  EXPECT_EQ("loop", memory.text(1, 4));
  EXPECT_EQ(memory.raw(0), next_sent(client));
}

TEST_F(ClientServer, ManyWaitAtOnce) {
  constexpr int kWaiters = 8;
  std::vector<std::thread> threads;
  for (int i = 0; i < kWaiters; ++i)
    threads.emplace_back([&, i] {
      const Vi server(b_);
      Address local(b_, "one of many " + std::to_string(i)), remote;
      VIP_VI_ATTRIBUTES attributes;
      VIP_CONN_HANDLE connection = nullptr;
      ASSERT_VIP(VIP_SUCCESS, VipConnectWait(b_, local, kSoon, remote, &attributes, &connection));
      EXPECT_EQ("client " + std::to_string(i), remote.discriminator());
      EXPECT_VIP(VIP_SUCCESS, VipConnectAccept(connection, server));
    });
  for (int i = kWaiters - 1; i >= 0; --i) {
    const Vi client(a_);
    Address local(a_, "client " + std::to_string(i)),
        remote(b_, "one of many " + std::to_string(i));
    EXPECT_VIP(VIP_SUCCESS, vipl_test::request(client, local, remote));
  }
  for (std::thread& thread : threads) thread.join();
}

// A server that takes everybody with one discriminator, one after the other.
TEST_F(ClientServer, ManyClientsOfOneServer) {
  constexpr int kClients = 8;
  const std::string discriminator = fresh_discriminator();
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i)
    threads.emplace_back([&] {
      const Vi client(a_);
      Request request(client, b_, discriminator);
      EXPECT_VIP(VIP_SUCCESS, request.result());
      EXPECT_TRUE(eventually([&] { return client.state() == VIP_STATE_ERROR; }));
    });
  {
    std::vector<std::unique_ptr<Vi>> servers;
    for (int i = 0; i < kClients; ++i) {
      servers.push_back(std::make_unique<Vi>(b_));
      EXPECT_VIP(VIP_SUCCESS, VipConnectAccept(wait(discriminator), *servers.back()));
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

}  // namespace viaduct::vipl_test
