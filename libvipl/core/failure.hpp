// What programs are told when the device could not do what a descriptor asked for.
//
// Descriptors are checked before the device sees them, so that a device fails work for few reasons
// only; but devices differ in the words they have for them. Known are those of the InfiniBand
// specification (10.10.3, 11.6.2), to which mlx5 keeps, and of Soft-RoCE.
#pragma once

#include <cstdint>

#include <vipl.h>

#include "drivers/vi_over_verbs/verbs.hpp"
#include "libvipl/connection/connection_user.hpp"

namespace viaduct::vipl {

// The error bits of its status. `operation`: of the descriptor, VIP_STATUS_OP_...
std::uint32_t error_of_receive(vi::Outcome outcome);
std::uint32_t error_of_send(vi::Outcome outcome, std::uint32_t operation,
                            VIP_RELIABILITY_LEVEL reliability);

// What the other side of the connection is told about a send that failed.
Loss loss_of_send(vi::Outcome outcome, std::uint32_t operation);

}  // namespace viaduct::vipl
