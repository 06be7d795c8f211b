// What calls meet: servers that say the wrong thing, or nothing.
#include <gtest/gtest.h>

#include "tests/vipl/connection/raw.hpp"

namespace viaduct::vipl::test {
namespace {

using State = FakeVi::State;

struct BadServers : testing::Test {
  Vis vis;
  FakeVi& client = vis.add();
  Nic a{nic(1)};
  const NicAddress address = nic(50);
  UniqueFd listener = listening_socket(address);
  std::optional<Raw> server;  // one connection at a time

  // The next call's connection, its request read.
  Raw& take_call() {
    pollfd ready{listener.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, 30000), 1);
    server.emplace(accepted_socket(listener.get()));
    RequestBytes bytes;
    std::size_t size = 0;
    for (pollfd more{server->fd(), POLLIN, 0}; size < bytes.size();) {
      if (::poll(&more, 1, 30000) != 1) break;
      const ssize_t n = ::recv(server->fd(), bytes.data() + size, bytes.size() - size, 0);
      if (n <= 0) break;
      size += static_cast<std::size_t>(n);
    }
    Request request;
    EXPECT_EQ(parse(bytes, request), Parsed::valid);
    return *server;
  }
  std::future<VIP_RETURN> call(Clock::duration longest) {
    return std::async(std::launch::async, [this, longest] {
      return a.request(client, {address, disc("x")}, longest);
    });
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
  for (const auto& bytes : nonsense) {
    auto requested = call(1500ms);
    for (int again = 0; again < 2; ++again) {
      Raw& raw = take_call();
      raw.send(bytes);
      if (bytes.empty()) raw.close();
    }
    EXPECT_EQ(requested.get(), VIP_TIMEOUT);
    EXPECT_EQ(client.state(), State::idle);
    listener = listening_socket(address);  // without what is still in its queue
  }
}

TEST_F(BadServers, SilenceIsATimeout) {
  auto requested = call(1500ms);
  take_call();
  EXPECT_EQ(requested.get(), VIP_TIMEOUT);
  requested = call(1500ms);
  take_call().send({.type = MessageType::held});
  EXPECT_EQ(requested.get(), VIP_TIMEOUT);
}

TEST_F(BadServers, AnAcceptanceWithOtherAttributesIsNone) {
  const auto accepted_with = [&](const EndpointInfo& other) {
    auto requested = call(kLong);
    take_call().send({.type = MessageType::accepted, .card = other});
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
    auto requested = call(kLong);
    Raw& raw = take_call();
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
