// The handle behind the C API rte_pmd_mbcf.h, for the C functions (c_api.cpp) and the rawdev
// (rawdev.cpp). Thread rule: the engine's.
#pragma once

#include "drivers/mbcf/node.hpp"
#include "drivers/mbcf/rte_pmd_mbcf.h"

// Owned by the C program that opened it, or by the rawdev. rawdev/c_api.hpp needs the name `node`.
struct rte_pmd_mbcf {
  std::unique_ptr<viaduct::mbcf::Node> node;
};

namespace viaduct::mbcf {

// Opens a handle on a port, named as for rte_pmd_mbcf_open(); nullptr with rte_errno and
// rte_pmd_mbcf_error() set when that fails.
std::unique_ptr<rte_pmd_mbcf> open_handle(const std::string& port, const rte_pmd_mbcf_conf& conf);

// The engine's configuration: fields that are 0 in `conf` have their defaults.
EngineConfig engine_config(const rte_pmd_mbcf_conf& conf);

}  // namespace viaduct::mbcf
