// Link over DPDK ports.
#include "drivers/link/impl/all.hpp"
#include "drivers/link/port.hpp"

namespace viaduct::link {
static_assert(PacketDevice<Port>);
template class Link<Port>;
}  // namespace viaduct::link
