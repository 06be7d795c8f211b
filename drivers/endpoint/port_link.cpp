// The one place that compiles Link over DPDK ports: all other files see declarations only
// (link.hpp), which keeps their compilation short.
#include "drivers/link/impl/all.hpp"
#include "drivers/port/port.hpp"

namespace viaduct::link {
static_assert(PacketDevice<port::Port>);
template class Link<port::Port>;
}  // namespace viaduct::link
