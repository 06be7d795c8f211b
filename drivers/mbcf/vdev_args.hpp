// The arguments of --vdev rawdev_mbcf0,port=NAME_OR_ID[,max_keys=N][,max_requests=N]
// [,max_writers=N][,job=N].
#pragma once

#include "drivers/mbcf/rte_pmd_mbcf.h"
#include "drivers/rawdev/vdev_args.hpp"

namespace viaduct::mbcf {

using VdevArgs = rawdev::VdevArgs<rte_pmd_mbcf_conf>;

// Throws SetupError that names the bad argument and shows what is accepted.
VdevArgs parse_vdev_args(const std::string& text);

}  // namespace viaduct::mbcf
