// One side: its port, opened when a layer needs it, and the addresses of both sides.
#pragma once

#include <memory>
#include <string>

#include "drivers/port/port.hpp"
#include "tools/pingpong/layer.hpp"

namespace viaduct::pingpong {

struct SideConfig {
  bool client = false;
  std::string devargs;      // empty: no port
  std::size_t mtu = 0;      // 0: the port's own
  std::string ip, peer_ip;  // empty: layers over a port only
};

class Side {
 public:
  explicit Side(const SideConfig& config) : config_(config) {}

  const SideConfig& config() const { return config_; }
  void set_peer_ip(const std::string& ip) { config_.peer_ip = ip; }
  bool has_port() const { return !config_.devargs.empty(); }

  // The port, opened if it is not open. Its link may not be up yet.
  port::Port& port();
  // Polls the port until its link is up (what it receives is dropped). Throws Failure.
  void wait_for_link();

  // Opens the port, or closes it, as this kind of layer needs it: a port that shares its interface
  // with the kernel (af_packet, af_xdp) is closed while a kernel layer is measured, because it
  // would get a copy of every frame, or all of them. True: wait_for_link() has still to be called.
  bool prepare(const LayerKind& kind);

 private:
  SideConfig config_;
  std::unique_ptr<port::Port> port_;
  bool up_ = false;  // the link has been seen up since the port was opened
};

}  // namespace viaduct::pingpong
