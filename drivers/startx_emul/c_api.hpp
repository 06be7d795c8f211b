// What is behind the handle of rte_pmd_startx.h, shared by its functions and the rawdev.
#pragma once

#include "drivers/startx_emul/node.hpp"
#include "drivers/startx_emul/rte_pmd_startx.h"

struct rte_pmd_startx {
  std::unique_ptr<viaduct::startx::Node> node;
};

namespace viaduct::startx {

// Opens a handle; nullptr with rte_errno and rte_pmd_startx_error() set when that fails.
std::unique_ptr<rte_pmd_startx> open_handle(const std::string& port,
                                            const rte_pmd_startx_conf& conf);

// Zeros replaced by the defaults.
NiuConfig niu_config(const rte_pmd_startx_conf& conf);

}  // namespace viaduct::startx
