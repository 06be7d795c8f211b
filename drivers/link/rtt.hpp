// The round-trip estimator of one peer, and how long its retransmission timer runs: RFC
// 6298 (smoothed round trip, deviation), in nanoseconds and without that RFC's one-second floor.
// The reordering window is that of RFC 8985 (RACK). Callers feed only samples of frames that were
// sent once (Karn's rule, RFC 6298 section 3). One owner thread.
#pragma once

#include <algorithm>

#include "drivers/link/types.hpp"

namespace viaduct::link {

class RttEstimator {
 public:
  // One measured round trip.
  void sample(Duration rtt) {
    // 0 means "not measured" in smoothed_, so a sample counts as a nanosecond at least.
    if (rtt < Duration{1}) rtt = Duration{1};
    if (!measured()) {
      smoothed_ = minimum_ = rtt;
      deviation_ = rtt / 2;
    } else {
      const Duration error = rtt > smoothed_ ? rtt - smoothed_ : smoothed_ - rtt;
      deviation_ += (error - deviation_) / 4;
      smoothed_ += (rtt - smoothed_) / 8;
      minimum_ = std::min(minimum_, rtt);
    }
    timeout_ = smoothed_ + std::max(4 * deviation_, smoothed_ / 2);
  }

  bool measured() const { return smoothed_ != Duration{0}; }
  Duration smoothed() const { return smoothed_; }
  Duration minimum() const { return minimum_; }

  // How long after its transmission a frame is overdue. The slack is half a round trip at least: on
  // a steady network the deviation goes to 0, and the timeout would come down to the round trip.
  Duration timeout(Duration floor) const { return std::max(timeout_, floor); }
  // Frames sent within this time of each other may arrive in the other order without a loss.
  Duration reordering() const { return minimum_ / 4; }

 private:
  Duration smoothed_{0}, deviation_{0}, minimum_{0};  // srtt, rttvar, the minimum of all samples
  Duration timeout_ = std::chrono::milliseconds{1};   // until measured
};

}  // namespace viaduct::link
