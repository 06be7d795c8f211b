// viaduct-soak: millions of messages over real ports (two net_ring ports in this process) while the
// ports lose, duplicate, reorder and corrupt frames on purpose. Nothing may be lost, doubled,
// reordered within a lane or altered, and the faults must really have happened. The tests do the
// same on the simulated network; here DPDK's mbufs and real time take part.
#include <rte_eth_ring.h>
#include <rte_ring.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "drivers/link/config.hpp"
#include "drivers/link/link.hpp"
#include "drivers/port/eal.hpp"
#include "drivers/port/port.hpp"

using namespace viaduct;
using namespace viaduct::link;

namespace {

constexpr const char* kHelp = R"(NAME
    viaduct-soak - exactly-once delivery under faults, counted

SYNOPSIS
    viaduct-soak [--messages N] [--faults SPEC]

DESCRIPTION
    Sends N messages (default 10000000) of 16 to 200 bytes over all three lanes, ordered and
    unordered, between two ports in this process whose transmit sides do as SPEC says
    (default loss=1%,dup=0.1%,reorder=1%,corrupt=0.1%,seed=7), and checks every one.

EXIT STATUS
    0  all messages arrived once, in order and unaltered, and every fault asked for happened
    1  otherwise
    2  wrong usage
)";

// The head of each message, from which the receiver can compute all of it.
struct Stamp {
  std::uint64_t number;      // within its lane and order
  std::uint32_t lane_order;  // 2 * lane + order
  std::uint32_t check;       // of the two above; seeds the contents
};

// A cheap hash; gives lanes, lengths and contents that look random and can be computed again.
std::uint32_t mix(std::uint64_t x) {
  x = (x ^ x >> 31) * 0x9e3779b97f4a7c15;
  return static_cast<std::uint32_t>(x >> 32);
}

// Checks every message. Ordered ones must come in order; for unordered ones a bit each says whether
// it has come.
struct Receiver final : ReceiveHandler {
  std::uint64_t next[kLanes] = {};
  std::vector<bool> seen[kLanes];
  std::uint64_t delivered = 0, doubled = 0, disordered = 0, altered = 0;

  RxResult on_message(const Incoming& m) override {
    ++delivered;
    Stamp s{};
    if (m.bytes.size() < sizeof(s)) return ++altered, RxResult::consumed;
    std::memcpy(&s, m.bytes.data(), sizeof(s));
    const auto lane = static_cast<std::size_t>(m.lane);
    if (s.lane_order != lane * 2 + static_cast<std::uint32_t>(m.order) ||
        s.check != mix(s.number * 8 + s.lane_order))
      return ++altered, RxResult::consumed;
    for (std::size_t i = sizeof(s); i < m.bytes.size(); ++i)
      if (m.bytes[i] != static_cast<std::byte>(s.check + i)) return ++altered, RxResult::consumed;
    if (m.order == Order::ordered) {
      disordered += s.number != next[lane];
      next[lane] = s.number + 1;
    } else {
      // Grown in large steps; unordered messages may be far ahead.
      if (seen[lane].size() <= s.number) seen[lane].resize(2 * s.number + 1024);
      doubled += seen[lane][s.number];
      seen[lane][s.number] = true;
    }
    return RxResult::consumed;
  }
};

