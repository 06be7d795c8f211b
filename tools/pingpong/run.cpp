// The rounds of a run (run.hpp). The order of the loops is the method of measuring: rounds outside,
// layers in the middle, sizes inside.
#include "tools/pingpong/run.hpp"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>

#include "tools/pingpong/error.hpp"
#include "tools/pingpong/report/plot.hpp"
#include "tools/pingpong/report/table.hpp"

namespace viaduct::pingpong {

namespace {

// A line on a terminal that is written again and again, and removed at the end. Nothing if standard
// error is not a terminal.
class Progress {
 public:
  explicit Progress(std::size_t points) : points_(points), terminal_(isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (terminal_) std::fputs("\r\033[K", stderr);
  }
  void next(unsigned round, unsigned rounds, const std::string& layer, std::size_t bytes) {
    if (!terminal_) return;
    std::fprintf(stderr, "\r\033[Kround %u of %u: %s, %zu bytes (%zu %%)", round + 1, rounds,
                 layer.c_str(), bytes, done_++ * 100 / points_);
    std::fflush(stderr);
  }

 private:
  std::size_t points_, done_ = 0;
  bool terminal_;
};

// One layer at one size in one round: a turn for the round trip and one for the bandwidth.
void measure_point(Session& session, const Options& options, const LayerKind& kind,
                   Series& series) try {
  Point point;
  point.bytes = series.bytes;
  point.messages = options.messages;
  point.time = options.time_per_point;
  if (options.latency) {
    point.measure = Measure::latency;
    series.add(session.latency(kind, point));
  }
  if (options.bandwidth) {
    point.measure = Measure::bandwidth;
    series.add(session.bandwidth(kind, point));
  }
  // The other process says itself why it ended; a sentence about this side would hide that.
} catch (const PeerGone&) {
  throw;
} catch (const Failure& failure) {
  throw Failure("layer " + series.layer + " at " + std::to_string(series.bytes) +
                " bytes: " + failure.what());
}

// Throws Failure if the file cannot be written: the file itself if it exists, otherwise its
// directory. Empty name: nothing is to be written.
void check_writable(const std::string& file) {
  namespace fs = std::filesystem;
  if (file.empty()) return;
  const bool exists = ::access(file.c_str(), F_OK) == 0;
  std::string place = file;
  if (!exists) {
    place = fs::path(file).parent_path().string();
    if (place.empty()) place.push_back('.');
  }
  if (::access(place.c_str(), W_OK) != 0)
    throw system_failure("cannot write " + file,
                         "choose a file in a directory that exists and that you may write to");
  if (fs::is_directory(file))
    throw Failure("cannot write " + file + "; it is a directory, add a file name");
}

}  // namespace

std::vector<Series> measure(Session& session, const Options& options) {
  std::vector<Series> out;
  // out[l * sizes + s] is layer l at size s.
  for (const std::string& layer : options.layers)
    for (const std::size_t bytes : options.sizes) {
      out.emplace_back();
      out.back().layer = layer;
      out.back().bytes = bytes;
    }
  const std::size_t layers = options.layers.size(), sizes = options.sizes.size();
  Progress progress(options.rounds * layers * sizes);
  for (unsigned round = 0; round < options.rounds; ++round)
    for (std::size_t turn = 0; turn < layers; ++turn) {
      // Each round begins one layer further.
      const std::size_t l = (turn + round) % layers;
      for (std::size_t s = 0; s < sizes; ++s) {
        Series& series = out[l * sizes + s];
        progress.next(round, options.rounds, series.layer, series.bytes);
        measure_point(session, options, *find_layer(series.layer), series);
      }
    }
  session.end();
  return out;
}

void report(const Options& options, const std::vector<Series>& series) {
  print_tables(std::cout, options, series);
  std::cout.flush();
  if (!options.json.empty()) write_json(options, series);
  if (!options.plot.empty()) plot(options, series);
}

// Before the first measurement, which may take minutes: a file that cannot be written would cost
// all of it.
void check_outputs(const Options& options) {
  check_writable(options.json);
  check_writable(options.plot);
  if (!options.plot.empty()) check_gnuplot();
}

}  // namespace viaduct::pingpong
