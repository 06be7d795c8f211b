// The parts of the network channels that do not depend on the driver: the endpoint address as text,
// the configuration, and the opening of the port. net_impl.hpp has the channel itself.
#include "libmpi_lite/channel/net.hpp"

#include <algorithm>
#include <charconv>

#include "drivers/link/config.hpp"
#include "drivers/link/wire_format.hpp"
#include "drivers/port/config_vars.hpp"
#include "libmpi_lite/core/config_vars.hpp"

namespace viaduct::mpi {

namespace {

// Silence after which a peer is declared dead, unless VIADUCT_DEAD_AFTER_MS says otherwise. A rank
// that computes for hours without calling MPI answers nothing meanwhile and is alive. The launcher
// notices the death of a process and ends the whole job, so silence is only the last resort.
constexpr link::Duration kDefaultDeadAfter = std::chrono::hours{1};

}  // namespace

std::string EndpointAddress::text() const {
  char hex[17], decimal[20];
  const auto end = std::to_chars(hex, hex + sizeof hex, key, 16).ptr;
  const auto last = std::to_chars(decimal, decimal + sizeof decimal, control).ptr;
  return address.text() + "/" + std::string(hex, end) + "/" + std::string(decimal, last);
}

std::optional<EndpointAddress> EndpointAddress::parse(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return {};
  const auto address = link::Address::parse(text.substr(0, slash));
  if (!address) return {};
  EndpointAddress endpoint{*address};
  const char* const last = text.data() + text.size();
  const auto key = std::from_chars(text.data() + slash + 1, last, endpoint.key, 16);
  if (key.ec != std::errc() || key.ptr == last || *key.ptr != '/') return {};
  const auto control = std::from_chars(key.ptr + 1, last, endpoint.control);
  if (control.ec != std::errc() || control.ptr != last) return {};
  return endpoint;
}

NetConfig net_config(const Launch& launch, std::string_view eager_var) {
  NetConfig config;
  config.link = link::link_config_from_environment();
  // The job's random key keeps frames of other jobs on the same network, and of unknown peers, out
  // of the link: the link drops frames with another job key.
  config.link.job_key ^= launch.job_key();
  if (!link::config_vars().is_set("VIADUCT_DEAD_AFTER_MS"))
    config.link.dead_after = kDefaultDeadAfter;
  // Half-open connections need places in the link as well. 0xffff: a link names peers by 16 bits.
  config.link.max_peers =
      std::min(static_cast<std::size_t>(launch.size()) + link::kMaxHalfOpen, std::size_t{0xffff});
  config.eager = config_vars().number(eager_var);
  return config;
}

std::shared_ptr<port::Port> open_net_port(const Launch& launch, NetConfig& config) {
  config.port = port::port_for_rank(static_cast<unsigned>(launch.local_rank()));
  port::PortConfig port;
  port.devargs = config.port;
  try {
    return port::Port::open(port);
  } catch (const base::SetupError& error) {
    throw base::SetupError("VIADUCT_PORTS gives local rank " + std::to_string(launch.local_rank()) +
                           " a port that does not open: " + error.what());
  }
}

std::size_t net_transfers(int job_size) {
  // Two for each process of the job, within limits: the drivers make tables for so many transfers
  // at construction, and these take memory.
  return std::clamp<std::size_t>(2 * static_cast<std::size_t>(job_size), 1024, 16384);
}

}  // namespace viaduct::mpi
