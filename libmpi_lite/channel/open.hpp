// Opens the channels of a process and chooses the one that leads to another process: self for the
// process itself, shared memory within a node, the configured network (mbcf, startx or vi) between
// nodes. transfer/ owns the channels and asks for the choice once per peer. One job per process:
// the state is global. Thread rule: that of Channel.
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

// Opens the channels that the job needs, in the order self, shared memory, network, and publishes
// what the others have to know (Launch::put). A fence of the job has to follow before anything is
// sent. The network's port is opened only if the job needs it; `port`: one that is open already, or
// nullptr. `sink` and `launch` must outlive the channels. Throws SetupError.
std::vector<std::unique_ptr<Channel>> open_channels(ChannelSink& sink, Launch& launch,
                                                    std::shared_ptr<port::Port> port);

// Settings that must be the same in all processes, and that no peer checks when a connection is
// made. Rank 0 publishes its own under this key.
inline constexpr const char* kSettingsKey = "viaduct-settings";
std::string own_settings();

// After the fence. Throws SetupError if no channel leads to some process, or if rank 0 has other
// settings.
void check_channels(Launch& launch);

// The index, among the channels that open_channels() gave, of the one that leads to that process.
// May ask the process manager for the process's node card. Throws SetupError.
std::size_t choose_channel(int process);

// The nodes of the job, from open_channels() on.
class Nodes;
Nodes& job_nodes();

// In self.cpp: the channel from a process to itself.
std::unique_ptr<Channel> open_self_channel(ChannelSink& sink, int rank);

}  // namespace viaduct::mpi
