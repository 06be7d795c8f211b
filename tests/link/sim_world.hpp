// Links on a simulated network, for tests: nodes with a receive handler each, one virtual clock,
// one loop.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "drivers/link/link.hpp"
#include "drivers/sim/sim_network.hpp"
#include "tests/link/sim_schedule.hpp"

namespace viaduct::link::test {

using SimLink = Link<sim::SimPort>;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A receive handler that does what its functions say; by default it consumes everything.
struct FunctionSink final : ReceiveHandler {
  std::function<RxResult(const Incoming&)> message = [](const Incoming&) {
    return RxResult::consumed;
  };
  std::function<void(PeerId, const Address&)> up = [](PeerId, const Address&) {};
  std::function<void(PeerId, const Address&, DownReason)> down = [](PeerId, const Address&,
                                                                    DownReason) {};

  RxResult on_message(const Incoming& m) override { return message(m); }
  void on_peer_up(PeerId p, const Address& a) override { up(p, a); }
  void on_peer_down(PeerId p, const Address& a, DownReason r) override { down(p, a, r); }
};

struct Node {
  sim::SimPort* port = nullptr;
  FunctionSink sink;
  std::unique_ptr<SimLink> link;

  // Starts the node, or a new incarnation of it.
  void start(LinkConfig config) {
    link = std::make_unique<SimLink>(*port, config);
    link->attach(Protocol::test, &sink);
  }
  Address address() const { return port->address(); }
};

struct World {
  sim::SimNetwork net;
  std::vector<std::unique_ptr<Node>> nodes;
  SimSchedule schedule;

  explicit World(const sim::SimConfig& config = {})
      : net(config), schedule(net, [this](std::size_t i, Time now) {
          if (nodes[i]->link) nodes[i]->link->poll(now);
        }) {}
  // Links still send frames as they end; what a test's hook refers to ended before.
  ~World() { net.hook = nullptr; }

  Node& add(const LinkConfig& config = {}, const sim::SimPortConfig& port = {}) {
    nodes.push_back(std::make_unique<Node>());
    Node& node = *nodes.back();
    node.port = &net.add_port(port);
    LinkConfig own = config;
    if (own.seed == 0) own.seed = nodes.size();
    node.start(own);
    return node;
  }

  // The machine dies: nothing more is sent, not even a goodbye.
  void kill(Node& node) {
    for (auto& other : nodes) net.partition(*node.port, *other->port);
    node.link.reset();
    for (auto& other : nodes) net.heal(*node.port, *other->port);
  }

  void poll() { schedule.poll_all(nodes.size()); }
  // Polls every node at each arrival and at least every `interval`.
  void run(Duration span, Duration interval = microseconds{2}) {
    run_until([] { return false; }, span, interval);
  }
  // Until `done` holds (true) or the span has passed (false).
  template <class Done>
  bool run_until(Done done, Duration span, Duration interval = microseconds{2}) {
    const Time end = net.now() + span;
    while (!done()) {
      if (net.now() >= end) return false;
      net.step(std::min(net.now() + interval, end));
      poll();
    }
    return true;
  }
};

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text.data(), text.size()});
}

inline constexpr MessageType kTestMessage{Protocol::test, 0};

inline SendStatus send_text(Node& from, PeerId to, std::string_view text, Time now,
                            Lane lane = Lane::low, Order order = Order::ordered,
                            Urgency urgency = Urgency::now) {
  return from.link->try_send(to, lane, order, kTestMessage, {}, bytes_of(text), urgency, now);
}

}  // namespace viaduct::link::test
