// Tables from completion statuses to VIPL's error bits and to CloseReason. work_queue.cpp asks them
// for each descriptor that fails.
#include "libvipl/core/queues/failure.hpp"

namespace viaduct::vipl {
namespace {

using vi::Outcome;

bool is_rdma(std::uint32_t operation) {
  return operation == VIP_STATUS_OP_RDMA_WRITE || operation == VIP_STATUS_OP_RDMA_READ;
}

}  // namespace

std::uint32_t error_of_receive(Outcome outcome) {
  switch (outcome) {
    // The message did not fit. mlx5 says local_length. Soft-RoCE says local_operation, or
    // remote_invalid_request for a message that is longer than its own packets announced.
    case Outcome::local_length:
    case Outcome::local_operation:
    case Outcome::remote_invalid_request: return VIP_STATUS_LENGTH_ERROR;
    // Its memory was deregistered after it was posted.
    case Outcome::local_protection: return VIP_STATUS_PROTECTION_ERROR;
    // The receive met an RDMA write with immediate data that had no right to its target. Nothing is
    // wrong with the receive; the sender's descriptor has the error. mlx5 flushes the receive.
    case Outcome::local_access:
    case Outcome::remote_access:
    case Outcome::flushed: return VIP_STATUS_DESC_FLUSHED_ERROR;
    default: return VIP_STATUS_TRANSPORT_ERROR;
  }
}

std::uint32_t error_of_send(Outcome outcome, std::uint32_t operation,
                            VIP_RELIABILITY_LEVEL reliability) {
  switch (outcome) {
    case Outcome::flushed: return VIP_STATUS_DESC_FLUSHED_ERROR;
    case Outcome::local_length: return VIP_STATUS_LENGTH_ERROR;
    // The descriptor's memory was deregistered after posting. As a rule the device reports
    // protection; Soft-RoCE reports operation in some places.
    case Outcome::local_protection:
    case Outcome::local_access:
    case Outcome::local_operation: return VIP_STATUS_PROTECTION_ERROR;
    // The other side refused. A send: the receive was too small (mlx5: remote_invalid_request,
    // Soft-RoCE: remote_operation), or its memory is gone (remote_operation). RDMA: the VI there
    // does not allow it (remote_invalid_request), or the region does not (remote_access).
    case Outcome::remote_invalid_request:
    case Outcome::remote_access:
      return is_rdma(operation) ? VIP_STATUS_RDMA_PROT_ERROR : VIP_STATUS_REMOTE_DESC_ERROR;
    case Outcome::remote_operation: return VIP_STATUS_REMOTE_DESC_ERROR;
    // No receive was posted. Only Reliable Reception promises to say that this was the reason.
    case Outcome::receiver_not_ready:
      return reliability == VIP_SERVICE_RELIABLE_RECEPTION ? VIP_STATUS_REMOTE_DESC_ERROR
                                                           : VIP_STATUS_TRANSPORT_ERROR;
    default: return VIP_STATUS_TRANSPORT_ERROR;  // unanswered, and what no device should say
  }
}

CloseReason close_reason_of_send(Outcome outcome, std::uint32_t operation) {
  switch (outcome) {
    case Outcome::receiver_not_ready: return CloseReason::receive_queue_empty;
    case Outcome::unanswered: return CloseReason::host_silent;
    case Outcome::remote_access:
    case Outcome::remote_invalid_request:
      if (operation == VIP_STATUS_OP_RDMA_WRITE) return CloseReason::rdma_write_protection;
      if (operation == VIP_STATUS_OP_RDMA_READ) return CloseReason::rdma_read_protection;
      return CloseReason::message_too_long;
    case Outcome::remote_operation:
      return is_rdma(operation) ? CloseReason::transport : CloseReason::message_too_long;
    default: return CloseReason::transport;
  }
}

}  // namespace viaduct::vipl
