// Unknown peers that connect to the control port: they send malformed bytes, nothing, half a
// request, or a correct request and then malformed bytes; and unknown processes that send anything
// to the rendezvous sockets of a host. Nothing of that may keep the program from connecting, block
// it, or cost a file descriptor for longer than a second.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <future>
#include <random>

#include "libvipl/connection/rendezvous_socket.hpp"
#include "libvipl/connection/socket/socket.hpp"
#include "libvipl/connection/wire.hpp"
#include "tests/vipl/connection/raw.hpp"

namespace viaduct::vipl::test {
namespace {

using State = FakeVi::State;

struct Strangers : TwoNics {
  Request request(const std::string& discriminator, Model model = Model::client_server) {
    Request out;
    out.model = model;
    out.nonce = 77;
    out.callee = b.at(discriminator);
    out.caller = {nic(99), disc(discriminator)};
    out.card = FakeVi().mine;
    return out;
  }
  // A call for "server", as soon as a program waits.
  Raw held_call() {
    for (;;) {
      Raw caller(b.manager.self());
      caller.send(encode(request("server")));
      const auto answer = caller.receive();
      if (answer && answer->type == MessageType::refused) continue;
      EXPECT_TRUE(answer && answer->type == MessageType::held);
      return caller;
    }
  }
  // One that has been accepted and not confirmed.
  std::optional<Raw> accepted_call() {
    Raw caller = held_call();
    const auto answer = caller.receive();
    if (answer && answer->type == MessageType::accepted) return caller;
    ADD_FAILURE() << "not accepted";
    return std::nullopt;
  }
  // One that has been accepted and confirmed: the server is connected to it.
  std::optional<Raw> confirmed_call() {
    auto served = std::async(std::launch::async, [this] { return b.serve(server, "server"); });
    std::optional<Raw> caller = accepted_call();
    if (caller) caller->send({.type = MessageType::ready});
    EXPECT_EQ(served.get(), VIP_SUCCESS);
    return caller;
  }
  void expect_service() {
    connect(a, client, b, server);
    a.disconnect(client);
    EXPECT_TRUE(server.wait_for(State::error));
    b.disconnect(server);
  }
};

TEST_F(Strangers, WhoSaysNothingIsDroppedAfterASecond) {
  Raw silent(b.manager.self()), half(b.manager.self());
  const RequestBytes bytes = encode(request("x"));
  half.send(std::span(bytes).first(50));
  expect_service();
  EXPECT_TRUE(silent.closed_within(10000));
  EXPECT_TRUE(half.closed_within(10000));
}

TEST_F(Strangers, ARequestMayComeByteByByte) {
  Raw slow(b.manager.self());
  for (const std::byte byte : encode(request("nobody"))) {
    slow.send(std::span(&byte, 1));
    std::this_thread::sleep_for(1ms);
  }
  const auto answer = slow.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->type, MessageType::refused);
  EXPECT_EQ(answer->code, static_cast<std::uint8_t>(Refusal::no_match));
}

TEST_F(Strangers, OtherVersionsAndOtherAddressesAreAnswered) {
  Raw newer(b.manager.self());
  RequestBytes bytes = encode(request("x"));
  bytes[4] = std::byte{9};
  newer.send(bytes);
  auto answer = newer.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(static_cast<Refusal>(answer->code), Refusal::other_version);
  Raw lost(b.manager.self());
  Request elsewhere = request("x");
  elsewhere.callee.nic = nic(55);
  lost.send(encode(elsewhere));
  answer = lost.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(static_cast<Refusal>(answer->code), Refusal::no_match);
}

TEST_F(Strangers, RubbishIsDroppedAtOnce) {
  std::minstd_rand random(3);
  int late = 0;  // as silence would be; on a busy machine a few are
  for (int round = 0; round < 200; ++round) {
    Raw raw(b.manager.self());
    std::vector<std::byte> rubbish(104 + random() % 100);
    for (std::byte& byte : rubbish) byte = static_cast<std::byte>(random() & 0xff);
    raw.send(rubbish);
    if (raw.closed_within(900)) continue;
    ++late;
    EXPECT_TRUE(raw.closed_within(10000));
  }
  EXPECT_LE(late, 3);
  expect_service();
}

TEST_F(Strangers, ThousandsAtATimeCostNothingForLong) {
  raise_descriptor_limit();
  expect_service();
  const std::size_t before = open_descriptors();
  {
    std::vector<Raw> silent;
    for (int i = 0; i < 1500; ++i) silent.emplace_back(b.manager.self());
    expect_service();
    // Ours, and at most as many of theirs as may wait.
    EXPECT_LT(open_descriptors(), before + 1500 + 600);
  }
  EXPECT_TRUE(descriptors_fall_to(before)) << open_descriptors() << " after " << before;
}

// What a caller may send instead of what he should, at each step.
TEST_F(Strangers, CallersThatMisbehaveLoseTheirConnectionOnly) {
  std::vector<Message> wrong{{.type = MessageType::held},
                             {.type = MessageType::refused, .code = 1},
                             {.type = MessageType::accepted, .card = FakeVi().mine},
                             {.type = MessageType::ready},
                             {.type = MessageType::ended}};
  for (const Message& message : wrong) {
    auto served = std::async(std::launch::async, [&] { return b.serve(server, "server"); });
    std::optional<Raw> caller = accepted_call();
    ASSERT_TRUE(caller);
    caller->send(message);
    const bool right = message.type == MessageType::ready;
    EXPECT_EQ(served.get(), right ? VIP_SUCCESS : VIP_TIMEOUT);
    if (right) {
      EXPECT_EQ(server.state(), State::connected);
      caller->send(message);  // once too often
      ASSERT_TRUE(server.wait_for(State::error));
      EXPECT_EQ(server.close_reason(), CloseReason::transport);
    } else {
      EXPECT_EQ(server.state(), State::idle);
    }
    b.disconnect(server);
  }
  expect_service();
}

TEST_F(Strangers, ACallerThatNeverConfirmsIsNotWaitedForForEver) {
  std::shared_ptr<ReceivedRequest> incoming;
  auto waited = std::async(std::launch::async,
                           [&] { return b.manager.wait(disc("server"), in(kLong), incoming); });
  Raw caller = held_call();
  ASSERT_EQ(waited.get(), VIP_SUCCESS);
  const auto began = Clock::now();
  EXPECT_EQ(Manager::accept(incoming, server), VIP_TIMEOUT);
  EXPECT_GE(Clock::now() - began, 9s);
  EXPECT_EQ(server.state(), State::idle);
}

// A half-open connection: the caller's host has closed its sending side only.
TEST_F(Strangers, AHalfClosedConnectionIsALostOne) {
  const std::optional<Raw> caller = confirmed_call();
  ASSERT_TRUE(caller);
  ::shutdown(caller->fd(), SHUT_WR);
  ASSERT_TRUE(server.wait_for(State::error));
  EXPECT_EQ(server.close_reason(), CloseReason::disconnected);
}

// Who floods a connection with aliases and does not read the answers.
TEST_F(Strangers, ASideThatDoesNotReadIsCutOff) {
  const std::optional<Raw> caller = confirmed_call();
  ASSERT_TRUE(caller);
  const int fd = caller->fd();
  const MessageBytes alias = encode({.type = MessageType::alias, .name = 1, .key = 2});
  std::vector<std::byte> many;
  for (int i = 0; i < 10000; ++i) many.insert(many.end(), alias.span().begin(), alias.span().end());
  const auto end = Clock::now() + kLong;
  while (server.state() == State::connected && Clock::now() < end) {
    const ssize_t n = ::send(fd, many.data(), many.size() / 12 * 12, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) break;
    // What was cut in the middle of a message would be rubbish.
    if (n > 0 && n % 12 != 0) {
      pollfd ready{fd, POLLOUT, 0};
      std::span<const std::byte> rest = alias.span().subspan(static_cast<std::size_t>(n % 12));
      while (!rest.empty() && ::poll(&ready, 1, 1000) == 1) {
        const ssize_t m = ::send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
        if (m <= 0) break;
        rest = rest.subspan(static_cast<std::size_t>(m));
      }
    }
  }
  EXPECT_TRUE(server.wait_for(State::error));
}

// The library remembers a limited number of aliases of an unknown peer.
TEST_F(Strangers, EndlessAliasesAreCutOff) {
  std::optional<Raw> caller = confirmed_call();
  ASSERT_TRUE(caller);
  const auto tell = [&](std::uint32_t name, std::uint32_t key) {
    caller->send({.type = MessageType::alias, .name = name, .key = key});
    const auto answer = caller->receive();
    return answer && answer->type == MessageType::known;
  };
  // One that changes again and again is one, one that is taken back is none.
  for (std::uint32_t i = 0; i < 20000; ++i) ASSERT_TRUE(tell(7, i + 1));
  for (std::uint32_t i = 0; i < 20000; ++i) {
    ASSERT_TRUE(tell(100 + i, 1));
    ASSERT_TRUE(tell(100 + i, 0));
  }
  EXPECT_EQ(server.aliases().size(), 1u);
  std::uint32_t many = 0;
  while (many < 100000 && tell(100000 + many, 1)) ++many;
  EXPECT_GE(many, 10000u);
  EXPECT_LT(many, 100000u);
  EXPECT_TRUE(server.wait_for(State::error));
  EXPECT_LE(server.aliases().size(), many + 1);
}

// ---- rendezvous sockets ----

struct RendezvousSockets : Strangers {
  std::string rendezvous = rendezvous_name(Model::client_server, b.at("server"), {}) + ":0";
  UniqueFd sender = sending_socket();

