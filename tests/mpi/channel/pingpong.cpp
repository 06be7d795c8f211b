// Half round trips of control messages through a channel between two processes on a memif pair:
// channel-pingpong mbcf|startx [BYTES [MESSAGES]]. To be compared with
// viaduct-pingpong --bed memif --layer mbcf-fifo,startx-pio --measure latency, run beside it.
#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "tests/mpi/channel/pair.hpp"

namespace {

using namespace viaduct;
using namespace viaduct::mpi;

struct Counting final : ChannelSink {
  void on_control(int, Bytes message) override {
    // Taken to where the user wants it, as everybody does.
    std::memcpy(into, message.data(), std::min(message.size(), sizeof into));
    ++arrived;
  }
  void on_long_sent(Cookie, bool) override {}
  void on_long_received(Cookie, bool) override {}
  void on_peer_lost(int, std::string_view why) override {
    std::fprintf(stderr, "peer lost: %.*s\n", static_cast<int>(why.size()), why.data());
    _exit(1);
  }
  std::byte into[4096];
  std::uint64_t arrived = 0;
};

void play(Pair& pair, const char* name, int rank, std::size_t bytes, std::uint64_t messages) {
  // A processor each, if there are two.
  cpu_set_t cpu;
  CPU_ZERO(&cpu);
  CPU_SET(static_cast<unsigned>(rank), &cpu);
  sched_setaffinity(0, sizeof cpu, &cpu);
  Pair::Process launch(pair, rank);
  Counting sink;
  const auto channel = open_channel(name, sink, launch);
  const std::vector<std::byte> head(24, std::byte{1}), body(bytes);
  std::vector<double> half_round_trips;
  half_round_trips.reserve(messages);
  for (std::uint64_t i = 1; i <= messages; ++i) {
    const link::Time begin = port::now();
    const auto say = [&] {
      while (!channel->send_control(1 - rank, head, body)) channel->poll();
    };
    if (rank == 0) say();
    while (sink.arrived < i) channel->poll();
    if (rank == 1) say();
    half_round_trips.push_back(static_cast<double>((port::now() - begin).count()) / 2);
  }
  while (channel->busy()) channel->poll();
  if (rank != 0) return;
  const auto at = [&](double share) {
    const auto nth = half_round_trips.begin() +
                     static_cast<std::ptrdiff_t>(share * static_cast<double>(messages - 1));
    std::nth_element(half_round_trips.begin(), nth, half_round_trips.end());
    return *nth;
  };
  std::printf("%s, %zu bytes: half round trip %.0f ns (10 %%: %.0f, 90 %%: %.0f)\n", name, bytes,
              at(0.5), at(0.1), at(0.9));
}

}  // namespace

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "mbcf";
  const auto bytes = static_cast<std::size_t>(argc > 2 ? std::atoll(argv[2]) : 8);
  const auto messages = static_cast<std::uint64_t>(argc > 3 ? std::atoll(argv[3]) : 200'000);
  Pair pair;
  const pid_t child = fork();
  if (child == 0) {
    play(pair, name, 1, bytes, messages);
    _exit(0);
  }
  play(pair, name, 0, bytes, messages);
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}
