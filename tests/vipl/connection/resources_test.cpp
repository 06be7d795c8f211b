// What connections cost and leave behind: file descriptors, ports, memory; and what happens where
// the system has none of these.
#include <gtest/gtest.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "libvipl/connection/socket/socket.hpp"
#include "tests/vipl/connection/bed.hpp"

namespace {

// Of this thread: the library cannot watch one more file descriptor.
thread_local bool no_room_to_watch = false;

// Of the process: no connection can be accepted. Limits of the system would stop sanitizers too.
std::atomic<bool> no_descriptors{false};
std::atomic<unsigned> accepts{0};

// Of the process: the kernel dissolves no connection for connect() to AF_UNSPEC, as some do while a
// thread waits in the socket.
std::atomic<bool> dissolves_nothing{false};

// Of the process: what the network says of every connection that is asked for, in the place of
// what it would have said. 0: nothing.
std::atomic<int> network_error{0};

}  // namespace

// The C library's, for the library under test too.
extern "C" int accept4(int listener, sockaddr* address, socklen_t* size, int flags) {
  ++accepts;
  if (no_descriptors) {
    errno = EMFILE;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_accept4, listener, address, size, flags));
}

extern "C" int connect(int fd, const sockaddr* address, socklen_t size) {
  if (address->sa_family == AF_UNSPEC && dissolves_nothing) {
    errno = EBUSY;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_connect, fd, address, size));
}

extern "C" int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  if (operation == EPOLL_CTL_ADD && no_room_to_watch) {
    errno = ENOSPC;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_epoll_ctl, epoll, operation, fd, event));
}

extern "C" int getsockopt(int fd, int level, int option, void* value, socklen_t* size) noexcept {
  if (option == SO_ERROR && level == SOL_SOCKET && network_error != 0) {
    const int error = network_error;
    std::memcpy(value, &error, sizeof error);
    return 0;
  }
  if (option == TCP_INFO && level == IPPROTO_TCP && network_error != 0) {  // not connected so far
    errno = EINVAL;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_getsockopt, fd, level, option, value, size));
}