  // Until a program waits.
  void await_rendezvous(const RequestBytes& bytes, int fd) {
    for (int i = 0; i < 5000; ++i) {
      if (hand_over(sender.get(), rendezvous, bytes, fd) == HandOverResult::handed_over) return;
      std::this_thread::sleep_for(1ms);
    }
    FAIL() << "no rendezvous";
  }
};

TEST_F(RendezvousSockets, RubbishAndForeignDescriptorsAreIgnored) {
  const std::size_t before = open_descriptors();
  auto served = std::async(std::launch::async, [&] { return b.serve(server, "server"); });
  const UniqueFd file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd one(pair[0]), two(pair[1]);
  await_rendezvous(encode(request("server")), file.get());
  await_rendezvous(encode(request("server")), one.get());
  await_rendezvous({}, file.get());
  {
    // For somebody else, with a true connection.
    const Raw raw(b.manager.self());
    await_rendezvous(encode(request("other")), raw.fd());
    await_rendezvous(encode(request("server", Model::peer_to_peer)), raw.fd());
    await_rendezvous({}, raw.fd());
  }
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path + 1, rendezvous.data(), rendezvous.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + rendezvous.size());
  for (const std::size_t length : {0, 1, 103, 104, 105, 3000}) {
    const std::vector<char> bytes(length);
    ::sendto(sender.get(), bytes.data(), length, 0, reinterpret_cast<sockaddr*>(&to), size);
  }
  FakeVi& honest = vis.add();
  VIP_RETURN result = VIP_NO_MATCH;
  while (result == VIP_NO_MATCH) result = a.request(honest, b.at("server"));
  EXPECT_EQ(result, VIP_SUCCESS);
  EXPECT_EQ(served.get(), VIP_SUCCESS);
  a.disconnect(honest);
  ASSERT_TRUE(server.wait_for(State::error));
  b.disconnect(server);
  EXPECT_TRUE(descriptors_fall_to(before + 3)) << open_descriptors() << " after " << before;
}

