#include "drivers/startx_emul/selftest.hpp"

#include <cstring>
#include <functional>
#include <vector>

#include "drivers/link/sim_net.hpp"
#include "drivers/startx_emul/niu.hpp"

namespace viaduct::startx {
namespace {

constexpr std::uint32_t kPackets = 500;
constexpr std::size_t kTransfer = 100'000;

struct Side {
  explicit Side(link::SimNet& net, std::uint64_t seed)
      : port(net.add_port()), link(port, config(seed)), niu(link, {}), memory(2 * kTransfer) {
    region = niu.rdma().register_memory(memory);
  }
  static link::LinkConfig config(std::uint64_t seed) {
    link::LinkConfig c;
    c.seed = seed;
    c.max_peers = 4;
    return c;
  }
  link::SimPort& port;
  link::Link<link::SimPort> link;
  Niu<link::SimPort> niu;
  std::vector<std::byte> memory;  // first half is sent, second half received
  RegionId region;
};

class Selftest {
 public:
  Selftest() : net_(config()), sides_{Side(net_, 1), Side(net_, 2)} {}

  std::string run() {
    for (const Mechanism mechanism : {Mechanism::pio, Mechanism::queue})
      for (const Priority priority : {Priority::high, Priority::low})
        for (const link::Order order : {link::Order::ordered, link::Order::unordered})
          if (!packets(mechanism, priority, order))
            return std::string(mechanism == Mechanism::pio ? "PIO" : "queued") + " packets of " +
                   (priority == Priority::high ? "high" : "low") +
                   " priority do not arrive as they were sent";
    if (!transfers()) return "RDMA transfers do not arrive as they were sent";
    if (net_.faults().lost == 0) return "no frame was lost: recovery was not tested";
    return {};
  }

 private:
  static link::SimConfig config() {
    link::SimConfig c;
    c.faults = {.loss = 0.02, .duplicate = 0.01, .reorder = 0.02, .corrupt = 0.01, .seed = 1};
    return c;
  }

  // Up to two simulated seconds.
  bool wait(const std::function<bool()>& done) {
    const link::Time end = net_.now() + std::chrono::seconds{2};
    while (!done()) {
      if (net_.now() > end) return false;
      for (Side& side : sides_) side.niu.poll(net_.now());
      net_.step(net_.now() + std::chrono::microseconds{10});
    }
    return true;
  }

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

  bool packets(Mechanism mechanism, Priority priority, link::Order order) {
    const bool pio = mechanism == Mechanism::pio;
    Niu<link::SimPort>& from = sides_[0].niu;
    Niu<link::SimPort>& into = sides_[1].niu;
    const link::PeerId to = sides_[0].link.peer(sides_[1].port.address());
    std::vector<bool> seen(kPackets);
    std::uint32_t sent = 0, received = 0;
    bool good = true;
    const auto send = [&] {
      if (pio)
        return from.try_send(to, priority, packet(sent, order), net_.now()) ==
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
    const bool all = wait([&] {
      while (sent < kPackets && send()) ++sent;
      while (const Received* r = pio ? into.peek(priority) : into.queue_peek(priority)) take(*r);
      return received >= kPackets || !good;
    });
    return all && good;
  }

  bool transfers() {
    for (std::size_t i : {0, 1}) {
      Side& side = sides_[i];
      for (std::size_t n = 0; n < kTransfer; ++n)
        side.memory[n] = static_cast<std::byte>(n * 31 + n / 251 + i);
      const link::PeerId other = side.link.peer(sides_[1 - i].port.address());
      if (side.niu.rdma().post(other, 1, {side.region, kTransfer, kTransfer}).status !=
              RdmaStatus::ok ||
          side.niu.rdma().request(other, 1, {side.region, 0, kTransfer}, net_.now()).status !=
              RdmaStatus::ok)
        return false;
    }
    std::size_t complete = 0;
    bool good = true;
    const bool all = wait([&] {
      for (Side& side : sides_)
        for (Completion c; side.niu.rdma().next_completion(c); ++complete)
          good = good && c.status == RdmaStatus::ok && c.length == kTransfer;
      return complete == 4;
    });
    for (std::size_t i : {0, 1})
      good = good && std::memcmp(sides_[i].memory.data() + kTransfer, sides_[1 - i].memory.data(),
                                 kTransfer) == 0;
    return all && good;
  }

  link::SimNet net_;
  Side sides_[2];
};

}  // namespace

std::string selftest() {
  try {
    return Selftest().run();
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace viaduct::startx
