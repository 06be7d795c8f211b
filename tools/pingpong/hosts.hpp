// One side of a run between two real hosts.
#pragma once

#include "tools/pingpong/options.hpp"

namespace viaduct::pingpong {

int run_listen(const Options& options);
int run_connect(const Options& options);

}  // namespace viaduct::pingpong
