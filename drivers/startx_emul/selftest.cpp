// The selftest's traffic: every kind of packet, and RDMA, with contents computed from a number so
// that the receiver can check them. rawdev/selftest_pair.hpp makes the two nodes and their network.
#include "drivers/startx_emul/selftest.hpp"

#include <cstring>
#include <vector>

#include "drivers/rawdev/selftest_pair.hpp"
#include "drivers/startx_emul/niu.hpp"

namespace viaduct::startx {
namespace {

constexpr std::uint32_t kPackets = 500;     // of each kind: enough for some to be lost
constexpr std::size_t kTransfer = 100'000;  // bytes: many frames

class Selftest {
 public:
  std::string run() {
    for (const Mechanism mechanism : {Mechanism::pio, Mechanism::queue})
      for (const Priority priority : {Priority::high, Priority::low})
        for (const link::Order order : {link::Order::ordered, link::Order::unordered})
          if (!packets(mechanism, priority, order))
            return std::string(mechanism == Mechanism::pio ? "PIO" : "queued") + " packets of " +
                   (priority == Priority::high ? "high" : "low") +
                   " priority do not arrive as they were sent";
    if (!transfers()) return "RDMA transfers do not arrive as they were sent";
    return {};
  }
  std::uint64_t lost_frames() const { return pair_.lost_frames(); }

 private:
  // Packet number `tag` of a run: all word counts come in turn.
  static Packet packet(std::uint32_t tag, link::Order order) {
    Packet p;
    p.tag = tag;
    p.words = static_cast<std::uint8_t>(kMinWords + tag % (kMaxWords - kMinWords + 1));
    p.order = order;
    for (std::uint32_t i = 0; i < kMaxWords; ++i) p.payload[i] = tag ^ i << 16;
    return p;
  }
  static bool same(const Received& got, const Packet& sent) {
    return got.words == sent.words && got.order == sent.order &&
           std::memcmp(got.payload, sent.payload, got.words * sizeof(std::uint32_t)) == 0;
  }

  // Sends kPackets one way. True when each arrived once, unchanged and, if ordered, in order.
  bool packets(Mechanism mechanism, Priority priority, link::Order order) {
    const bool pio = mechanism == Mechanism::pio;
    Niu<sim::SimPort>& from = pair_[0];
    Niu<sim::SimPort>& into = pair_[1];
    const link::PeerId to = pair_.other(0);
    std::vector<bool> seen(kPackets);
    std::uint32_t sent = 0, received = 0;
    bool good = true;
    const auto send = [&] {
      if (pio)
        return from.try_send(to, priority, packet(sent, order), pair_.now()) ==
               link::SendStatus::sent;
      Outgoing* entry = from.reserve(priority);
      if (entry == nullptr) return false;
      *entry = {to, packet(sent, order)};
      from.commit(priority);
      return true;
    };
    const auto take = [&](const Received& r) {
      good = good && r.tag < kPackets && !seen[r.tag] && same(r, packet(r.tag, order)) &&
             (order == link::Order::unordered || r.tag == received);
      if (good) seen[r.tag] = true;
      ++received;
      pio ? into.pop(priority) : into.queue_pop(priority);
    };
    const bool all = pair_.wait([&] {
      while (sent < kPackets && send()) ++sent;
      while (const Received* r = pio ? into.peek(priority) : into.queue_peek(priority)) take(*r);
      return received >= kPackets || !good;
    });
    return all && good;
  }

  // Both sides post and request at the same time. True when both transfers completed, at both ends.
  bool transfers() {
    std::vector<std::byte> memory[2];  // first half is sent, second half received
    for (std::size_t i : {0, 1}) {
      memory[i].resize(2 * kTransfer);
      for (std::size_t n = 0; n < kTransfer; ++n)
        memory[i][n] = static_cast<std::byte>(n * 31 + n / 251 + i);
      Rdma<sim::SimPort>& rdma = pair_[i].rdma();
      const RegionId region = rdma.register_memory(memory[i]);
      const link::PeerId other = pair_.other(i);
      if (rdma.post(other, 1, {region, kTransfer, kTransfer}).status != RdmaStatus::ok ||
          rdma.request(other, 1, {region, 0, kTransfer}, pair_.now()).status != RdmaStatus::ok)
        return false;
    }
    std::size_t complete = 0;
    bool good = true;
    const bool all = pair_.wait([&] {
      for (std::size_t i : {0, 1})
        for (Completion c; pair_[i].rdma().next_completion(c); ++complete)
          good = good && c.status == RdmaStatus::ok && c.length == kTransfer;
      return complete == 4;
    });
    for (std::size_t i : {0, 1})
      good =
          good && std::memcmp(memory[i].data() + kTransfer, memory[1 - i].data(), kTransfer) == 0;
    return all && good;
  }

  // Both sides are polled by packets() and transfers(), through pair_.wait().
  rawdev::SelftestPair<Niu<sim::SimPort>, NiuConfig> pair_;
};

}  // namespace

std::string selftest() {
  return rawdev::run_selftest<Selftest>();
}

}  // namespace viaduct::startx
