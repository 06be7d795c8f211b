// Link over the simulated network.
#include "drivers/link/impl/all.hpp"
#include "drivers/link/sim_net.hpp"

namespace viaduct::link {
static_assert(PacketDevice<SimPort>);
template class Link<SimPort>;
}  // namespace viaduct::link
