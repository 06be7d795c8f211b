// How the side that measures tells the other one what to do. Orders and answers travel beside the
// layers, never through them: over a socket (between the processes of a bed, or TCP between hosts)
// or, between hosts without IP addresses, in raw Ethernet frames of the very port that is measured.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "drivers/port/port.hpp"
#include "tools/pingpong/layer.hpp"
#include "tools/pingpong/socket.hpp"

namespace viaduct::pingpong {

inline constexpr std::uint32_t kOrderMagic = 0x32707076;  // "vpp2": also the version

// Plain data, little-endian as everything of ours on a wire.
struct Order {
  enum class What : std::uint8_t { hello = 1, bring_up, turn, result, bye };
  std::uint32_t magic = kOrderMagic;
  std::uint32_t sequence = 0;  // an order that is repeated keeps its number
  What what = What::hello;
  std::uint8_t latency = 0;      // turn: latency, else bandwidth
  std::uint8_t checksum = 0;     // turn
  std::uint8_t has_port = 0;     // hello
  std::uint8_t address[6] = {};  // hello: of the sender's port
  std::uint8_t unused[2] = {};
  std::uint64_t bytes = 0, messages = 0, nanoseconds = 0;  // turn
  std::uint64_t mtu = 0;                                   // turn: what both ports can do
  char layer[32] = {};                                     // bring_up, turn
};
static_assert(sizeof(Order) == 88);

struct Answer {
  std::uint32_t magic = kOrderMagic;
  std::uint32_t sequence = 0;  // that of the order
  std::uint8_t failed = 0;
  std::uint8_t has_port = 0;              // hello
  std::uint8_t address[6] = {};           // hello
  std::uint64_t mtu = 0;                  // hello
  std::uint64_t messages = 0, bytes = 0;  // result
  double seconds = 0;                     // result
  char card[kMaxCard + 1] = {};           // turn
  char reason[240] = {};                  // failed
};
static_assert(sizeof(Answer) == 352);

class Control {
 public:
  virtual ~Control() = default;

  // Client: sends an order (and numbers it), waits for its answer. Throws Failure when there is
  // none within `patience`, or when the answer says that the order failed.
  Answer call(Order order, std::chrono::milliseconds patience);

  // Server: waits for an order; false when `patience` runs out.
  bool next(Order& order, std::chrono::milliseconds patience);
  virtual void answer(const Answer& answer) = 0;

  // Orders and answers may get lost on the way.
  virtual bool lossy() const = 0;

 protected:
  virtual void send(const Order& order) = 0;
  // Receive whatever comes within a short while; false: nothing did.
  virtual bool receive(Order& order) = 0;
  virtual bool receive(Answer& answer) = 0;

 private:
  std::uint32_t sequence_ = 0;
};

// Over a connected stream socket.
std::unique_ptr<Control> socket_control(Descriptor socket);
// TCP: the listening side (listening_socket at kControlPort) waits for a connection as long as it
// takes; the other one 10 s.
Descriptor wait_for_client(const Descriptor& listener);
Descriptor connect_to_server(const std::string& ip);

// Over raw frames. Without a `server` address this side is the server and answers who asks.
std::unique_ptr<Control> frame_control(port::Port& port, const link::Address* server);

}  // namespace viaduct::pingpong
