// Where RDMA devices come from: libibverbs, unless a test has put another vi::Provider in its
// place.
#pragma once

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::vipl {

// The provider; it lives as long as the process.
vi::Provider& device_source();
// Replaces the provider. Before any NIC is opened; `provider` must live as long as the process.
void set_device_source(vi::Provider& provider);

}  // namespace viaduct::vipl
