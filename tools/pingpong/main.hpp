// What main() and the processes that it starts have in common.
#pragma once

#include <functional>

namespace viaduct::pingpong {

// Runs the body, prints what went wrong in one sentence to standard error, and returns the exit
// status. Catches all exceptions that this program throws; for PeerGone and Interrupted nothing is
// printed.
int report_errors(const std::function<int()>& body);

}  // namespace viaduct::pingpong
