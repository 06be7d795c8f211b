// What calls meet: servers that say the wrong thing, or nothing.
#include <gtest/gtest.h>

#include "tests/vipl/connection/raw.hpp"

namespace viaduct::vipl::test {
namespace {

using State = FakeVi::State;

// One that calls of a client of its own meet.
class BadServer {
 public:
  BadServer(Nic& caller, FakeVi& client, const NicAddress& address)
      : caller_(caller), client_(client), address_(address) {}

  // The next call's connection, its request read. One at a time.
  Raw& take_call() {
    pollfd ready{listener_.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, 30000), 1);
    server_.emplace(accepted_socket(listener_.get()));
    RequestBytes bytes;
    std::size_t size = 0;
    for (pollfd more{server_->fd(), POLLIN, 0}; size < bytes.size();) {
      if (::poll(&more, 1, 30000) != 1) break;
      const ssize_t n = ::recv(server_->fd(), bytes.data() + size, bytes.size() - size, 0);
      if (n <= 0) break;
      size += static_cast<std::size_t>(n);
    }
    Request request;
    EXPECT_EQ(parse(bytes, request), Parsed::valid);
    return *server_;
  }
  std::future<VIP_RETURN> call(Clock::duration longest) {
    return std::async(std::launch::async, [this, longest] {
      return caller_.request(client_, {address_, disc("x")}, longest);
    });
  }
  FakeVi& client() { return client_; }

 private:
  Nic& caller_;
  FakeVi& client_;
  const NicAddress address_;
  const UniqueFd listener_ = listening_socket(address_);
  std::optional<Raw> server_;
};

struct BadServers : testing::Test {
  Vis vis;
  FakeVi& client = vis.add();
  Nic a{nic(1)};
  BadServer server{a, client, nic(50)};

  // Plays each part with a server and a client of its own, all at once: they are long timeouts.
  void at_once(const std::vector<std::function<void(BadServer&)>>& parts) {
    std::deque<BadServer> servers;
    std::vector<std::future<void>> played;
    for (std::uint8_t n = 51; const auto& part : parts) {
      BadServer& other = servers.emplace_back(a, vis.add(), nic(n++));
      played.push_back(std::async(std::launch::async, [&part, &other] { part(other); }));
    }
    for (auto& part : played) part.get();
  }
  EndpointInfo card() const { return FakeVi().mine; }
};

TEST_F(BadServers, WhatIsNoAnswerIsAskedAgainUntilTheTimeIsOver) {
  std::vector<std::vector<std::byte>> nonsense;
  const auto add = [&](const Message& message) {
    const auto bytes = encode(message);
    nonsense.emplace_back(bytes.span().begin(), bytes.span().end());
  };
  add({.type = MessageType::ready});
  add({.type = MessageType::ended});
  add({.type = static_cast<MessageType>(99)});
  add({.type = MessageType::refused, .code = 77});
  Message bad_card{.type = MessageType::accepted, .card = card()};
  bad_card.card.reliability = 3;
  add(bad_card);
  nonsense.push_back(std::vector<std::byte>(5000, std::byte{'x'}));
  nonsense.emplace_back();
  std::vector<std::function<void(BadServer&)>> parts;
  for (const auto& bytes : nonsense)
    parts.push_back([&bytes](BadServer& other) {
      auto requested = other.call(1500ms);
      for (int again = 0; again < 2; ++again) {
        Raw& raw = other.take_call();
        raw.send(bytes);
        if (bytes.empty()) raw.close();
      }
      EXPECT_EQ(requested.get(), VIP_TIMEOUT);
      EXPECT_EQ(other.client().state(), State::idle);
    });
  at_once(parts);
}

TEST_F(BadServers, SilenceIsATimeout) {
  at_once({[](BadServer& other) {
             auto requested = other.call(1500ms);
             other.take_call();
             EXPECT_EQ(requested.get(), VIP_TIMEOUT);
           },
           [](BadServer& other) {
             auto requested = other.call(1500ms);
             other.take_call().send({.type = MessageType::held});
             EXPECT_EQ(requested.get(), VIP_TIMEOUT);
           }});
}

TEST_F(BadServers, AnAcceptanceWithOtherAttributesIsNone) {
  const auto accepted_with = [&](const EndpointInfo& other) {
    auto requested = server.call(kLong);
    server.take_call().send({.type = MessageType::accepted, .card = other});
    const VIP_RETURN result = requested.get();
    EXPECT_EQ(client.state(), State::idle);
    return result;
  };
  EndpointInfo other = card();
  other.reliability = VIP_SERVICE_UNRELIABLE;
  EXPECT_EQ(accepted_with(other), VIP_INVALID_RELIABILITY_LEVEL);
  other = card();
  ++other.max_transfer_size;
  EXPECT_EQ(accepted_with(other), VIP_INVALID_MTU);
  other = card();
  other.has_qos = true;
  EXPECT_EQ(accepted_with(other), VIP_INVALID_QOS);
}

TEST_F(BadServers, OnceConnectedNonsenseEndsTheConnection) {
  for (const MessageType type : {MessageType::accepted, MessageType::held, MessageType::ready}) {
    auto requested = server.call(kLong);
    Raw& raw = server.take_call();
    raw.send({.type = MessageType::accepted, .card = card()});
    ASSERT_EQ(requested.get(), VIP_SUCCESS);
    const auto answer = raw.receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->type, MessageType::ready);
    raw.send({.type = type, .card = card()});
    ASSERT_TRUE(client.wait_for(State::error));
    EXPECT_EQ(client.close_reason(), CloseReason::transport);
    a.disconnect(client);
  }
}

}  // namespace
}  // namespace viaduct::vipl::test
