// Figures: from single round trips to one round, from rounds to one row of the table, from rows to
// ratios. Pure functions; no clock is read here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace viaduct::pingpong {

enum class Measure : std::uint8_t { latency, bandwidth };

// Round trips of one layer at one size in one round. `lost` counts those without an answer
// (unreliable layers); times are of the others only.
struct RoundTrips {
  std::uint64_t count = 0, lost = 0;
  double min_ns = 0, median_ns = 0, p99_ns = 0;  // meaningless when count is 0
};

// What arrived in one round, by the receiver's clock. The clock starts when the first bytes have
// arrived, so those are not counted: messages, payload bytes, and seconds are what came after them.
struct Received {
  std::uint64_t messages = 0, bytes = 0;
  double seconds = 0;

  // The same with the time at least `sending_seconds`. A receiver that did not run when the sender
  // began finds much of the stream waiting and would take it for infinitely fast; a stream cannot
  // have taken less time than sending it.
  Received at_least_as_long_as(double sending_seconds) const {
    return {messages, bytes, std::max(seconds, bytes > 0 ? sending_seconds : 0)};
  }

  double bytes_per_second() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

// Least, median and 99th percentile of the samples, which it sorts.
RoundTrips summarize(std::vector<std::uint32_t>& samples_in_ticks, std::uint64_t lost,
                     double nanoseconds_per_tick);

double median(std::vector<double> values);  // 0 when empty

// Everything measured of one layer at one size. One entry a round in each list; NaN stands for
// "nothing arrived", so that entry i belongs to round i in every Series.
struct Series {
  std::string layer;
  std::size_t bytes = 0;
  std::vector<double> min_ns, median_ns, p99_ns;
  std::vector<double> bytes_per_second;
  std::uint64_t lost_round_trips = 0;

  void add(const RoundTrips& round);
  void add(const Received& round);
};

// One row of the table and of the JSON file. Absent: not measured, or nothing came through.
struct Row {
  std::string layer;
  std::size_t bytes = 0;
  struct RoundTrip {
    double min, median, p99;  // ns: least, median of medians, median of 99th percentiles
  };
  struct Bandwidth {
    double median, max;  // 10^6 bytes per second over the rounds
    double messages_per_second;
  };
  std::optional<RoundTrip> round_trip;
  std::optional<Bandwidth> bandwidth;
};
Row row(const Series& series);

// How many times `of` is what `to` is: the ratio of the medians, and the least and the most of the
// ratios of single rounds, in which both have a figure. No Ratio if there is no such round.
struct Ratio {
  double median, min, max;
};
std::optional<Ratio> ratio(const std::vector<double>& of, const std::vector<double>& to);

}  // namespace viaduct::pingpong
