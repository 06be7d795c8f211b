// How the tool ends when it does not end well: the exceptions of this program, which
// report_errors() (main.hpp) turns into one sentence and an exit status.
#pragma once

#include <stdexcept>
#include <string>

namespace viaduct::pingpong {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitPeerGone = 3;  // between a testbed's processes only; the parent says why
inline constexpr int kExitInterrupted = 130;  // 128 + SIGINT, as shells have it

// One sentence: what failed, why, and what to do about it.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The command line is wrong.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// SIGINT, SIGTERM or SIGHUP.
struct Interrupted {};

// The process on the other side has ended. No sentence is printed for it where the parent will
// print one.
struct PeerGone : Failure {
  using Failure::Failure;
};

// A failed system call, from errno: "what: No such file or directory; remedy".
Failure system_failure(const std::string& what, const std::string& remedy = {});

}  // namespace viaduct::pingpong
