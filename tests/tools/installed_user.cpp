// Somebody else's program: knows only what was installed. Two links on a simulated network, one
// message.
#include <drivers/link/link.hpp>
#include <drivers/sim/sim_network.hpp>

#include <cstring>

using namespace viaduct;
using namespace viaduct::link;

struct Sink final : ReceiveHandler {
  RxResult on_message(const Incoming& message) override {
    got = message.bytes.size() == 5 && std::memcmp(message.bytes.data(), "hello", 5) == 0;
    return RxResult::consumed;
  }
  bool got = false;
};

int main() {
  sim::SimNetwork net;
  sim::SimPort& here = net.add_port();
  sim::SimPort& there = net.add_port();
  LinkConfig config;
  config.seed = 1;
  Link<sim::SimPort> left(here, config);
  config.seed = 2;
  Link<sim::SimPort> right(there, config);
  Sink sink;
  right.attach(Protocol::test, &sink);
  const auto text = std::as_bytes(std::span("hello", 5));
  left.try_send(left.peer(there.address()), Lane::high, Order::ordered, {Protocol::test, 0}, text,
                {}, Urgency::now, net.now());
  for (int i = 0; i < 1000 && !sink.got; ++i) {
    net.step(net.now() + std::chrono::microseconds{5});
    left.poll(net.now());
    right.poll(net.now());
  }
  return sink.got ? 0 : 1;
}