// A rendezvous whose owner does not look (a stopped process) is full after some requests.
TEST_F(RendezvousSockets, AFullDoorDelaysOnlyItsOwnVisitors) {
  const UniqueFd stopped =
      named_socket(rendezvous_name(Model::client_server, b.at("stopped"), {}) + ":0");
  ASSERT_TRUE(stopped);
  const std::size_t before = open_descriptors();
  std::vector<std::unique_ptr<Raw>> callers;
  for (int i = 0; i < 600; ++i) {
    callers.push_back(std::make_unique<Raw>(b.manager.self()));
    callers.back()->send(encode(request("stopped")));
  }
  expect_service();
  callers.clear();
  while (receive_handed(stopped.get())) {
  }
  EXPECT_TRUE(descriptors_fall_to(before)) << open_descriptors() << " after " << before;
}

TEST_F(RendezvousSockets, AStoppedProcessDoesNotKeepTheOthersFromServing) {
  const UniqueFd stopped = named_socket(rendezvous);
  ASSERT_TRUE(stopped);
  auto served = std::async(std::launch::async, [&] { return b.serve(server, "server"); });
  std::this_thread::sleep_for(100ms);
  const auto began = Clock::now();
  EXPECT_EQ(a.request(client, b.at("server")), VIP_SUCCESS);
  EXPECT_EQ(served.get(), VIP_SUCCESS);
  EXPECT_LT(Clock::now() - began, 20s);  // not only when the rendezvous of the stopped one is full
}

