// The parts of viaduct-pingpong that need neither port nor testbed.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "tools/pingpong/error.hpp"
#include "tools/pingpong/layers/datagram.hpp"
#include "tools/pingpong/options.hpp"
#include "tools/pingpong/report/plot.hpp"
#include "tools/pingpong/report/stats.hpp"
#include "tools/pingpong/report/table.hpp"

namespace viaduct::pingpong {
namespace {

constexpr LayerInfo kLayers[] = {
    {"raw", "frames"},
    {"startx-pio", "packets"},
    {.name = "mpi", .summary = "messages", .one_side_per_process = true},
    {"udp", "datagrams", Over::kernel},
    {"tcp", "bytes", Over::kernel},
    {"verbs", "sends", Over::rdma},
    {"vipl-send", "sends", Over::rdma}};

Options parse(std::initializer_list<const char*> arguments) {
  return parse_options({arguments.begin(), arguments.size()}, kLayers);
}

std::string usage_error(std::initializer_list<const char*> arguments) {
  try {
    parse(arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "(accepted)";
}

bool names(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

using Sizes = std::vector<std::size_t>;

TEST(PingpongSizes, RangesDouble) {
  EXPECT_EQ(parse_sizes("8:64"), (Sizes{8, 16, 32, 64}));
  EXPECT_EQ(parse_sizes("4:10"), (Sizes{4, 8}));
  EXPECT_EQ(parse_sizes("10:45"), (Sizes{10, 20, 40}));
  EXPECT_EQ(parse_sizes("8:1M").size(), 18u);
  EXPECT_EQ(parse_sizes("8:1M").back(), 1u << 20);
  EXPECT_EQ(parse_sizes("32M:64M"), (Sizes{32u << 20, 64u << 20}));
}

TEST(PingpongSizes, ListsAreSortedAndWithoutRepetition) {
  EXPECT_EQ(parse_sizes("1K,8,64,8"), (Sizes{8, 64, 1024}));
  EXPECT_EQ(parse_sizes("8:32,100,16"), (Sizes{8, 16, 32, 100}));
}

TEST(PingpongSizes, NonsenseIsRefused) {
  for (const char* bad : {"", "3", "65M", "0", "-8", "8,", ",8", "8:", "8K:8", "8kB", "1G", "8 16",
                          "99999999999999999999", "18014398509481984K"})
    EXPECT_THROW(parse_sizes(bad), UsageError) << bad;
}

TEST(PingpongOptions, DefaultsFollowTheBed) {
  const Options netns = parse({"--bed", "netns"});
  EXPECT_EQ(netns.mode, Options::Mode::netns);
  EXPECT_EQ(netns.layers, (std::vector<std::string>{"raw", "startx-pio", "udp", "tcp"}));
  EXPECT_EQ(netns.sizes.size(), 18u);
  EXPECT_EQ(netns.rounds, 5u);
  EXPECT_TRUE(netns.latency && netns.bandwidth && netns.checksum);
  EXPECT_EQ(parse({"--bed", "memif"}).layers, (std::vector<std::string>{"raw", "startx-pio"}));
  EXPECT_EQ(parse({"--connect", "10.0.0.1"}).layers, (std::vector<std::string>{"udp", "tcp"}));
  EXPECT_EQ(parse({"--bed", "verbs"}).layers, (std::vector<std::string>{"verbs", "vipl-send"}));
}

TEST(PingpongOptions, ValuesMayFollowAnEqualsSign) {
  const Options o = parse({"--bed=ring", "--layer=startx-pio,raw", "--layer", "raw", "--rounds=7",
                           "--measure=latency", "--checksum=off", "--messages=1000",
                           "--time-per-point=9", "--mtu=9000", "--json=a", "--plot=b.svg"});
  EXPECT_EQ(o.layers, (std::vector<std::string>{"startx-pio", "raw"}));
  EXPECT_EQ(o.rounds, 7u);
  EXPECT_TRUE(o.latency);
  EXPECT_FALSE(o.bandwidth);
  EXPECT_FALSE(o.checksum);
  EXPECT_EQ(o.messages, 1000u);
  EXPECT_EQ(o.time_per_point, std::chrono::milliseconds{9});
  EXPECT_EQ(o.mtu, 9000u);
  EXPECT_EQ(o.json, "a");
  EXPECT_EQ(o.plot, "b.svg");
  EXPECT_TRUE(o.offload);
  EXPECT_FALSE(parse({"--bed", "netns", "--offload=off"}).offload);
}

TEST(PingpongOptions, HelpWinsOverWhatFollows) {
  EXPECT_EQ(parse({"--help", "--nonsense"}).mode, Options::Mode::help);
  const std::string help = help_text(kLayers);
  for (const char* option :
       {"--bed", "--listen", "--connect", "--port", "--ip", "--pmd", "--mtu", "--offload",
        "--layer", "--sizes", "--rounds", "--time-per-point", "--messages", "--measure",
        "--checksum", "--json", "--plot", "startx-pio"})
    EXPECT_TRUE(names(help, option)) << option;
}

TEST(PingpongOptions, MistakesAreNamed) {
  EXPECT_TRUE(names(usage_error({"--bed", "ring", "--layer", "raw,mpi"}), "one side only"));
  EXPECT_TRUE(names(usage_error({}), "--bed"));
  EXPECT_TRUE(names(usage_error({"--bed"}), "needs a value"));
  EXPECT_TRUE(names(usage_error({"--bed="}), "needs a value"));
  EXPECT_TRUE(names(usage_error({"--bed", "moon"}), "'moon'"));
  EXPECT_TRUE(names(usage_error({"--bed", "ring", "--listen"}), "only one"));
  EXPECT_TRUE(names(usage_error({"--bed", "ring", "--layer", "raw,warp"}), "'warp'"));
  EXPECT_TRUE(names(usage_error({"--bed", "ring", "--layer", "raw,warp"}), "startx-pio"));
  EXPECT_TRUE(names(usage_error({"--bed", "ring", "frog"}), "'frog'"));
  EXPECT_TRUE(names(usage_error({"--bed", "ring", "--rounds", "0"}), "--rounds"));
  EXPECT_TRUE(names(usage_error({"--bed", "ring", "--rounds", "3x"}), "'3x'"));
  EXPECT_TRUE(names(usage_error({"--bed", "ring", "--measure", "speed"}), "'speed'"));
  EXPECT_TRUE(names(usage_error({"--bed", "ring", "--checksum", "maybe"}), "--checksum"));
  EXPECT_TRUE(names(usage_error({"--bed", "ring", "--plot", "x.pdf"}), ".svg"));
  EXPECT_TRUE(names(usage_error({"--bed", "memif", "--pmd", "af_xdp"}), "netns"));
  EXPECT_TRUE(names(usage_error({"--bed", "memif", "--offload", "off"}), "netns"));
  EXPECT_TRUE(names(usage_error({"--bed", "netns", "--offload", "no"}), "'no'"));
  EXPECT_TRUE(names(usage_error({"--bed", "memif", "--port", "net_x"}), "--port"));
}

TEST(PingpongOptions, LayersNeedTheirWire) {
  for (const char* testbed : {"memif", "ring"})
    for (const char* layer : {"udp", "tcp"})
      EXPECT_TRUE(names(usage_error({"--bed", testbed, "--layer", layer}), "--bed netns"));
  for (const char* testbed : {"memif", "ring", "netns"})
    EXPECT_TRUE(names(usage_error({"--bed", testbed, "--layer", "verbs"}), "--bed verbs"));
  for (const char* layer : {"raw", "udp"})
    EXPECT_TRUE(names(usage_error({"--bed", "verbs", "--layer", layer}), "needs"));
  EXPECT_EQ(parse({"--connect", "10.0.0.1", "--layer", "verbs"}).layers,
            (std::vector<std::string>{"verbs"}));
  EXPECT_TRUE(names(usage_error({"--connect", "10.0.0.1", "--layer", "raw"}), "--port"));
  EXPECT_TRUE(names(
      usage_error({"--connect", "02:00:00:00:00:01", "--port", "x", "--layer", "udp"}), "--ip"));
}

TEST(PingpongOptions, HostsNeedAnAddress) {
  EXPECT_TRUE(names(usage_error({"--listen"}), "--port"));
  EXPECT_TRUE(names(usage_error({"--connect", "host", "--port", "x"}), "'host'"));
  EXPECT_TRUE(names(usage_error({"--connect", "02:00:00:00:00:01"}), "--port"));
  EXPECT_TRUE(names(usage_error({"--connect", "10.0.0.1", "--ip", "10.0.0.2"}), "--ip"));
  EXPECT_TRUE(names(usage_error({"--listen", "--port", "x", "--sizes", "8"}), "--sizes"));
  EXPECT_EQ(parse({"--listen", "--port", "x", "--mtu", "9000"}).mode, Options::Mode::listen);
}

TEST(PingpongStats, RoundTripsAreSortedIntoQuantiles) {
  std::vector<std::uint32_t> samples;
  for (std::uint32_t i = 1000; i >= 1; --i) samples.push_back(i);
  const RoundTrips r = summarize(samples, 3, 0.5);
  EXPECT_EQ(r.count, 1000u);
  EXPECT_EQ(r.lost, 3u);
  EXPECT_DOUBLE_EQ(r.min_ns, 0.5);
  EXPECT_DOUBLE_EQ(r.median_ns, 250.5);
  EXPECT_DOUBLE_EQ(r.p99_ns, 495.5);
  std::vector<std::uint32_t> none;
  EXPECT_EQ(summarize(none, 5, 1).count, 0u);
}

TEST(PingpongStats, MedianOfOddEvenAndNothing) {
  EXPECT_DOUBLE_EQ(median({5, 1, 3}), 3);
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(median({}), 0);
}

Series series(const char* layer, std::size_t bytes, std::initializer_list<double> median_ns,
              std::initializer_list<double> rates) {
  Series out;
  out.layer = layer;
  out.bytes = bytes;
  for (const double ns : median_ns) out.add(RoundTrips{10, 0, ns - 1, ns, ns + 9});
  for (const double rate : rates) out.add(Received{1, static_cast<std::uint64_t>(rate), 1});
  return out;
}

TEST(PingpongStats, RowsAreMediansOfRounds) {
  const Row r = row(series("raw", 8, {100, 300, 200}, {8e6, 16e6, 12e6}));
  ASSERT_TRUE(r.round_trip && r.bandwidth);
  EXPECT_DOUBLE_EQ(r.round_trip->min, 99);
  EXPECT_DOUBLE_EQ(r.round_trip->median, 200);
  EXPECT_DOUBLE_EQ(r.round_trip->p99, 209);
  EXPECT_DOUBLE_EQ(r.bandwidth->median, 12);
  EXPECT_DOUBLE_EQ(r.bandwidth->max, 16);
  EXPECT_DOUBLE_EQ(r.bandwidth->messages_per_second, 1.5e6);
}

TEST(PingpongStats, RoundsInWhichNothingCameDoNotCount) {
  Series s = series("udp", 8, {100}, {1e6});
  s.add(RoundTrips{0, 5});
  s.add(Received{});
  EXPECT_DOUBLE_EQ(row(s).round_trip->median, 100);
  EXPECT_DOUBLE_EQ(row(s).bandwidth->median, 1);
  EXPECT_EQ(s.lost_round_trips, 5u);
  Series nothing = series("udp", 8, {}, {});
  nothing.add(RoundTrips{0, 5});
  nothing.add(Received{});
  EXPECT_FALSE(row(nothing).round_trip);
  EXPECT_FALSE(row(nothing).bandwidth);
}

TEST(PingpongStats, ReceivingTakesAtLeastAsLongAsSending) {
  EXPECT_DOUBLE_EQ((Received{10, 1000, 0.001}.at_least_as_long_as(0.5).bytes_per_second()), 2000);
  EXPECT_DOUBLE_EQ((Received{10, 1000, 2}.at_least_as_long_as(0.5).bytes_per_second()), 500);
  EXPECT_DOUBLE_EQ((Received{}.at_least_as_long_as(0.5).bytes_per_second()), 0);
}

TEST(PingpongStats, RatiosPairTheRounds) {
  const auto r = ratio({200, 330, 400}, {100, 300, 100});
  ASSERT_TRUE(r);
  EXPECT_DOUBLE_EQ(r->median, 3.3);
  EXPECT_DOUBLE_EQ(r->min, 1.1);
  EXPECT_DOUBLE_EQ(r->max, 4);
  EXPECT_FALSE(ratio({std::nan("")}, {1}));
  EXPECT_FALSE(ratio({}, {}));
}

Options two_layers() {
  Options o = parse({"--bed", "ring", "--layer", "raw,startx-pio", "--sizes", "8"});
  o.plot = "it's.svg";
  return o;
}

TEST(PingpongOutput, TableEndsWithRatios) {
  std::ostringstream out;
  print_tables(out, two_layers(),
               {series("raw", 8, {1000}, {80e6}), series("startx-pio", 8, {1100}, {40e6})});
  EXPECT_TRUE(names(out.str(), "10,000,000")) << out.str();  // messages per second of raw
  EXPECT_TRUE(names(out.str(), "Compared with raw")) << out.str();
  EXPECT_TRUE(names(out.str(), "1.10 [1.10..1.10]")) << out.str();
  EXPECT_TRUE(names(out.str(), "0.50 [0.50..0.50]")) << out.str();
}

TEST(PingpongOutput, JsonHasTheAgreedFieldsAndNullForNothing) {
  Series nothing = series("startx-pio", 8, {}, {});
  nothing.add(Received{});
  std::ostringstream out;
  print_json(out, two_layers(), {series("raw", 8, {1000}, {80e6}), nothing});
  EXPECT_EQ(
      out.str(),
      "[\n"
      "  {\"bed\": \"ring\", \"layer\": \"raw\", \"bytes\": 8, \"round_trip_ns\": {\"min\": "
      "999.0, \"median\": 1000.0, \"p99\": 1009.0}, \"bandwidth_MBps\": {\"median\": 80.000000, "
      "\"max\": 80.000000}, \"messages_per_s\": 10000000.0},\n"
      "  {\"bed\": \"ring\", \"layer\": \"startx-pio\", \"bytes\": 8, \"round_trip_ns\": "
      "null, \"bandwidth_MBps\": null, \"messages_per_s\": null}\n"
      "]\n");
}

TEST(PingpongOutput, PlotScriptHasAllLayersAndAQuotedFile) {
  const std::string script = plot_script(
      two_layers(), {series("raw", 8, {1000}, {80e6}), series("startx-pio", 8, {1100}, {})});
  EXPECT_TRUE(names(script, "title \"raw\""));
  EXPECT_TRUE(names(script, "title \"startx-pio\""));
  EXPECT_TRUE(names(script, "set output 'it''s.svg'"));
  EXPECT_TRUE(names(script, "8 NaN"));  // the bandwidth that is not there
}

TEST(PingpongOutput, PlotLabelsDoNotRunIntoEachOther) {
  Options o = two_layers();
  o.sizes = {4, 1024, 1408, 1424, 1448, 1452};
  const std::string script = plot_script(o, {series("raw", 4, {1000}, {80e6})});
  EXPECT_TRUE(names(script, "set xtics (\"4\" 4, \"1K\" 1024)")) << script;
  o.sizes = {1024, 1408, 1424, 1448, 1452};
  EXPECT_TRUE(names(plot_script(o, {}), "set xtics (\"1K\" 1024, \"1408\" 1408)"));
}

TEST(PingpongDatagram, SplitsAreEvenAndComplete) {
  for (const std::size_t bytes : {8u, 1471u, 1472u, 1473u, 1474u, 65536u, 67108864u}) {
    const Split split(bytes, 1472);
    std::size_t sum = 0;
    std::uint16_t least = UINT16_MAX, most = 0;
    for (std::uint32_t i = 0; i < split.packets; ++i) {
      sum += split.size(i);
      least = std::min(least, split.size(i));
      most = std::max(most, split.size(i));
    }
    EXPECT_EQ(sum, bytes);
    EXPECT_EQ(split.packets, (bytes + 1471) / 1472);
    EXPECT_LE(most, 1472);
    EXPECT_GE(least, kMinBytes);
    EXPECT_LE(most - least, 1);
  }
}

TEST(PingpongDatagram, AMessageWithALostPacketIsNotComplete) {
  Assembly assembly;
  assembly.begin(3);
  EXPECT_FALSE(assembly.take(1));
  EXPECT_FALSE(assembly.take(1));  // the third is lost
  EXPECT_FALSE(assembly.take(2));
  EXPECT_FALSE(assembly.take(2));
  EXPECT_TRUE(assembly.take(2));
  EXPECT_FALSE(assembly.take(3));
}

}  // namespace
}  // namespace viaduct::pingpong
