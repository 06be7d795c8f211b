// Messages on unreliable VIs: how many were sent, and how many of them were dropped, which is known
// when both sides have said what they sent and received.
#pragma once

#include <cstdint>
#include <string>

#include "libvipl/connection/connection_user.hpp"

namespace viaduct::vipl {

// With the manager's lock held.
class Drops {
 public:
  // A connection has ended.
  void count(const Tally& mine, const Tally& others);
  // ... and the other side has not said what it had.
  void count_unknown() { ++unknown_; }
  std::string text() const;

 private:
  // Sent from here, and sent to here.
  std::uint64_t sent_ = 0, sent_dropped_ = 0, expected_ = 0, expected_dropped_ = 0;
  std::uint64_t unknown_ = 0;
};

}  // namespace viaduct::vipl
