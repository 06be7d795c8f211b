// What is behind the handle of rte_pmd_startx.h, shared by its functions (c_api.cpp) and the rawdev
// (rawdev.cpp). The handle owns the node. Thread rule: one thread at a time for each handle.
#pragma once

#include "drivers/startx_emul/node.hpp"
#include "drivers/startx_emul/rte_pmd_startx.h"

struct rte_pmd_startx {
  std::unique_ptr<viaduct::startx::Node> node;
};

namespace viaduct::startx {

// Opens a node on `port` (as port::PortConfig::devargs has it); the caller owns the handle. nullptr
// with rte_errno and rte_pmd_startx_error() set when that fails. Throws nothing.
std::unique_ptr<rte_pmd_startx> open_handle(const std::string& port,
                                            const rte_pmd_startx_conf& conf);

// The configuration of the C API with its zeros replaced by the defaults.
NiuConfig niu_config(const rte_pmd_startx_conf& conf);

}  // namespace viaduct::startx
