// The wire format of one-sided communication: control messages of kind Kind::rma
// (transfer/wire.hpp) between the processes of a window. They travel in order for each pair of
// processes. All of them act at once when they arrive, but for data that travels as a long
// transfer.
//
// The origin is the process that calls MPI_Put and its kin, the target the one whose memory they
// name. The target checks all that it is told: what no correct origin would send changes nothing.
#pragma once

#include <cstdint>

#include "libmpi_lite/transfer/wire.hpp"

namespace viaduct::mpi {

enum class RmaAction : std::uint8_t {
  // From origin to target. `offset`, `length` and the strips name the target's memory.
  put,             // the data follows; `flag`: the target answers with `flushed`
  put_long,        // the data comes as a message in the window's context, with the tag `id`
  get,             // the answer brings the data
  get_long,        // the data is to go as a message in the window's context, with the tag `id`
  accumulate,      // the same
  get_accumulate,  // the data follows; the answer brings what was there. MPI_NO_OP: no data follows
  compare_and_swap,  // what to compare with and what to store follow, an element each
  lock,              // `flag`: exclusive; the target answers with `locked` when the lock is granted
  unlock,            // releases the lock; `flag`: the target answers with `flushed`
  flush,             // the target answers with `flushed` when all that came before is done
  complete,          // the access epoch of MPI_Win_start has ended (MPI_Win_complete)
  // From target to origin.
  answer,   // the data that an operation fetches, which `id` names; in the order of the requests
  locked,   // the lock is granted
  flushed,  // all up to the message of that `id` that asked for it is done
  post,     // the exposure epoch of MPI_Win_post has begun
};

// Followed by `strips` strips (struct Strip; displacements relative to `offset`), and the data. No
// strips: the memory is one block.
struct RmaHead {
  Kind kind;  // rma
  RmaAction action;
  std::uint8_t op;    // accumulates: the constant of the operation in the ABI, which is below 256
  std::uint8_t flag;  // 0 or 1
  std::uint32_t context;  // of the window
  std::uint64_t id;
  std::int64_t offset;   // bytes from the window's base; in dynamic windows an address
  std::uint64_t length;  // bytes of data that the message is about
  std::uint32_t type;    // accumulates: the constant of the predefined type in the ABI; answer and
                         // flushed: an error class, or MPI_SUCCESS
  std::uint32_t strips;
};
static_assert(sizeof(RmaHead) == 40 && sizeof(RmaHead) <= kLargestHead);

}  // namespace viaduct::mpi
