// Devices of the kernel's RDMA subsystem, Soft-RoCE among them, through libibverbs.
#pragma once

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::vi {

Provider& ibverbs_provider();

}  // namespace viaduct::vi
