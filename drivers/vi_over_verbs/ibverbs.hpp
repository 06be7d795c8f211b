// The provider of libvipl: devices of the kernel's RDMA subsystem, Soft-RoCE among them, through
// libibverbs. RoCE v2 over IPv4 only.
#pragma once

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::vi {

// Lives until the process ends. Any thread may call it.
Provider& ibverbs_provider();

}  // namespace viaduct::vi
