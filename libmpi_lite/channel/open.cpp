#include "libmpi_lite/channel/open.hpp"

#include "drivers/link/knobs.hpp"
#include "libmpi_lite/channel/mbcf.hpp"
#include "libmpi_lite/channel/node.hpp"
#include "libmpi_lite/channel/shm.hpp"
#include "libmpi_lite/channel/startx.hpp"
#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::mpi {
namespace {

std::unique_ptr<Nodes> nodes;
int own_rank = 0;
int shm = -1, net = -1;  // where they are among the channels; -1: there is none

std::unique_ptr<Channel> open_net(ChannelSink& sink, Launch& launch,
                                  std::shared_ptr<link::Port> port) {
  const std::string name = link::knob_text("VIADUCT_CHANNEL");
  if (name == "mbcf") return open_mbcf_channel(sink, launch, std::move(port));
  if (name == "startx") return open_startx_channel(sink, launch, std::move(port));
  throw link::SetupError("VIADUCT_CHANNEL is '" + name + "'; it can be mbcf or startx");
}

}  // namespace

std::vector<std::unique_ptr<Channel>> open_channels(ChannelSink& sink, Launch& launch,
                                                    std::shared_ptr<link::Port> port) {
  std::vector<std::unique_ptr<Channel>> channels;
  own_rank = launch.rank();
  nodes = std::make_unique<Nodes>(launch);
  shm = net = -1;
  const bool use_shm = link::knob_switch("VIADUCT_SHM");
  channels.push_back(open_self_channel(sink, own_rank));
  if (use_shm && launch.local_size() > 1) {
    shm = static_cast<int>(channels.size());
    channels.push_back(open_shm_channel(sink, *nodes, launch.size(), launch.local_size()));
  } else {
    nodes->publish(Nodes::own());
  }
  if (launch.size() > (use_shm ? launch.local_size() : 1)) {
    net = static_cast<int>(channels.size());
    channels.push_back(open_net(sink, launch, std::move(port)));
  }
  return channels;
}

std::size_t choose_channel(int process) {
  if (process == own_rank) return 0;
  if (shm >= 0 && nodes->same_node(process)) return static_cast<std::size_t>(shm);
  if (net >= 0) return static_cast<std::size_t>(net);
  throw link::SetupError(
      "process " + std::to_string(process) +
      " is not on this node though the launcher says so; set VIADUCT_SHM=off and VIADUCT_PORTS");
}

Nodes& job_nodes() {
  return *nodes;
}

}  // namespace viaduct::mpi