TEST_F(RendezvousSockets, AStoppedProcessThatHasTheRequestDoesNotKeepIt) {
  // It takes the request and says nothing; the next attempt finds the program that really waits.
  UniqueFd stopped = named_socket(rendezvous);
  ASSERT_TRUE(stopped);
  auto served = std::async(std::launch::async, [&] { return b.serve(server, "server"); });
  auto requested =
      std::async(std::launch::async, [&] { return a.request(client, b.at("server"), kLong); });
  std::optional<Datagram> kept;
  while (!kept) kept = receive_handed(stopped.get());
  stopped.reset();
  EXPECT_EQ(requested.get(), VIP_SUCCESS);
  EXPECT_EQ(served.get(), VIP_SUCCESS);
}

// The flag that makes a socket block belongs to whoever else has it as well.
TEST_F(RendezvousSockets, AConnectionThatIsMadeToBlockBlocksNobody) {
  const NicAddress elsewhere = nic(98);
  UniqueFd listener = listening_socket(elsewhere);
  const int small = 1;  // as small as the system allows
  ::setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  Raw near(elsewhere);
  Raw far(accepted_socket(listener.get()));
  ::setsockopt(near.fd(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  std::shared_ptr<ReceivedRequest> incoming;
  auto waited = std::async(std::launch::async,
                           [&] { return b.manager.wait(disc("server"), in(kLong), incoming); });
  await_rendezvous(encode(request("server")), near.fd());
  ASSERT_EQ(waited.get(), VIP_SUCCESS);
  ASSERT_EQ(::fcntl(near.fd(), F_SETFL, 0), 0);
  // More answers than the connection holds, and nobody reads them.
  const MessageBytes alias = encode({.type = MessageType::alias, .name = 1, .key = 2});
  for (int i = 0; i < 10000; ++i) {
    if (::send(far.fd(), alias.bytes.data(), alias.size, MSG_NOSIGNAL) < 0) break;
    if (i % 100 == 0) std::this_thread::sleep_for(1ms);
  }
  auto serves = std::async(std::launch::async, [&] { expect_service(); });
  EXPECT_EQ(serves.wait_for(20s), std::future_status::ready);
  far.close();
  near.close();
}

// A program that was stopped for a while has the requests of callers who have given up since; its
// wait goes on until one comes who is there.
TEST_F(RendezvousSockets, CallersThatHaveGoneAreNotGivenToAWait) {
  auto served = std::async(std::launch::async, [&] { return b.serve(server, "server"); });
  const UniqueFd listener = listening_socket(nic(98));
  for (int i = 0; i < 5; ++i) {
    Raw near(nic(98));
    Raw(accepted_socket(listener.get())).close();
    ASSERT_TRUE(near.closed_within(10000));
    await_rendezvous(encode(request("server")), near.fd());
  }
  // Nor is a socket that was never connected.
  const UniqueFd never(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  await_rendezvous(encode(request("server")), never.get());
  await_rendezvous(encode(request("server")), listener.get());
  EXPECT_EQ(request_until_matched(a, client, b.at("server")), VIP_SUCCESS);
  EXPECT_EQ(served.get(), VIP_SUCCESS);
}

TEST_F(Strangers, AllDescriptorsAreClosedAfterwards) {
  const std::size_t before = open_descriptors();
  {
    Nic c(nic(3)), d(nic(4));
    FakeVi one, two, three, four, five;
    connect(c, two, d, one);
    c.manager.peer_request(three, disc("p"), d.at("p"), std::nullopt);
    d.manager.peer_request(four, disc("p"), c.at("p"), std::nullopt);
    c.manager.peer_request(five, disc("never"), d.at("never"), std::nullopt);
    EndpointInfo card;
    EXPECT_EQ(c.manager.peer_wait(three, card), VIP_SUCCESS);
    Raw raw(c.manager.self());
    c.manager.shutdown();
    d.manager.shutdown();
  }
  EXPECT_TRUE(descriptors_fall_to(before));
}

}  // namespace
}  // namespace viaduct::vipl::test
