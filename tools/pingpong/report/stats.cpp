// The arithmetic of stats.hpp. A round without a figure is NaN throughout, and is left out of
// medians and extremes.
#include "tools/pingpong/report/stats.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace viaduct::pingpong {

namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// The figures that exist.
std::vector<double> present(std::vector<double> values) {
  std::erase_if(values, [](double v) { return std::isnan(v); });
  return values;
}

}  // namespace

RoundTrips summarize(std::vector<std::uint32_t>& samples, std::uint64_t lost,
                     double nanoseconds_per_tick) {
  RoundTrips out;
  out.count = samples.size();
  out.lost = lost;
  if (samples.empty()) return out;
  std::sort(samples.begin(), samples.end());
  const auto at = [&](std::size_t i) { return samples[i] * nanoseconds_per_tick; };
  out.min_ns = at(0);
  out.median_ns = at(samples.size() / 2);
  // With fewer than 100 samples that is the largest.
  out.p99_ns = at(std::min(samples.size() - 1, samples.size() * 99 / 100));
  return out;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void Series::add(const RoundTrips& round) {
  const bool any = round.count > 0;
  min_ns.push_back(any ? round.min_ns : kNothing);
  median_ns.push_back(any ? round.median_ns : kNothing);
  p99_ns.push_back(any ? round.p99_ns : kNothing);
  lost_round_trips += round.lost;
}

void Series::add(const Received& round) {
  const double rate = round.bytes_per_second();
  bytes_per_second.push_back(rate > 0 ? rate : kNothing);
}

// Summary of all rounds: the least of the least times, medians of medians and of 99th percentiles.
Row row(const Series& series) {
  Row out;
  out.layer = series.layer;
  out.bytes = series.bytes;
  if (const auto medians = present(series.median_ns); !medians.empty()) {
    const auto least = present(series.min_ns);
    out.round_trip = Row::RoundTrip{*std::min_element(least.begin(), least.end()), median(medians),
                                    median(present(series.p99_ns))};
  }
  if (const auto rates = present(series.bytes_per_second); !rates.empty()) {
    const double middle = median(rates);
    out.bandwidth =
        Row::Bandwidth{middle / 1e6, *std::max_element(rates.begin(), rates.end()) / 1e6,
                       middle / static_cast<double>(series.bytes)};
  }
  return out;
}

std::optional<Ratio> ratio(const std::vector<double>& of, const std::vector<double>& to) {
  std::vector<double> single;
  for (std::size_t i = 0; i < std::min(of.size(), to.size()); ++i)
    if (!std::isnan(of[i]) && !std::isnan(to[i]) && to[i] > 0) single.push_back(of[i] / to[i]);
  const double below = median(present(to));
  if (single.empty() || below <= 0) return std::nullopt;
  return Ratio{median(present(of)) / below, *std::min_element(single.begin(), single.end()),
               *std::max_element(single.begin(), single.end())};
}

}  // namespace viaduct::pingpong
