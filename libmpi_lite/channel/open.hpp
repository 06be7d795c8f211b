// Which channels a process has and which one leads to another process: memory for itself, shared
// memory within a node, the chosen network between nodes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libmpi_lite/channel/channel.hpp"

namespace viaduct::port {
class Port;
}

namespace viaduct::mpi {

class Launch;

// Publishes what others have to know (Launch::put); a fence follows before anything is sent. The
// network's port is opened only if the job needs it; `port`: one that is open already, or nullptr.
// Throws SetupError.
std::vector<std::unique_ptr<Channel>> open_channels(ChannelSink& sink, Launch& launch,
                                                    std::shared_ptr<port::Port> port);

// What must be the same in all processes and is not asked of the peers; rank 0's is published.
inline constexpr const char* kSettingsKey = "viaduct-settings";
std::string own_settings();

// After the fence. Throws SetupError if there is a process that no channel leads to, or if rank 0
// has other settings.
void check_channels(Launch& launch);

// The index of the channel that leads to that process; asks the process manager about it if need
// be. Throws SetupError.
std::size_t choose_channel(int process);

// Who is where.
class Nodes;
Nodes& job_nodes();

std::unique_ptr<Channel> open_self_channel(ChannelSink& sink, int rank);

}  // namespace viaduct::mpi
