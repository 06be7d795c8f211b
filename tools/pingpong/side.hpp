// One side of a run: its port, opened when a layer needs it, and the addresses of both sides.
//
// The port of a side:
//
//                port(), or prepare() for a layer over a port
//     closed -------------------------------------------------> open, link not seen up
//       ^                                                             |
//       | prepare() for a layer that is not over a port,              | wait_for_link()
//       | if the port shares its interface with the kernel            v
//       +------------------------------------------------------ open, link up
//       (from both open states)
//
// The next port() opens a closed port anew, and its link has to come up again.
#pragma once

#include <memory>
#include <string>

#include "drivers/port/port.hpp"
#include "tools/pingpong/layer.hpp"

namespace viaduct::pingpong {

// How a side was started.
struct SideConfig {
  bool client = false;      // measures; the other side serves
  std::string devargs;      // empty: no port
  std::size_t mtu = 0;      // 0: the port's own
  std::string ip, peer_ip;  // empty: layers over a port only
};

// Owns the port. One thread uses it. Layers borrow the port for one turn.
class Side {
 public:
  explicit Side(const SideConfig& config) : config_(config) {}

  const SideConfig& config() const { return config_; }
  void set_peer_ip(const std::string& ip) { config_.peer_ip = ip; }
  bool has_port() const { return !config_.devargs.empty(); }

  // The port, opened if it is not open. Its link may not be up yet. Throws SetupError.
  port::Port& port();
  // Polls the port until its link is up; frames that come meanwhile are dropped. Throws Failure
  // after 10 s.
  void wait_for_link();

  // Opens or closes the port as this kind of layer needs it. A port that shares its interface with
  // the kernel (af_packet, af_xdp) is closed while a layer that is not over a port is measured,
  // because it would get a copy of every frame, or all of them. True: wait_for_link() has still to
  // be called.
  bool prepare(const LayerKind& kind);

 private:
  SideConfig config_;
  std::unique_ptr<port::Port> port_;
  bool up_ = false;  // the link has been seen up since the port was opened
};

}  // namespace viaduct::pingpong
