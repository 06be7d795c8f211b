// The measured round trip of one peer and the timeout that follows from it (after RFC 6298, in
// nanoseconds and without its one-second floor).
#pragma once

#include <algorithm>

#include "drivers/link/types.hpp"

namespace viaduct::link {

class RttEstimator {
 public:
  void sample(Duration rtt) {
    if (rtt < Duration{1}) rtt = Duration{1};
    if (!measured()) {
      smoothed_ = least_ = rtt;
      deviation_ = rtt / 2;
    } else {
      const Duration error = rtt > smoothed_ ? rtt - smoothed_ : smoothed_ - rtt;
      deviation_ += (error - deviation_) / 4;
      smoothed_ += (rtt - smoothed_) / 8;
      least_ = std::min(least_, rtt);
    }
    timeout_ = smoothed_ + std::max(4 * deviation_, smoothed_ / 2);
  }

  bool measured() const { return smoothed_ != Duration{0}; }
  Duration smoothed() const { return smoothed_; }
  Duration least() const { return least_; }

  // How long after its transmission a frame is overdue. Half a round trip of slack at least, so
  // that a steady network does not make the timeout as short as the round trip itself.
  Duration timeout(Duration floor) const { return std::max(timeout_, floor); }
  // Reordering is expected within this time.
  Duration reordering() const { return least_ / 4; }

 private:
  Duration smoothed_{0}, deviation_{0}, least_{0};
  Duration timeout_ = std::chrono::milliseconds{1};  // until measured
};

}  // namespace viaduct::link
