// The channel between processes of one node.
#pragma once

#include <memory>

#include "libmpi_lite/channel/channel.hpp"
#include "libmpi_lite/channel/node.hpp"

namespace viaduct::mpi {

// For a job of `size` processes. Publishes this process's card. Throws SetupError.
std::unique_ptr<Channel> open_shm_channel(ChannelSink& sink, Nodes& nodes, int size);

}  // namespace viaduct::mpi
