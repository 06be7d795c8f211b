// What main() and the processes that it starts have in common.
#pragma once

#include <functional>

namespace viaduct::pingpong {

// Runs the body, says what went wrong in one sentence, and returns the exit status.
int report_errors(const std::function<int()>& body);

}  // namespace viaduct::pingpong
