// Link over DPDK ports.
#include "drivers/link/impl/all.hpp"
#include "drivers/port/port.hpp"

namespace viaduct::link {
static_assert(PacketDevice<port::Port>);
template class Link<port::Port>;
}  // namespace viaduct::link
