// Writes a gnuplot script with the data in it and pipes it to gnuplot (plot.hpp).
#include "tools/pingpong/report/plot.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "tools/pingpong/error.hpp"

namespace viaduct::pingpong {

namespace {

// The labels of the x axis: "8", "64K", "1M".
std::string size_text(std::size_t bytes) {
  if (bytes >= 1u << 20 && bytes % (1u << 20) == 0) return std::to_string(bytes >> 20) + "M";
  if (bytes >= 1u << 10 && bytes % (1u << 10) == 0) return std::to_string(bytes >> 10) + "K";
  return std::to_string(bytes);
}

// Ticks of the x axis: a dozen labels at most and none close to another, or they run into each
// other.
std::string size_labels(const std::vector<std::size_t>& sizes) {
  const auto place = [](std::size_t bytes) { return std::log2(static_cast<double>(bytes)); };
  const double apart = std::max(0.4, (place(sizes.back()) - place(sizes.front())) / 12);
  std::ostringstream out;
  double next = place(sizes.front());
  for (const std::size_t bytes : sizes) {
    if (place(bytes) < next) continue;
    out << (bytes == sizes.front() ? "" : ", ") << '"' << size_text(bytes) << "\" " << bytes;
    next = place(bytes) + apart;
  }
  return out.str();
}

// Data blocks $rtt0, $rate0, ...: size and figure, one per layer.
void write_data(std::ostream& out, const Options& options, const std::vector<Series>& series) {
  for (std::size_t l = 0; l < options.layers.size(); ++l) {
    std::ostringstream rtt, rate;
    for (const Series& s : series) {
      if (s.layer != options.layers[l]) continue;
      const Row r = row(s);
      // A point that does not exist leaves a gap; a block must not be empty.
      rtt << s.bytes << ' ' << (r.round_trip ? std::to_string(r.round_trip->median / 1e3) : "NaN")
          << '\n';
      rate << s.bytes << ' ' << (r.bandwidth ? std::to_string(r.bandwidth->median) : "NaN") << '\n';
    }
    out << "$rtt" << l << " << END\n" << rtt.str() << "END\n";
    out << "$rate" << l << " << END\n" << rate.str() << "END\n";
  }
}

// One of the two panels; `block` is the name of its data blocks without the number of the layer.
void write_panel(std::ostream& out, const Options& options, const char* title, const char* unit,
                 const char* block, const char* key) {
  out << "set title \"" << title << "\"\nset ylabel \"" << unit << "\"\nset key " << key
      << "\nplot ";
  for (std::size_t l = 0; l < options.layers.size(); ++l)
    out << (l ? ", " : "") << '$' << block << l << " with linespoints linestyle " << l + 1
        << " title \"" << options.layers[l] << '"';
  out << '\n';
}

// Whether a program of that name can be run.
bool on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream places(path ? path : "/usr/bin:/bin");
  for (std::string place; std::getline(places, place, ':');)
    if (::access(place.append("/").append(program).c_str(), X_OK) == 0) return true;
  return false;
}

std::string escaped(const std::string& file) {
  std::string out;
  for (const char c : file) {
    if (c == '\'') out += '\'';  // gnuplot doubles a quote within single quotes
    out += c;
  }
  return out;
}

}  // namespace

void check_gnuplot() {
  if (!on_path("gnuplot"))
    throw Failure(
        "--plot needs gnuplot, which is not installed; install it with: "
        "apt-get install gnuplot-nox");
}

std::string plot_script(const Options& options, const std::vector<Series>& series) {
  // Colours that colour-blind readers can tell apart; marks differ as well, for print.
  static constexpr const char* kColours[] = {"#000000", "#0072b2", "#56b4e9", "#009e73",
                                             "#d55e00", "#e69f00", "#cc79a7", "#999999"};
  std::ostringstream out;
  const bool both = options.latency && options.bandwidth;
  const int width = both ? 1280 : 680;
  if (options.plot.ends_with(".svg"))
    out << "set terminal svg size " << width << ",520 font \"Helvetica,15\" background \"white\"\n";
  else
    out << "set terminal pngcairo size " << width << ",520 font \"Sans,11\"\n";
  out << "set output '" << escaped(options.plot) << "'\n";
  for (std::size_t l = 0; l < options.layers.size(); ++l)
    out << "set linestyle " << l + 1 << " linewidth 2 pointsize 0.7 pointtype " << 4 + l
        << " linecolor rgb \"" << kColours[l % std::size(kColours)] << "\"\n";
  write_data(out, options, series);
  out << "set logscale xy\nset grid\nset xlabel \"message size (bytes)\"\n"
      << "set xtics (" << size_labels(options.sizes) << ") rotate by -45\n"
      << "set xrange [" << static_cast<double>(options.sizes.front()) / 1.3 << ':'
      << static_cast<double>(options.sizes.back()) * 1.3 << "]\n"
      << "set format y \"%g\"\n"
      << "set multiplot layout 1," << (both ? 2 : 1) << " title \"viaduct-pingpong, bed "
      << testbed_name(options.mode) << "\"\n";
  if (options.latency)
    write_panel(out, options, "Round trip (median)", "microseconds", "rtt", "top left");
  if (options.bandwidth)
    write_panel(out, options, "Streaming bandwidth (median)", "10^6 bytes per second", "rate",
                "bottom right");
  out << "unset multiplot\n";
  return out.str();
}

// gnuplot reads the script from its standard input; its own error messages go to standard error.
void plot(const Options& options, const std::vector<Series>& series) {
  const std::string script = plot_script(options, series);
  FILE* gnuplot = ::popen("gnuplot", "w");
  if (gnuplot == nullptr) throw system_failure("cannot start gnuplot");
  const bool written = std::fwrite(script.data(), 1, script.size(), gnuplot) == script.size();
  if (::pclose(gnuplot) != 0 || !written)
    throw Failure("gnuplot could not write " + options.plot + ", its message is above");
}

}  // namespace viaduct::pingpong
