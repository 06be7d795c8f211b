// Measuring one point at a time, wherever the two sides are.
#pragma once

#include <memory>

#include "tools/pingpong/control.hpp"
#include "tools/pingpong/layer.hpp"
#include "tools/pingpong/side.hpp"

namespace viaduct::pingpong {

class Session {
 public:
  virtual ~Session() = default;
  virtual RoundTrips latency(const LayerKind& kind, const Point& point) = 0;
  virtual Received bandwidth(const LayerKind& kind, const Point& point) = 0;
  // Everything has been measured.
  virtual void end() {}
};

// The client's end of two sides that are two processes.
std::unique_ptr<Session> remote_session(Side& side, Control& control, bool checksum);

// Follows the orders of a client until it says goodbye. `first_patience`: how long to wait for it.
void serve(Side& side, Control& control, std::chrono::milliseconds first_patience);

// Both sides in this process and thread.
std::unique_ptr<Session> ring_session(std::size_t mtu, bool checksum);

}  // namespace viaduct::pingpong
