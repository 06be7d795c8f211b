// The counters of a link as DPDK's telemetry gives them out (VIADUCT_TELEMETRY=on), at the socket
// dpdk_telemetry.v2 in EAL's runtime directory:
//
//   /viaduct/link/counters       the link's counters that are not zero: {"port0/frames_sent": 12}
//   /viaduct/link/peers          the same of each peer, and its state: {"port0/02aabbccddee/up": 1}
//
// A parameter chooses the names that begin with it ("/viaduct/link/peers,port0/02aa"): DPDK sends
// 256 of them at most. port0 is the ethdev of /ethdev/stats,0, which has the port's own counters.
//
// Thread rule: DPDK asks in a thread of its own, but counters are plain numbers of the owner
// thread. So its thread only sets a flag; the owner sees that when its port is idle
// (Port::on_idle), and leaves a copy. An owner that does not poll is waited for for 100 ms; then
// the last copy is given out, whose age is "port0/age_us".
#pragma once

#include <memory>

#include "drivers/link/link.hpp"
#include "drivers/port/port.hpp"

namespace viaduct::endpoint {

class Telemetry {
 public:
  // Does nothing if telemetry is off. Port and link must outlive it.
  Telemetry(port::Port& port, const link::Link<port::Port>& link);
  ~Telemetry();  // the link is not given out any more
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

 private:
  struct Source;

  port::Port& port_;
  std::shared_ptr<Source> source_;  // nullptr: telemetry is off
};

}  // namespace viaduct::endpoint
