// The one place that compiles Link over ports of the simulated network.
#include "drivers/link/impl/all.hpp"
#include "drivers/sim/sim_network.hpp"

namespace viaduct::link {
static_assert(PacketDevice<sim::SimPort>);
template class Link<sim::SimPort>;
}  // namespace viaduct::link
