// Which channels a process opens, and which one leads where. The launcher's count of processes per
// host decides what is opened, before any card can be read; the node cards decide what is used.
#include "libmpi_lite/channel/open.hpp"

#include <string>

#include "drivers/link/config.hpp"
#include "drivers/port/config_vars.hpp"
#include "libmpi_lite/channel/mbcf.hpp"
#include "libmpi_lite/channel/node.hpp"
#include "libmpi_lite/channel/shm.hpp"
#include "libmpi_lite/channel/startx.hpp"
#include "libmpi_lite/channel/vi/vi_channel.hpp"
#include "libmpi_lite/core/config_vars.hpp"
#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::mpi {
namespace {

std::unique_ptr<Nodes> nodes;
int own_rank = 0;
int shm_index = -1, net_index = -1;  // indices among the channels; -1: there is none

// Compares with rank 0 only: then all ranks agree with each other. Ranks with different channels or
// job names would never hear of each other, and wait for ever; one that does not know the write
// protocol would keep all that it is asked for.
void check_settings(Launch& launch) {
  const std::string first = launch.get(0, kSettingsKey);
  if (first == own_settings()) return;
  const std::string here = "rank " + std::to_string(own_rank);
  std::size_t at = 0;
  for (const char* name : {"VIADUCT_CHANNEL", "VIADUCT_WRITE_PROTOCOL"}) {
    const std::string theirs = first.substr(at, first.find('/', at) - at);
    const std::string mine = config_vars().text(name);
    if (theirs != mine) {
      std::string differ = here;
      differ.append(" has ").append(name).append("=").append(mine).append(" and rank 0 has ");
      differ.append(theirs).append(": set it to the same value for all ranks");
      throw base::SetupError(differ);
    }
    at += theirs.size() + 1;
  }
  throw base::SetupError(here + " has VIADUCT_JOB=" + link::config_vars().text("VIADUCT_JOB") +
                         " and rank 0 has another one: set it to the same value for all ranks");
}

// Virtual Interfaces need no port, and are there on every host that has a NIC.
bool over_vi() {
  return config_vars().text("VIADUCT_CHANNEL") == "vi";
}

std::unique_ptr<Channel> open_net(ChannelSink& sink, Launch& launch,
                                  std::shared_ptr<port::Port> port) {
  if (over_vi()) return open_vi_channel(sink, launch);
  if (config_vars().text("VIADUCT_CHANNEL") == "startx")
    return open_startx_channel(sink, launch, std::move(port));
  return open_mbcf_channel(sink, launch, std::move(port));
}

// A process whose launcher counts it alone on its host opens no segment.
bool shares_memory(int process) {
  return nodes->same_node(process) && nodes->card(process).segment >= 0;
}

}  // namespace

std::string own_settings() {
  return config_vars().text("VIADUCT_CHANNEL") + "/" +
         config_vars().text("VIADUCT_WRITE_PROTOCOL") + "/" +
         std::to_string(link::job_key(link::config_vars().text("VIADUCT_JOB")));
}

std::vector<std::unique_ptr<Channel>> open_channels(ChannelSink& sink, Launch& launch,
                                                    std::shared_ptr<port::Port> port) {
  std::vector<std::unique_ptr<Channel>> channels;
  own_rank = launch.rank();
  nodes = std::make_unique<Nodes>(launch);
  shm_index = net_index = -1;
  // Launchers count the processes of a host name, and a node may have several host names. Which
  // processes are on this node is known only when the node cards can be read. Without ports there
  // is no network, so all processes had better be on this node.
  const bool network = port || over_vi() || port::config_vars().is_set("VIADUCT_PORTS");
  const int here = network ? launch.local_size() : launch.size();
  const bool use_shm = config_vars().on("VIADUCT_SHM");
  channels.push_back(open_self_channel(sink, own_rank));
  if (use_shm && here > 1) {
    shm_index = static_cast<int>(channels.size());
    channels.push_back(open_shm_channel(sink, *nodes, launch.size()));
  } else {
    nodes->publish(Nodes::own());
  }
  // Some process is elsewhere, or shared memory is switched off.
  if (launch.size() > (use_shm ? here : 1)) {
    net_index = static_cast<int>(channels.size());
    channels.push_back(open_net(sink, launch, std::move(port)));
  }
  if (own_rank == 0) launch.put(kSettingsKey, own_settings());
  return channels;
}

void check_channels(Launch& launch) {
  if (net_index >= 0) check_settings(launch);
  // A network leads everywhere. If the launcher says that all processes are on this host, do not
  // read all cards: choose_channel() finds out if that is wrong.
  if (net_index >= 0 || launch.local_size() == launch.size()) return;
  for (int process = 0; process < launch.size(); ++process)
    if (process != own_rank && !shares_memory(process)) port::port_for_rank(0);  // throws
}

std::size_t choose_channel(int process) {
  if (process == own_rank) return 0;
  if (shm_index >= 0 && shares_memory(process)) return static_cast<std::size_t>(shm_index);
  if (net_index >= 0) return static_cast<std::size_t>(net_index);
  throw base::SetupError(
      "process " + std::to_string(process) +
      " is not on this node though the launcher says so; set VIADUCT_SHM=off and VIADUCT_PORTS");
}

Nodes& job_nodes() {
  return *nodes;
}

}  // namespace viaduct::mpi
