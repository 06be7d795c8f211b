#include "drivers/link/message.hpp"

namespace viaduct::link {

const char* text(DownReason reason) {
  switch (reason) {
    case DownReason::silent: return "no answer for too long";
    case DownReason::left: return "it said goodbye";
    case DownReason::restarted: return "it has restarted";
    case DownReason::refused: return "nobody answered the handshake (other job key, or no Viaduct)";
    case DownReason::path_mtu:
      return "full-size frames do not get through: set the MTU of everything between the ports to "
             "the ports' own (ip link set DEV mtu N), or lower the ports' with VIADUCT_MTU";
    case DownReason::closed: return "disconnected";
  }
  return "unknown";
}

}  // namespace viaduct::link