namespace viaduct::vipl::test {
namespace {

using State = FakeVi::State;

// NICs of their own: what other tests' connections leave in the kernel is not counted.
struct Resources : TwoNics {
  Resources() : TwoNics(11) {}
};

// The address and port of a NIC as /proc/net/tcp has them: in the host's byte order.
std::string in_proc(const NicAddress& address) {
  const auto& ip = address.ip;
  std::array<char, sizeof "00000000:0000"> text{};
  std::snprintf(text.data(), text.size(), "%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0],
                address.port);
  return text.data();
}

// Ends of connections to this test's NICs that the kernel keeps for a minute after they were
// closed, as "local>remote".
std::vector<std::string> ends_in_time_wait() {
  const std::array nics{in_proc(nic(11)), in_proc(nic(12))};
  std::vector<std::string> ends;
  std::ifstream sockets("/proc/net/tcp");
  for (std::string line; std::getline(sockets, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state;
    words >> number >> local >> remote >> state;
    const auto is_end = [&](const std::string& of) { return of == local || of == remote; };
    if (state == "06" && std::ranges::any_of(nics, is_end))
      ends.push_back(local.append(">").append(remote));
  }
  return ends;
}

// At most 100 more than there were `before`; if not, the last five are named.
void expect_few_in_time_wait(std::size_t before) {
  const std::vector<std::string> ends = ends_in_time_wait();
  if (ends.size() < before + 100) return;
  ADD_FAILURE() << ends.size() << " in TIME_WAIT, before " << before << ", such as "
                << testing::PrintToString(std::vector(ends.end() - 5, ends.end()));
}

// A host has 28,000 ports to call from: if each connection kept one for a minute, a program that
// reconnects in a loop would soon have none.
TEST_F(Resources, ReconnectingThousandsOfTimesLeavesNothing) {
  connect(a, client, b, server);
  a.disconnect(client);
  b.disconnect(server);
  const std::size_t descriptors = open_descriptors(), kept = ends_in_time_wait().size();
  for (int round = 0; round < 2000; ++round) {
    connect(a, client, b, server);
    const bool client_first = round % 2 == 0;
    (client_first ? a : b).disconnect(client_first ? client : server);
    ASSERT_TRUE((client_first ? server : client).wait_for(State::error));
    (client_first ? b : a).disconnect(client_first ? server : client);
  }
  EXPECT_TRUE(descriptors_fall_to(descriptors)) << open_descriptors() << " after " << descriptors;
  expect_few_in_time_wait(kept);
}

TEST_F(Resources, RefusedRequestsLeaveNothing) {
  const std::size_t descriptors = open_descriptors(), kept = ends_in_time_wait().size();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(a.request(client, b.at("nobody")), VIP_NO_MATCH);
  EXPECT_TRUE(descriptors_fall_to(descriptors)) << open_descriptors() << " after " << descriptors;
  expect_few_in_time_wait(kept);
}

// A process that has the file descriptors of another by fork() must not keep a connection open that
// this one has closed.
TEST_F(Resources, AChildOfForkDoesNotKeepConnectionsOpen) {
  auto [incoming, outcome] = hold_request(a, client, b);
  const pid_t child = ::fork();
  if (child == 0)
    for (;;) ::pause();
  ASSERT_GT(child, 0);
  a.disconnect(client);
  EXPECT_EQ(outcome.get(), VIP_INVALID_STATE);
  const auto began = Clock::now();
  EXPECT_EQ(Manager::accept(incoming, server), VIP_TIMEOUT);
  EXPECT_LT(Clock::now() - began, 5s);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(Resources, WithoutDescriptorsNobodyIsBusyAccepting) {
  auto served = std::async(std::launch::async, [&] { return b.serve(server, "server"); });
  no_descriptors = true;
  const unsigned before = accepts;
  auto requested = std::async(std::launch::async,
                              [&] { return request_until_matched(a, client, b.at("server")); });
  std::this_thread::sleep_for(1s);
  EXPECT_GT(accepts, before);
  EXPECT_LT(accepts, before + 50);
  no_descriptors = false;
  EXPECT_EQ(requested.get(), VIP_SUCCESS);
  EXPECT_EQ(served.get(), VIP_SUCCESS);
}

TEST_F(Resources, WithoutRoomToWatchAWaitFailsAndTheNextOneWorks) {
  no_room_to_watch = true;
  std::shared_ptr<ReceivedRequest> incoming;
  EXPECT_THROW(b.manager.wait(disc("server"), in(10ms), incoming), std::bad_alloc);
  no_room_to_watch = false;
  connect(a, client, b, server);
}

TEST_F(Resources, WithoutRoomToWatchRequestsFailAndTheNextOnesWork) {
  no_room_to_watch = true;
  EXPECT_EQ(a.request(client, b.at("server")), VIP_ERROR_RESOURCE);
  EXPECT_EQ(client.state(), State::idle);
  EXPECT_EQ(a.manager.peer_request(client, disc("p"), b.at("p"), in(kLong)), VIP_ERROR_RESOURCE);
  EXPECT_EQ(client.state(), State::idle);
  no_room_to_watch = false;
  ASSERT_EQ(a.manager.peer_request(client, disc("p"), b.at("p"), in(kLong)), VIP_SUCCESS);
  ASSERT_EQ(b.manager.peer_request(server, disc("p"), a.at("p"), in(kLong)), VIP_SUCCESS);
  EndpointInfo card;
  EXPECT_EQ(a.manager.peer_wait(client, card), VIP_SUCCESS);
  EXPECT_EQ(b.manager.peer_wait(server, card), VIP_SUCCESS);
}

// A host of this network that is down (nobody says that he has its address) may come up, like one
// that is further away and only does not answer.
TEST_F(Resources, ADeadHostIsAskedUntilTheTimeIsOver) {
  network_error = EHOSTUNREACH;
  const auto began = Clock::now();
  EXPECT_EQ(a.request(client, b.at("server"), 300ms), VIP_TIMEOUT);
  EXPECT_GE(Clock::now() - began, 300ms);
  ASSERT_EQ(a.manager.peer_request(client, disc("p"), b.at("p"), in(100ms)), VIP_SUCCESS);
  EndpointInfo card;
  EXPECT_EQ(a.manager.peer_wait(client, card), VIP_TIMEOUT);
  auto served = std::async(std::launch::async, [&] { return b.serve(server, "server"); });
  auto requested = std::async(std::launch::async,
                              [&] { return request_until_matched(a, client, b.at("server")); });
  std::this_thread::sleep_for(50ms);
  network_error = 0;
  EXPECT_EQ(requested.get(), VIP_SUCCESS);
  EXPECT_EQ(served.get(), VIP_SUCCESS);
  network_error = ENETUNREACH;
  EXPECT_EQ(b.request(vis.add(), a.at("server")), VIP_NOT_REACHABLE);
  network_error = 0;
}

// A connection that is given up ends with a reset, not with a FIN, which would leave TIME_WAIT.
TEST(AbortedConnections, EndWithAResetHoweverTheKernelWantsToBeAsked) {
  for (const bool refused : {false, true}) {
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(::bind(listener.get(), any, size), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    ASSERT_EQ(::getsockname(listener.get(), any, &size), 0);
    UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(client.get(), any, size), 0);
    const UniqueFd server(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    dissolves_nothing = refused;
    abort_connection(std::move(client));
    dissolves_nothing = false;
    char byte;
    errno = 0;
    EXPECT_EQ(::recv(server.get(), &byte, 1, 0), -1) << "refused: " << refused;
    EXPECT_EQ(errno, ECONNRESET) << "refused: " << refused;
  }
}

// Another program listens at the control port: it is said once, and when the port is free it is
// taken.
TEST_F(Resources, APortThatAnotherProgramHas) {
  const NicAddress taken = nic(3);
  UniqueFd other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(taken.port);
  std::memcpy(&address.sin_addr, taken.ip.data(), taken.ip.size());
  ASSERT_EQ(::bind(other.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(other.get(), 5), 0);
  testing::internal::CaptureStderr();
  Nic c(taken);
  std::shared_ptr<ReceivedRequest> incoming;
  EXPECT_EQ(c.manager.wait(disc("server"), in(1500ms), incoming), VIP_TIMEOUT);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_FALSE(c.manager.listening());
  EXPECT_NE(said.find(taken.text()), std::string::npos) << said;
  EXPECT_NE(said.find("VIADUCT_VIPL_PORT"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(a.request(client, c.at("server"), 100ms), VIP_TIMEOUT);  // it takes, and says nothing
  // It calls out all the same.
  connect(c, client, b, server);
  c.disconnect(client);
  EXPECT_TRUE(server.wait_for(State::error));
  b.disconnect(server);
  other.reset();
  connect(a, client, c, server);
  EXPECT_TRUE(c.manager.listening());
}

// That will not change by itself.
TEST_F(Resources, AnAddressThatIsNotThisHostsIsAnErrorOfSetup) {
  try {
    Manager manager({{198, 51, 100, 1}, kPort});
    ADD_FAILURE() << "opened";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("198.51.100.1"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace viaduct::vipl::test
