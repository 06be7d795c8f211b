// One side of a run between two real hosts: --listen is the server, --connect the client. The hosts
// find each other by IPv4 address (orders over TCP) or by MAC address (orders in raw frames over
// the port).
#pragma once

#include "tools/pingpong/options.hpp"

namespace viaduct::pingpong {

// Each prints what it has to say, runs one session, and returns the exit status (0). Failure and
// SetupError are thrown; run_listen() without an IP address waits a year for its client.
int run_listen(const Options& options);
int run_connect(const Options& options);

}  // namespace viaduct::pingpong
