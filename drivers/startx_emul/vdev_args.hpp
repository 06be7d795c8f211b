// The arguments of --vdev rawdev_startx0,port=NAME_OR_ID[,queue_depth=N][,max_open=N]...
#pragma once

#include <string>
#include <string_view>

#include "drivers/startx_emul/rte_pmd_startx.h"

namespace viaduct::startx {

struct VdevArgs {
  std::string port;  // as link::PortConfig::devargs has it: "port:NAME_OR_ID"
  rte_pmd_startx_conf conf{};
};

inline constexpr char kVdevParameters[] =
    "port=<name or id of an ethdev> queue_depth=<int> max_open=<int> max_posted=<int> "
    "max_regions=<int> job=<int>";

// Throws SetupError that names the bad argument and shows what is accepted.
VdevArgs parse_vdev_args(std::string_view text);

}  // namespace viaduct::startx
