// An attacker on the wire forges connection requests while an MPI job runs. Four ranks on four
// emulated hosts (viaduct-run): rank 1 is the attacker, on its own port: it reads the job's key
// from a request of its own link and then sends rank 3, which waits in a receive, 10,000 requests a
// second from made-up addresses. What rank 0 sends rank 3 for the first time arrives nearly as soon
// as what it has sent rank 2 for the first time without that.
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <mpi.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "drivers/link/wire_format.hpp"

namespace {

using namespace viaduct;
using namespace viaduct::link;
using Clock = std::chrono::steady_clock;

constexpr int kTalker = 0, kAttacker = 1, kWaiter = 2, kVictim = 3;
constexpr auto kGap = std::chrono::microseconds{100};
constexpr auto kFlood = std::chrono::seconds{3};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "forged_requests: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

// Everything that crosses this host's port, or is put on it.
class Wire {
 public:
  Wire() : fd_(socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL))) {
    sockaddr_ll port{};
    port.sll_family = AF_PACKET;
    port.sll_protocol = htons(ETH_P_ALL);
    port.sll_ifindex = static_cast<int>(if_nametoindex("p0"));
    timeval limit{5, 0};
    if (bind(fd_, reinterpret_cast<sockaddr*>(&port), sizeof port) != 0 ||
        setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)
      fail("no packet socket on p0");
  }
  ~Wire() { close(fd_); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  std::vector<std::byte> recorded_request() const {
    for (;;) {
      std::vector<std::byte> frame(10000);
      const ssize_t length = recv(fd_, frame.data(), frame.size(), 0);
      if (length < 0) fail("no connection request was seen");
      frame.resize(static_cast<std::size_t>(length));
      if (frame.size() < kFrameHeader + sizeof(Handshake)) continue;
      FrameHeader header;
      std::memcpy(&header, frame.data(), sizeof header);
      if (header.ether_type == kEtherType && header.version_type == (kVersion << 4 | 3))
        return frame;
    }
  }
  void put(const std::vector<std::byte>& frame) const {
    [[maybe_unused]] const auto sent = send(fd_, frame.data(), frame.size(), 0);
  }

 private:
  int fd_;
};

// From any address, to the victim's.
void forge(std::vector<std::byte>& frame, std::mt19937& random) {
  FrameHeader header;
  std::memcpy(&header, frame.data(), sizeof header);
  const std::uint8_t victim[6] = {0x02, 0x76, 0x64, 0x00, kVictim, 0};  // viaduct-testbed's
  std::memcpy(header.to, victim, 6);
  header.length = sizeof(Handshake);
  header.from[0] = 6;
  for (int i = 1; i < 6; ++i) header.from[i] = static_cast<std::uint8_t>(random());
  const std::uint32_t sum =
      base::crc32c(frame.data() + kFrameHeader, header.length, route_checksum(header, 0));
  header.checksum = frame_checksum(header, sum);
  std::memcpy(frame.data(), &header, sizeof header);
}

void be_the_attacker() {
  const Wire wire;
  int ready = 0;  // somebody connects to this host's port
  MPI_Recv(&ready, 1, MPI_INT, kTalker, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  std::vector<std::byte> frame = wire.recorded_request();
  frame.resize(kFrameHeader + sizeof(Handshake));
  std::memset(frame.data() + kFrameHeader + offsetof(Handshake, cookie), 0, sizeof(std::uint64_t));
  std::mt19937 random(5);
  const auto start = Clock::now();
  for (long sent = 0; Clock::now() - start < kFlood; ++sent) {
    forge(frame, random);
    wire.put(frame);
    if (sent == 2000) MPI_Send(&ready, 1, MPI_INT, kTalker, 0, MPI_COMM_WORLD);
    while (Clock::now() < start + sent * kGap) std::this_thread::yield();
  }
}

double first_send(int to) {
  int value = to;
  const auto start = Clock::now();
  MPI_Ssend(&value, 1, MPI_INT, to, 1, MPI_COMM_WORLD);
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void talk() {
  int ready = 0;
  first_send(kAttacker);
  const double usual = first_send(kWaiter);
  MPI_Recv(&ready, 1, MPI_INT, kAttacker, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const double attacked = first_send(kVictim);
  std::printf("first send: %.2f ms, among forged requests %.2f ms\n", usual, attacked);
  if (attacked > 20 * usual + 200) fail("forged requests have delayed an honest connection");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 4) fail("four ranks, each on a host of its own");
  if (rank == kAttacker) {
    be_the_attacker();
  } else if (rank == kTalker) {
    talk();
  } else {
    int value = 0;
    MPI_Recv(&value, 1, MPI_INT, kTalker, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (value != rank) fail("something else has arrived");
  }
  MPI_Finalize();
  return 0;
}
