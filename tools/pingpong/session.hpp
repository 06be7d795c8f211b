// Measuring one point at a time, wherever the two sides are: in two processes or hosts that talk
// over a Control (control.hpp), or both in this thread (the testbed ring).
//
// A session between client and server. The client measures and decides; the server does as each
// order says. Orders and answers travel over the Control; what is measured travels over the layer,
// drawn as ====.
//
//     client                                              server
//       | ---- hello (own port's address) -----------------> |
//       | <--- answer (port's address, MTU) ---------------- |
//       |                                                    |
//       |    for each point, only if the port was just opened:
//       | ---- bring_up (layer) ---------------------------> | opens its port
//       | <--- answer -------------------------------------- |
//       | waits for its link          waits for its link     |   (a turn to warm up may follow)
//       |                                                    |
//       |    for each point:                                 |
//       | ---- turn (layer, bytes, time, ...) -------------> | makes its side of the layer
//       | <--- answer (endpoint address of the layer) ------ | (Layer::endpoint_address)
//       | makes its side                                     |
//       | <=== connect, ping or stream, finish ============> |
//       | ---- result -------------------------------------> |
//       | <--- answer (messages, bytes, seconds) ----------- | or why the turn broke off
//       |                                                    |
//       | ---- bye ----------------------------------------> |
//       | <--- answer -------------------------------------- | ends
//
// Any answer may say that the order failed, with a reason; the client's call then throws Failure.
// On a Control that loses frames the client repeats an order with the same number until the answer
// comes, and the server carries out a repeated turn only if nothing has arrived in that turn yet.
#pragma once

#include <memory>

#include "tools/pingpong/control.hpp"
#include "tools/pingpong/layer.hpp"
#include "tools/pingpong/side.hpp"

namespace viaduct::pingpong {

// One run's measurements. One thread uses it. latency() and bandwidth() each take one turn and
// block for about Point::time; they throw Failure if the turn cannot be completed, and Interrupted
// on a signal.
class Session {
 public:
  virtual ~Session() = default;
  virtual RoundTrips latency(const LayerKind& kind, const Point& point) = 0;
  virtual Received bandwidth(const LayerKind& kind, const Point& point) = 0;
  // Everything has been measured: dismisses the other side, if it is another process.
  virtual void end() {}
};

// The client's end of two sides that are two processes. Says hello to the server before it returns.
// `side` and `control` must outlive the session. `checksum`: of the link's frames, for both sides.
std::unique_ptr<Session> remote_session(Side& side, Control& control, bool checksum);

// The server: follows the orders of one client until bye. Waits `first_patience` for the first
// order; throws Failure if the client is silent for too long.
void serve(Side& side, Control& control, std::chrono::milliseconds first_patience);

// Both sides in this process and thread, over two ports joined by rings. `mtu` 0: the ports' own.
std::unique_ptr<Session> ring_session(std::size_t mtu, bool checksum);

}  // namespace viaduct::pingpong
