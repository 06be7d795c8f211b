// Drops: statistics of dropped messages on unreliable VIs, for VIADUCT_VIPL_STATS. A connection
// counts when it has ended and both sides have told each other their tally; the difference was
// dropped.
#pragma once

#include <cstdint>
#include <string>

#include "libvipl/connection/connection_user.hpp"

namespace viaduct::vipl {

// Part of a ConnectionTable; all functions need the manager's lock.
class Drops {
 public:
  // A connection has ended, and both tallies are known.
  void count(const Tally& mine, const Tally& others);
  // A connection has ended without the other side's tally.
  void count_unknown() { ++unknown_; }
  // One sentence for the user, without a full stop.
  std::string text() const;

 private:
  // Messages that this side sent, and those that the other sides sent to this one.
  std::uint64_t sent_ = 0, sent_dropped_ = 0, expected_ = 0, expected_dropped_ = 0;
  std::uint64_t unknown_ = 0;  // connections
};

}  // namespace viaduct::vipl
