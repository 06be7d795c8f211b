// The arguments of --vdev rawdev_mbcf0,port=NAME_OR_ID[,max_keys=N][,max_requests=N]
// [,max_writers=N][,job=N].
#pragma once

#include "drivers/mbcf/rte_pmd_mbcf.h"
#include "drivers/rawdev/vdev_args.hpp"

namespace viaduct::mbcf {

using VdevArgs = rawdev::VdevArgs<rte_pmd_mbcf_conf>;

// Throws SetupError that names the bad argument and shows what is accepted.
inline VdevArgs parse_vdev_args(const std::string& text) {
  VdevArgs args;
  args.port = rawdev::parse_vdev_args(text, {{"max_keys", &args.conf.max_keys},
                                             {"max_requests", &args.conf.max_requests},
                                             {"max_writers", &args.conf.max_writers},
                                             {"job", &args.conf.job_key}});
  return args;
}

}  // namespace viaduct::mbcf
