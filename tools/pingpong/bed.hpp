// Beds with two processes on this machine.
#pragma once

#include "tools/pingpong/options.hpp"

namespace viaduct::pingpong {

// Makes the bed, starts both sides, waits, and takes everything down again. The exit status.
int run_bed(const Options& options);

}  // namespace viaduct::pingpong
