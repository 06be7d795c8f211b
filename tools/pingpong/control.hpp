// The control channel: how the client, which measures, tells the server what to do, and gets its
// answers. Orders and answers travel beside the layers, never through them: over a socket (between
// the processes of a testbed, or TCP between hosts) or, between hosts without IP addresses, in raw
// Ethernet frames of the very port that is measured. session.hpp draws the sequence.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "drivers/port/port.hpp"
#include "tools/pingpong/layer.hpp"
#include "tools/pingpong/socket.hpp"

namespace viaduct::pingpong {

inline constexpr std::uint32_t kOrderMagic = 0x32707076;  // "vpp2"; 2 is the version of the layout

// From the client to the server. Plain data that is copied to the wire as it is, little-endian.
// Fields are significant only in the orders that their comments name.
struct Order {
  // hello: exchange addresses. bring_up: open the port and wait for its link. turn: measure one
  // point together. result: what the server measured. bye: end.
  enum class What : std::uint8_t { hello = 1, bring_up, turn, result, bye };
  std::uint32_t magic = kOrderMagic;
  std::uint32_t sequence = 0;  // an order that is repeated keeps its number
  What what = What::hello;
  std::uint8_t latency = 0;      // turn: latency, else bandwidth
  std::uint8_t checksum = 0;     // turn: checksums in the link's frames
  std::uint8_t has_port = 0;     // hello: the client has a port
  std::uint8_t address[6] = {};  // hello: of the sender's port
  std::uint8_t unused[2] = {};
  // A turn's Point: message size, number of messages (0: as the time allows), time.
  std::uint64_t bytes = 0, messages = 0, nanoseconds = 0;  // turn
  std::uint64_t mtu = 0;                                   // turn: what both ports can do
  char layer[32] = {};                                     // bring_up, turn
};
static_assert(sizeof(Order) == 88);

// From the server to the client; one for each order.
struct Answer {
  std::uint32_t magic = kOrderMagic;
  std::uint32_t sequence = 0;             // that of the order
  std::uint8_t failed = 0;                // 1: `reason` says why
  std::uint8_t has_port = 0;              // hello
  std::uint8_t address[6] = {};           // hello
  std::uint64_t mtu = 0;                  // hello: of the server's port
  std::uint64_t messages = 0, bytes = 0;  // result
  double seconds = 0;                     // result: by the server's clock (stats.hpp, Received)
  char endpoint_address[kMaxEndpointAddress + 1] = {};  // turn: of the server's layer
  char reason[240] = {};                                // failed: one sentence, ends with a zero
};
static_assert(sizeof(Answer) == 352);

// One end of a control channel. One thread uses it. The client uses call(), the server next() and
// answer(). Throws PeerGone when the other process has ended, Interrupted on a signal.
class Control {
 public:
  virtual ~Control() = default;

  // Client: numbers the order, sends it, and waits for its answer; repeats the order meanwhile if
  // the channel is lossy. Throws Failure if no answer comes within `patience` or the answer says
  // that the order failed.
  Answer call(Order order, std::chrono::milliseconds patience);

  // Server: waits for an order; false when `patience` runs out.
  bool next(Order& order, std::chrono::milliseconds patience);
  // Server: sends the answer to the client that sent the last order.
  virtual void answer(const Answer& answer) = 0;

  // Whether orders and answers may get lost on the way.
  virtual bool lossy() const = 0;

 protected:
  virtual void send(const Order& order) = 0;
  // Receive whatever comes within a short while (some milliseconds); false: nothing did.
  virtual bool receive(Order& order) = 0;
  virtual bool receive(Answer& answer) = 0;

 private:
  std::uint32_t sequence_ = 0;
};

// Over a connected stream socket, which the Control then owns.
std::unique_ptr<Control> socket_control(UniqueFd socket);
// TCP: the server accepts one connection at `listener` (listening_socket() at kControlPort) and
// waits for it as long as it takes. The client tries to connect for 10 s, then throws Failure.
UniqueFd wait_for_client(const UniqueFd& listener);
UniqueFd connect_to_server(const std::string& ip);

// Over raw frames of `port`, which must outlive the Control. The client names the server's address;
// without one this side is the server, and answers the sender of each order.
std::unique_ptr<Control> frame_control(port::Port& port, const link::Address* server);

}  // namespace viaduct::pingpong
