// The table of the ports' configuration variables, and VIADUCT_PORTS, which gives each local rank
// its port. The texts are what `viaduct-info --config` prints.
#include "drivers/port/config_vars.hpp"

#include <algorithm>
#include <array>

#include "drivers/base/fault_injector.hpp"
#include "drivers/link/wire_format.hpp"
#include "drivers/port/port_config.hpp"

namespace viaduct::port {
namespace {

using namespace base;

// 0, or an MTU that a link can work with.
constexpr Accepted kMtu{.words = "0", .least = link::kMinMtu, .most = kMaxMtu};
constexpr Accepted kFaults{.parse = [](std::string_view text) { FaultSpec::parse(text); }};

constexpr std::array kTable{
    ConfigVar{"VIADUCT_PORTS", "", "",
              "ports of this host's ranks, separated by ';'; {n} becomes the local rank"},
    ConfigVar{"VIADUCT_FRAMES", "8191", "frames", "pool that a port sends from and receives into",
              whole_number(512, 1u << 24)},
    ConfigVar{"VIADUCT_MTU", "0", "bytes", "MTU to ask for; 0: what the device has", kMtu},
    ConfigVar{"VIADUCT_RX_DESCRIPTORS", "1024", "frames",
              "what a port can receive while not polled", whole_number(64, 16384)},
    ConfigVar{"VIADUCT_RX_INTERRUPT", "on", "",
              "a PCI port wakes who sleeps, where its driver can; off: such a process naps",
              kOnOff},
    ConfigVar{"VIADUCT_MEMORY", "auto", "",
              "huge: hugepages; nohuge: ordinary pages; auto: hugepages if enough are free",
              one_of("auto|huge|nohuge")},
    ConfigVar{"VIADUCT_TELEMETRY", "off", "",
              "on: DPDK's telemetry, a thread and a socket, gives out the counters of links",
              kOnOff},
    ConfigVar{"VIADUCT_EAL", "", "", "further arguments for DPDK's EAL, separated by spaces"},
    ConfigVar{"VIADUCT_FAULTS", "", "",
              "faults on what a port sends, e.g. loss=1%,dup=0.1%,reorder=1%,corrupt=0.1%,seed=7",
              kFaults},
    ConfigVar{
        "VIADUCT_PCAP", "", "",
        "file that every frame sent or received is written to; {pid} and {port} are filled in"},
};

// Every `what` in the text replaced.
std::string expand(std::string_view text, std::string_view what, std::string_view with) {
  std::string out(text);
  for (std::size_t at = 0; (at = out.find(what, at)) != std::string::npos; at += with.size())
    out.replace(at, what.size(), with);
  return out;
}

}  // namespace

const ConfigTable& config_vars() {
  static constexpr ConfigTable table(kTable);
  return table;
}

std::vector<std::string> port_list() {
  std::vector<std::string> ports;
  const std::string text = config_vars().text("VIADUCT_PORTS");
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(';', at), text.size());
    // Blanks around a name are cut off, and empty names passed over: a list may end with a
    // semicolon.
    const auto first = text.find_first_not_of(" \t\n", at);
    if (first < end)
      ports.push_back(text.substr(first, text.find_last_not_of(" \t\n", end - 1) + 1 - first));
    at = end + 1;
  }
  return ports;
}

std::string port_for_rank(unsigned rank) {
  const auto ports = port_list();
  if (ports.empty())
    throw base::SetupError(
        "this host has no ports: set VIADUCT_PORTS, for example "
        "VIADUCT_PORTS='net_af_packet0,iface=p{n}' or '0000:3b:02.0;0000:3b:02.1'");
  const bool pattern = ports.size() == 1 && ports[0].find("{n}") != std::string::npos;
  if (!pattern && rank >= ports.size())
    throw base::SetupError(
        "VIADUCT_PORTS names " + std::to_string(ports.size()) + " ports, but local rank " +
        std::to_string(rank) +
        " needs one too; add ports (or use {n}) or start fewer ranks on this host");
  return expand(ports[pattern ? 0 : rank], "{n}", std::to_string(rank));
}

}  // namespace viaduct::port
