// The arguments of --vdev rawdev_startx0,port=NAME_OR_ID[,queue_depth=N][,max_open=N]...
// rawdev.cpp parses them when EAL probes the device; docs/startx.md lists them.
#pragma once

#include "drivers/rawdev/vdev_args.hpp"
#include "drivers/startx_emul/rte_pmd_startx.h"

namespace viaduct::startx {

using VdevArgs = rawdev::VdevArgs<rte_pmd_startx_conf>;

// The port and the configuration; arguments that are absent stay 0, which means their default.
// Throws SetupError that names the bad argument and shows what is accepted.
inline VdevArgs parse_vdev_args(const std::string& text) {
  VdevArgs args;
  args.port = rawdev::parse_vdev_args(text, {{"queue_depth", &args.conf.queue_depth},
                                             {"max_open", &args.conf.max_open},
                                             {"max_posted", &args.conf.max_posted},
                                             {"max_regions", &args.conf.max_regions},
                                             {"job", &args.conf.job_key}});
  return args;
}

}  // namespace viaduct::startx
