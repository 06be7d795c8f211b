// A layer: one way for two hosts to exchange messages. To add one, write one file: a class that
// models Transport (transport.hpp) and a RegisterLayer object; everything else follows.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "drivers/port/port.hpp"
#include "tools/pingpong/options.hpp"
#include "tools/pingpong/report/stats.hpp"

namespace viaduct::pingpong {

// One thing to measure of one layer.
struct Point {
  Measure measure = Measure::latency;
  std::size_t bytes = kMinBytes;
  std::uint64_t messages = 0;  // 0: as many as `time` allows
  std::chrono::nanoseconds time{};
};

// Where one side of a layer is, who is opposite, and what for.
struct Wire {
  bool client = false;         // the side that measures; the other one serves
  port::Port* port = nullptr;  // ethdev layers
  link::Address peer;          // the other side's port
  std::size_t mtu = 0;         // of both ports: the smaller one
  std::string ip, peer_ip;     // other layers
  std::string card;            // client: the server's Layer::card()
  bool checksum = true;
  std::uint8_t turn = 0;  // tells this turn's frames from late ones of an earlier turn
  Point point;            // for what has to be there before the two sides are ready
};

inline constexpr std::size_t kMaxCard = 63;

// One side of a layer during one turn. Every function returns when its part is done, or throws
// Failure or Interrupted; none waits for ever.
class Layer {
 public:
  virtual ~Layer() = default;

  // Server: what the client has to know before it is made, at most kMaxCard characters.
  virtual std::string card() const = 0;

  // Until both sides can reach each other; false when `patience` runs out.
  virtual bool connect(std::chrono::nanoseconds patience) = 0;

  // Measures one point. The client's ping() talks to the server's serve_ping(), its send() to the
  // server's receive(). Both serving functions return when the client says that it has finished,
  // or at once when nothing comes at all (false, or nothing received). send() returns the seconds
  // that sending took.
  virtual RoundTrips ping(const Point& point) = 0;
  virtual bool serve_ping(const Point& point) = 0;
  virtual double send(const Point& point) = 0;
  virtual Received receive(const Point& point) = 0;

  // The same with both sides on one thread, which polls them alternately; `server` is of the same
  // class.
  virtual bool connect_both(Layer& server, std::chrono::nanoseconds patience) = 0;
  virtual RoundTrips ping_both(Layer& server, const Point& point) = 0;
  virtual Received stream_both(Layer& server, const Point& point) = 0;
};

struct LayerKind {
  LayerInfo info;
  int order;  // in --help and tables
  std::unique_ptr<Layer> (*make)(const Wire& wire);
};

// All layers of this program, by `order`.
const std::vector<LayerKind>& layer_kinds();
std::vector<LayerInfo> layer_infos();
const LayerKind* find_layer(std::string_view name);

namespace detail {
void add_layer_kind(const LayerKind& kind);
}

}  // namespace viaduct::pingpong
