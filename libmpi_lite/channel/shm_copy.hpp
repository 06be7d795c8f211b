// Long transfers within a node: both ends copy. The receiver fetches pieces from the sender's
// memory and the sender stores pieces into the receiver's, each claiming the next piece from a
// counter that both see, until all are done: twice the bandwidth of one copying CPU, and no waiting
// for a process that is elsewhere. (process_vm_readv and process_vm_writev: one copy, no shared
// buffer.)
//
// Where the system does not allow one of the two, the other end does it all; where it allows
// neither, the sender sends the data in control messages (VIADUCT_CMA=off to try).
#pragma once

#include <deque>
#include <vector>

#include "libmpi_lite/channel/channel.hpp"
#include "libmpi_lite/channel/shm_segment.hpp"

namespace viaduct::mpi {

// What the sender tells the receiver in its remote key.
struct CopyOffer {
  std::uint64_t address;
};
// What the receiver tells the sender.
struct CopyKey {
  std::uint32_t slot;     // in the receiver's segment
  std::uint32_t fetches;  // the receiver takes part
  std::uint64_t address, length;
};

// A process as the other end of copies.
struct CopyPeer {
  int pid = 0;
  bool reachable = false;  // its memory may be read and written
};

// One end's share in a transfer.
struct Copy {
  CopySlot* slot;
  std::byte* local;
  std::uint64_t remote;  // address
  std::uint64_t length;
  Cookie cookie;
  int peer;  // rank
  int pid;
  bool participates;  // takes part in copying; else looks only
  bool sending;
};

enum class CopyState : std::uint8_t { working, done, failed };
// Claims and moves one piece, if there is one left. `alone`: this process takes part in no other
// transfer. The two ends need not divide a transfer alike.
CopyState copy_next_piece(Copy& copy, bool alone, bool& moved);

// Slots of this process's own segment. (Not a base::SlotMap: the objects are in shared memory, and
// a slot is free only when the other process has left it, too.)
class CopySlots {
 public:
  explicit CopySlots(Segment& segment) : segment_(segment) {
    for (std::uint32_t s = kCopySlots; s-- > 0;) free_.push_back(s);
  }
  // nullptr: all are in use.
  CopySlot* take(std::uint32_t& name);
  // The receiver is through; the slot is used again when the sender is.
  void release(std::uint32_t name) { releasing_.push_back(name); }

 private:
  Segment& segment_;
  std::vector<std::uint32_t> free_;
  std::deque<std::uint32_t> releasing_;
};

// Whether this process may read and write the memory of that one: tries with a word that is known.
bool reaches_memory(int pid, std::uint64_t magic_address);

}  // namespace viaduct::mpi
