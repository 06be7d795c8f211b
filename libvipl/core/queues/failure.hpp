// What the program is told when the device could not execute a descriptor: the translation of a
// failed completion into status bits, and into the reason for the other side.
//
// Descriptors are checked before the device sees them, so a device fails work for few reasons only.
// Devices differ in which completion status they give for the same reason. Handled are those of the
// InfiniBand specification (10.10.3, 11.6.2), to which mlx5 keeps, and those of Soft-RoCE.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>

#include <vipl.h>

#include "drivers/vi_over_verbs/verbs.hpp"
#include "libvipl/connection/connection_user.hpp"

namespace viaduct::vipl {

// The error bits for the descriptor's Status (VIP_STATUS_..._ERROR). `operation` is that of the
// descriptor, VIP_STATUS_OP_...
std::uint32_t error_of_receive(vi::Outcome outcome);
std::uint32_t error_of_send(vi::Outcome outcome, std::uint32_t operation,
                            VIP_RELIABILITY_LEVEL reliability);

// What the other side of the connection is told about a send that failed.
CloseReason close_reason_of_send(vi::Outcome outcome, std::uint32_t operation);

}  // namespace viaduct::vipl
