// Opens, closes and waits for one side's port (side.hpp).
#include "tools/pingpong/side.hpp"

#include "tools/pingpong/watch.hpp"

namespace viaduct::pingpong {

namespace {

constexpr std::chrono::seconds kLinkPatience{10};  // a NIC negotiates for some seconds
constexpr int kPolls = 64;                         // between looks at the link

bool shares_interface(const port::Port& port) {
  const std::string driver = port.driver();
  return driver == "net_af_packet" || driver == "net_af_xdp";
}

}  // namespace

port::Port& Side::port() {
  if (!port_) {
    up_ = false;
    port::PortConfig config;
    config.devargs = config_.devargs;
    config.mtu = config_.mtu;
    port_ = port::Port::open(config);
  }
  return *port_;
}

void Side::wait_for_link() {
  Watch watch(kLinkPatience);
  while (!port().link_up()) {
    // A memif connects only while it is polled.
    for (int i = 0; i < kPolls; ++i) {
      port::Port::Frame* frame;
      if (port().receive(&frame, 1) > 0) port::Port::release(frame);
      if (!watch.spin())
        throw Failure("the link of port " + config_.devargs +
                      " is down after 10 s; check the cable, the switch port, or that the other "
                      "side is running");
    }
  }
  up_ = true;
}

bool Side::prepare(const LayerKind& kind) {
  if (kind.info.over != Over::port) {
    if (port_ && shares_interface(*port_)) port_.reset();
    return false;
  }
  port();
  return !up_;
}

}  // namespace viaduct::pingpong
