// Prints the figures (table.hpp). Times in ns, rates in 10^6 bytes per second, as the heading says.
// The JSON is one flat object a line, and nothing here reads any: with nlohmann-json this file had
// 5 lines more and took four times as long to compile, with fmt 6 lines less and one and a half
// times.
#include "tools/pingpong/report/table.hpp"

#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <string>

#include "tools/pingpong/error.hpp"

namespace viaduct::pingpong {

namespace {

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof(text), pattern, arguments);
  va_end(arguments);
  return text;
}

// 1234567 -> "1,234,567"
std::string grouped(double value) {
  std::string out = format("%.0f", value);
  for (std::size_t at = out.size(); at > 3; at -= 3) out.insert(at - 3, 1, ',');
  return out;
}

// Nanoseconds; with commas from 1,000,000 on.
std::string time_text(double ns) {
  return ns < 1e6 ? format("%.0f", ns) : grouped(ns);
}

// Three significant digits at least.
std::string rate_text(double megabytes) {
  return format(megabytes < 10 ? "%.2f" : megabytes < 1000 ? "%.1f" : "%.0f", megabytes);
}

// "-": nothing came through.
void print_figures(std::ostream& out, const Options& options, const std::vector<Series>& series) {
  out << format("%9s  %-13s", "bytes", "layer");
  if (options.latency) out << format("%12s%12s%12s", "min ns", "median ns", "p99 ns");
  if (options.bandwidth) out << format("%13s%11s%15s", "median MB/s", "max MB/s", "messages/s");
  out << '\n';
  for (const Series& s : series) {
    const Row r = row(s);
    out << format("%9zu  %-13s", r.bytes, r.layer.c_str());
    if (options.latency && r.round_trip)
      out << format("%12s%12s%12s", time_text(r.round_trip->min).c_str(),
                    time_text(r.round_trip->median).c_str(), time_text(r.round_trip->p99).c_str());
    else if (options.latency)
      out << format("%12s%12s%12s", "-", "-", "-");
    if (options.bandwidth && r.bandwidth)
      out << format("%13s%11s%15s", rate_text(r.bandwidth->median).c_str(),
                    rate_text(r.bandwidth->max).c_str(),
                    grouped(r.bandwidth->messages_per_second).c_str());
    else if (options.bandwidth)
      out << format("%13s%11s%15s", "-", "-", "-");
    out << '\n';
  }
}

// Unreliable layers only; others fail rather than lose a round trip.
void print_losses(std::ostream& out, const std::vector<Series>& series) {
  for (const Series& s : series)
    if (s.lost_round_trips > 0)
      out << format("%s at %zu bytes: %llu round trips lost, not counted above\n", s.layer.c_str(),
                    s.bytes, static_cast<unsigned long long>(s.lost_round_trips));
}

std::string ratio_text(const std::optional<Ratio>& r) {
  return r ? format("%.2f [%.2f..%.2f]", r->median, r->min, r->max) : "-";
}

const Series* find(const std::vector<Series>& series, std::string_view layer, std::size_t bytes) {
  for (const Series& s : series)
    if (s.layer == layer && s.bytes == bytes) return &s;
  return nullptr;
}

// Every layer beside `base` at the same size.
void print_ratios(std::ostream& out, const Options& options, const std::vector<Series>& series,
                  std::string_view base) {
  const std::string divisor(base);
  out << "\nCompared with " << divisor << ": ratio of the medians [least..most of one round]\n"
      << format("%9s  %-13s", "bytes", "layer");
  if (options.latency) out << format("%24s", "round trip");
  if (options.bandwidth) out << format("%24s", "bandwidth");
  out << '\n';
  for (const Series& s : series) {
    const Series* to = find(series, base, s.bytes);
    if (s.layer == base || to == nullptr) continue;
    out << format("%9zu  %-13s", s.bytes, s.layer.c_str());
    if (options.latency)
      out << format("%24s", ratio_text(ratio(s.median_ns, to->median_ns)).c_str());
    if (options.bandwidth)
      out << format("%24s", ratio_text(ratio(s.bytes_per_second, to->bytes_per_second)).c_str());
    out << '\n';
  }
}

// JSON has no NaN; a figure that does not exist is null.
std::string json_object(const Options& options, const Row& r) {
  std::string out = "  {\"bed\": \"" + std::string(testbed_name(options.mode)) +
                    "\", \"layer\": \"" + r.layer + "\", \"bytes\": " + std::to_string(r.bytes) +
                    ", \"round_trip_ns\": ";
  out += r.round_trip ? format("{\"min\": %.1f, \"median\": %.1f, \"p99\": %.1f}",
                               r.round_trip->min, r.round_trip->median, r.round_trip->p99)
                      : "null";
  out += ", \"bandwidth_MBps\": ";
  out += r.bandwidth
             ? format("{\"median\": %.6f, \"max\": %.6f}, \"messages_per_s\": %.1f",
                      r.bandwidth->median, r.bandwidth->max, r.bandwidth->messages_per_second)
             : "null, \"messages_per_s\": null";
  return out + "}";
}

}  // namespace

void print_tables(std::ostream& out, const Options& options, const std::vector<Series>& series) {
  out << format("bed %s, %u round%s, ", std::string(testbed_name(options.mode)).c_str(),
                options.rounds, options.rounds == 1 ? "" : "s");
  if (options.messages)
    out << grouped(static_cast<double>(options.messages)) << " messages a point";
  else
    out << options.time_per_point.count() << " ms a point";
  out << (options.latency ? "; round trips in ns" : "") << "; 1 MB = 10^6 bytes\n";
  print_figures(out, options, series);
  print_losses(out, series);
  for (const std::string_view base : {"raw", "raw-fetch", "packet", "udp", "tcp", "verbs"}) {
    bool present = false, other = false;
    for (const std::string& layer : options.layers) (layer == base ? present : other) = true;
    if (present && other) print_ratios(out, options, series, base);
  }
}

void print_json(std::ostream& out, const Options& options, const std::vector<Series>& series) {
  out << "[\n";
  for (std::size_t i = 0; i < series.size(); ++i)
    out << json_object(options, row(series[i])) << (i + 1 < series.size() ? ",\n" : "\n");
  out << "]\n";
}

void write_json(const Options& options, const std::vector<Series>& series) {
  std::ofstream file(options.json, std::ios::trunc);
  print_json(file, options, series);
  file.close();
  if (!file) throw system_failure("cannot write " + options.json);
}

}  // namespace viaduct::pingpong
