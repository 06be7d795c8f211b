// How the tool ends when it does not end well.
#pragma once

#include <stdexcept>
#include <string>

namespace viaduct::pingpong {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitPeerGone = 3;  // between a bed's processes only; the bed says why
inline constexpr int kExitInterrupted = 130;

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

// The process on the other side of the bed has ended.
struct PeerGone : Failure {
  using Failure::Failure;
};

// "what: No such file or directory; remedy"
Failure system_failure(const std::string& what, const std::string& remedy = {});

}  // namespace viaduct::pingpong
