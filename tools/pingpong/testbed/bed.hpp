// Testbeds with two processes on this machine: netns, memif and verbs. (The testbed ring has both
// sides in one process: ring.cpp.)
#pragma once

#include "tools/pingpong/options.hpp"

namespace viaduct::pingpong {

// Makes the testbed, starts a process for each side, waits for both, and takes everything down
// again. Returns the exit status; throws Failure if the testbed cannot be made.
int run_testbed(const Options& options);

}  // namespace viaduct::pingpong