// Runs the whole test with both ends polled by this thread. Returns the exit status.
int soak(std::uint64_t messages, const base::FaultSpec& faults) {
  port::ensure_eal({});
  rte_ring* rings[2];
  for (int i = 0; i < 2; ++i) {
    const std::string name = "soak" + std::to_string(i);
    rings[i] = rte_ring_create(name.c_str(), 1024, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (!rings[i])
      throw base::SetupError("no memory for a ring: raise VIADUCT_FRAMES' memory limit.");
  }
  std::unique_ptr<port::Port> ports[2];
  for (int i = 0; i < 2; ++i) {
    const std::string name = "soak_port" + std::to_string(i);
    // Crossed: what one port transmits the other receives.
    const int id = rte_eth_from_rings(name.c_str(), &rings[i], 1, &rings[1 - i], 1, 0);
    if (id < 0) throw base::SetupError("DPDK made no ring port; is librte_net_ring installed?");
    port::PortConfig config;
    config.devargs = "port:" + std::to_string(id);
    config.faults = faults;
    // Otherwise both directions would lose the same frames.
    config.faults.seed += static_cast<std::uint64_t>(i);
    ports[i] = port::Port::open(config);
  }
  Link<port::Port> sender(*ports[0], link_config_from_environment());
  Link<port::Port> receiver(*ports[1], link_config_from_environment());
  Receiver sink;
  receiver.attach(Protocol::test, &sink);
  const PeerId peer = sender.peer(ports[1]->address());

  const Time start = port::now();
  std::uint64_t sent = 0, numbers[kLanes * 2] = {};
  Time progress = start;
  std::uint64_t progressed = 0;
  while (sink.delivered < messages) {
    for (int burst = 0; burst < 64 && sent < messages; ++burst) {
      // One of six streams: three lanes, ordered and unordered.
      const std::uint32_t which = mix(sent) % (kLanes * 2);
      Stamp s{numbers[which], which, mix(numbers[which] * 8 + which)};
      std::byte body[200];
      const std::size_t extra = mix(sent + 1) % (sizeof(body) - sizeof(s));
      for (std::size_t i = 0; i < extra; ++i)
        body[i] = static_cast<std::byte>(s.check + sizeof(s) + i);
      if (sender.try_send(peer, static_cast<Lane>(which / 2), static_cast<Order>(which % 2),
                          {Protocol::test, 0}, std::as_bytes(std::span{&s, 1}), {body, extra},
                          Urgency::batch, port::now()) != SendStatus::sent)
        break;
      ++numbers[which];
      ++sent;
    }
    sender.poll(port::now());
    receiver.poll(port::now());
    if (sink.delivered != progressed) {
      progressed = sink.delivered;
      progress = port::now();
      // Without this a lost message would hang the test instead of failing it.
    } else if (port::now() - progress > std::chrono::seconds{20}) {
      std::fprintf(stderr, "viaduct-soak: nothing has arrived for 20 s.\n");
      break;
    }
  }
  // Late duplicates would show here.
  for (const Time end = port::now() + std::chrono::milliseconds{50}; port::now() < end;) {
    sender.poll(port::now());
    receiver.poll(port::now());  // whatever comes now has come before
  }
  const double seconds = static_cast<double>((port::now() - start).count()) / 1e9;
  const base::FaultCounts f = *ports[0]->fault_counts();
  const Counters& c = sender.counters();
  std::printf("%" PRIu64 " sent, %" PRIu64 " delivered, %" PRIu64 " doubled, %" PRIu64
              " out of order, %" PRIu64 " altered in %.1f s\n",
              sent, sink.delivered, sink.doubled, sink.disordered, sink.altered, seconds);
  std::printf("frames sent %" PRIu64 ", of them lost %" PRIu64 ", duplicated %" PRIu64
              ", reordered %" PRIu64 ", corrupted %" PRIu64 "; retransmits %" PRIu64
              " (fast %" PRIu64 ", probes %" PRIu64 ")\n",
              c[Counter::frames_sent], f.lost, f.duplicated, f.reordered, f.corrupted,
              c[Counter::retransmits], c[Counter::fast_retransmits], c[Counter::probes]);
  // A run in which a fault that was asked for never happened proves nothing.
  const bool happened =
      (f.lost > 0 || faults.loss == 0) && (f.duplicated > 0 || faults.duplicate == 0) &&
      (f.reordered > 0 || faults.reorder == 0) && (f.corrupted > 0 || faults.corrupt == 0);
  const bool exact = sent == messages && sink.delivered == messages && sink.doubled == 0 &&
                     sink.disordered == 0 && sink.altered == 0;
  std::printf("%s\n", exact && happened ? "exact"
                      : exact           ? "FAILED: a fault never happened"
                                        : "FAILED");
  return exact && happened ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t messages = 10'000'000;
  std::string faults = "loss=1%,dup=0.1%,reorder=1%,corrupt=0.1%,seed=7";
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--help") return std::fputs(kHelp, stdout), 0;
    char* end = nullptr;
    if (arg == "--faults" && i + 1 < argc) {
      faults = argv[++i];
    } else if (arg == "--messages" && i + 1 < argc &&
               (messages = std::strtoull(argv[++i], &end, 10)) > 0 && *end == '\0') {
      continue;
    } else {
      std::fprintf(stderr, "viaduct-soak: cannot take '%s'; see --help.\n", argv[i]);
      return 2;
    }
  }
  try {
    return soak(messages, base::FaultSpec::parse(faults));
  } catch (const base::SetupError& e) {
    std::fprintf(stderr, "viaduct-soak: %s\n", e.what());
    return 1;
  }
}
