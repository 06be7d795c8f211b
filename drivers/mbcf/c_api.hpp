// What is behind the handle of rte_pmd_mbcf.h, shared by its functions and the rawdev.
#pragma once

#include "drivers/mbcf/node.hpp"
#include "drivers/mbcf/rte_pmd_mbcf.h"

struct rte_pmd_mbcf {
  std::unique_ptr<viaduct::mbcf::Node> node;
};

namespace viaduct::mbcf {

// Opens a handle; nullptr with rte_errno and rte_pmd_mbcf_error() set when that fails.
std::unique_ptr<rte_pmd_mbcf> open_handle(const std::string& port, const rte_pmd_mbcf_conf& conf);

// Zeros replaced by the defaults.
EngineConfig engine_config(const rte_pmd_mbcf_conf& conf);

}  // namespace viaduct::mbcf
