// The testbed `ring`: two ethdevs joined by rings in memory (net_ring), both polled by one thread.
// There is no wire and no second processor: what is left is the cost of the software. Needs no
// Control, as both sides are objects of this process.
#include <rte_eth_ring.h>
#include <rte_ring.h>

#include <string>

#include "drivers/port/eal.hpp"
#include "tools/pingpong/error.hpp"
#include "tools/pingpong/session.hpp"

namespace viaduct::pingpong {

namespace {

constexpr unsigned kRingFrames = 1024;
constexpr std::chrono::seconds kConnectPatience{5};

// A ring with one producer and one consumer, the ports' queue.
rte_ring* make_ring(const char* name) {
  rte_ring* ring = rte_ring_create(name, kRingFrames, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
  if (ring == nullptr) throw Failure("no memory for a ring; free some memory");
  return ring;
}

// Makes a port of two rings and returns its name for port::Port::open().
std::string make_ethdev(const char* name, rte_ring* receive, rte_ring* transmit) {
  const int port = rte_eth_from_rings(name, &receive, 1, &transmit, 1, 0);
  if (port < 0)
    throw Failure("DPDK cannot make an ethdev of two rings; is librte_net_ring installed?");
  return "port:" + std::to_string(port);
}

// Opens both ports; makes both sides of a layer for each turn.
class RingSession final : public Session {
 public:
  RingSession(std::size_t mtu, bool checksum) : checksum_(checksum) {
    port::ensure_eal({});
    // `there`: frames from client to server; `back`: from server to client.
    rte_ring* there = make_ring("viaduct_there");
    rte_ring* back = make_ring("viaduct_back");
    client_ = open(make_ethdev("viaduct_client", back, there), mtu);
    server_ = open(make_ethdev("viaduct_server", there, back), mtu);
  }

  RoundTrips latency(const LayerKind& kind, const Point& point) override {
    ++turn_;
    const auto server = kind.make(turn_config(false, point));
    const auto client = kind.make(turn_config(true, point));
    connect(*client, *server);
    return client->ping_both(*server, point);
  }
  Received bandwidth(const LayerKind& kind, const Point& point) override {
    ++turn_;
    const auto server = kind.make(turn_config(false, point));
    const auto client = kind.make(turn_config(true, point));
    connect(*client, *server);
    return client->stream_both(*server, point);
  }

 private:
  static std::unique_ptr<port::Port> open(const std::string& devargs, std::size_t mtu) {
    port::PortConfig config;
    config.devargs = devargs;
    config.mtu = mtu;
    return port::Port::open(config);
  }

  static void connect(Layer& client, Layer& server) {
    if (!client.connect_both(server, kConnectPatience))
      throw Failure("the two sides do not find each other");
  }

  // One side's TurnConfig: `client` says which.
  TurnConfig turn_config(bool client, const Point& point) {
    TurnConfig out;
    out.client = client;
    out.port = client ? client_.get() : server_.get();
    out.peer = (client ? server_ : client_)->address();
    out.mtu = client_->mtu();
    out.checksum = checksum_;
    out.turn = turn_;
    out.point = point;
    return out;
  }

  bool checksum_;
  std::uint8_t turn_ = 0;  // tells this turn's frames from late ones
  std::unique_ptr<port::Port> client_, server_;
};

}  // namespace

std::unique_ptr<Session> ring_session(std::size_t mtu, bool checksum) {
  return std::make_unique<RingSession>(mtu, checksum);
}

}  // namespace viaduct::pingpong
