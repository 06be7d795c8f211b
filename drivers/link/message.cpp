// The reasons for which a connection ends, and the states of a connection (peer.hpp), as text for
// log messages, Link::dump and tools.

#include "drivers/link/message.hpp"

#include "drivers/link/peer.hpp"

namespace viaduct::link {

const char* text(DownReason reason) {
  switch (reason) {
    case DownReason::silent: return "no answer for too long";
    case DownReason::left: return "it said goodbye";
    case DownReason::restarted: return "it has restarted";
    case DownReason::refused:
      return "nobody answered the connection requests: no Viaduct polls a port of that address, or "
             "it has another job key or version (then its drop_job or drop_version counts them)";
    case DownReason::no_room:
      return "it has no room for another peer (its drop_peers_full counts the requests)";
    case DownReason::path_mtu:
      return "it answers, but not even frames of 576 bytes get through: set the MTU of everything "
             "between the ports to the ports' own (ip link set DEV mtu N)";
    case DownReason::closed: return "disconnected";
  }
  return "unknown";
}

const char* text(PeerState state) {
  switch (state) {
    case PeerState::fresh: return "not connected";
    case PeerState::request_sent: return "connecting";
    case PeerState::accept_sent: return "half-open";
    case PeerState::accept_received: return "confirming";
    case PeerState::up: return "up";
    case PeerState::draining: return "leaving";
  }
  return "unknown";
}

}  // namespace viaduct::link
