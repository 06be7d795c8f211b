// A layer of the ping-pong: one way for two hosts to exchange messages, such as raw frames, MBCF
// writes or TCP. To add one, write one file in layers/: a class that models Transport
// (layers/transport.hpp) and a RegisterLayer object; everything else follows (docs/extending.md).
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "drivers/port/port.hpp"
#include "tools/pingpong/options.hpp"
#include "tools/pingpong/report/stats.hpp"

namespace viaduct::pingpong {

// One thing to measure of one layer: latency or bandwidth, at one message size.
struct Point {
  Measure measure = Measure::latency;
  std::size_t bytes = kMinBytes;    // of a message
  std::uint64_t messages = 0;       // 0: as many as `time` allows
  std::chrono::nanoseconds time{};  // how long to measure; not used if `messages` is given
};

// Where one side of a layer is, where the other side is, and what for. Valid during the constructor
// of the layer; `port` belongs to the Side and outlives the layer.
struct TurnConfig {
  bool client = false;           // the side that measures; the other one serves
  port::Port* port = nullptr;    // ethdev layers
  link::Address peer;            // the other side's port
  std::size_t mtu = 0;           // of both ports: the smaller one
  std::string ip, peer_ip;       // layers over the kernel or RDMA
  std::string endpoint_address;  // client: the server's Layer::endpoint_address()
  bool checksum = true;          // of the link's frames, for layers over a link
  std::uint8_t turn = 0;         // tells this turn's frames from late ones of an earlier turn
  Point point;                   // for layers that need memory or receives before they are ready
};

// The longest Layer::endpoint_address(), in characters; it has to fit an Answer (control.hpp).
inline constexpr std::size_t kMaxEndpointAddress = 63;

// One side of a layer during one turn. One thread uses it. Every function returns when its part is
// done, or throws Failure or Interrupted; none waits for ever. Made by LayerKind::make, connected,
// used for one point, and destroyed.
class Layer {
 public:
  virtual ~Layer() = default;

  // Server: its endpoint address, which the client needs before it makes its side. At most
  // kMaxEndpointAddress characters; empty if the layer needs none.
  virtual std::string endpoint_address() const = 0;

  // Connects the two sides; both call it at about the same time. False when `patience` runs out
  // first.
  virtual bool connect(std::chrono::nanoseconds patience) = 0;

  // Measure one point. The client's ping() exchanges messages with the server's serve_ping(), its
  // send() streams to the server's receive(). Both serving functions return when the client says
  // that it has finished, or early when nothing comes at all (false, or nothing received). send()
  // returns the seconds that sending took.
  virtual RoundTrips ping(const Point& point) = 0;
  virtual bool serve_ping(const Point& point) = 0;
  virtual double send(const Point& point) = 0;
  virtual Received receive(const Point& point) = 0;

  // The same with both sides on one thread, which polls them alternately. `server` is the other
  // side, of the same class; the object that is called is the client.
  virtual bool connect_both(Layer& server, std::chrono::nanoseconds patience) = 0;
  virtual RoundTrips ping_both(Layer& server, const Point& point) = 0;
  virtual Received stream_both(Layer& server, const Point& point) = 0;
};

// A layer as the program knows it before a turn.
struct LayerKind {
  LayerInfo info;
  int order;  // in --help: ascending
  std::unique_ptr<Layer> (*make)(const TurnConfig& config);
};

// All layers of this program, sorted by `order`. Complete once main() has begun; find_layer() gives
// nullptr if there is no such layer.
const std::vector<LayerKind>& layer_kinds();
std::vector<LayerInfo> layer_infos();
const LayerKind* find_layer(std::string_view name);

namespace detail {
// RegisterLayer's part of the work; runs before main().
void add_layer_kind(const LayerKind& kind);
}  // namespace detail

}  // namespace viaduct::pingpong
