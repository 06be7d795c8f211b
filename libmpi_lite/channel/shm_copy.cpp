#include "libmpi_lite/channel/shm_copy.hpp"

#include <sys/uio.h>

#include <algorithm>

namespace viaduct::mpi {
namespace {

constexpr std::uint64_t kMinPiece = 32 << 10, kMaxPiece = 256 << 10;
constexpr std::uint64_t kPieces = 8;

// In bytes, whole pages. A transfer that is alone is divided into about kPieces, so that both ends
// get to work. If there are several, each end finds one that the other one does not work on.
std::uint64_t piece_of(std::uint64_t length, bool alone) {
  const std::uint64_t piece = std::clamp(alone ? length / kPieces : length, kMinPiece, kMaxPiece);
  return (piece + kPage - 1) / kPage * kPage;
}

bool move(const Copy& c, std::uint64_t at, std::uint64_t bytes) {
  while (bytes > 0) {
    iovec mine{c.local + at, bytes};
    iovec theirs{reinterpret_cast<void*>(c.remote + at), bytes};
    const ssize_t moved = c.sending ? ::process_vm_writev(c.pid, &mine, 1, &theirs, 1, 0)
                                    : ::process_vm_readv(c.pid, &mine, 1, &theirs, 1, 0);
    if (moved <= 0) return false;
    at += static_cast<std::uint64_t>(moved);
    bytes -= static_cast<std::uint64_t>(moved);
  }
  return true;
}

}  // namespace

CopyState copy_next_piece(Copy& c, bool alone, bool& moved) {
  moved = false;
  if (c.participates && c.slot->claimed.load(std::memory_order_relaxed) < c.length) {
    const std::uint64_t piece = piece_of(c.length, alone);
    const std::uint64_t at = c.slot->claimed.fetch_add(piece, std::memory_order_relaxed);
    if (at < c.length) {
      const std::uint64_t bytes = std::min(piece, c.length - at);
      if (!move(c, at, bytes)) {
        c.slot->failed.store(1, std::memory_order_release);  // or the other end waits for ever
        return CopyState::failed;
      }
      moved = true;
      if (c.slot->done.fetch_add(bytes, std::memory_order_acq_rel) + bytes == c.length)
        return CopyState::done;
    }
  }
  if (c.slot->done.load(std::memory_order_acquire) == c.length) return CopyState::done;
  return c.slot->failed.load(std::memory_order_acquire) ? CopyState::failed : CopyState::working;
}

CopySlot* CopySlots::take(std::uint32_t& name) {
  // Those that both ends have left. A sender that is slow to notice holds up those behind it only
  // until it polls; one that died, until the end of this process.
  for (std::size_t n = releasing_.size(); n > 0 && free_.empty(); --n) {
    const std::uint32_t s = releasing_.front();
    releasing_.pop_front();
    if (segment_.copies[s].sender_done.load(std::memory_order_acquire))
      free_.push_back(s);
    else
      releasing_.push_back(s);
  }
  if (free_.empty()) return nullptr;
  name = free_.back();
  free_.pop_back();
  CopySlot& slot = segment_.copies[name];
  slot.claimed.store(0, std::memory_order_relaxed);
  slot.done.store(0, std::memory_order_relaxed);
  slot.failed.store(0, std::memory_order_relaxed);
  slot.sender_done.store(0, std::memory_order_release);
  return &slot;
}

bool reaches_memory(int pid, std::uint64_t magic_address) {
  std::uint64_t word = 0;
  iovec mine{&word, sizeof word};
  iovec theirs{reinterpret_cast<void*>(magic_address), sizeof word};
  return ::process_vm_readv(pid, &mine, 1, &theirs, 1, 0) == sizeof word && word == Segment::kMagic;
}

}  // namespace viaduct::mpi
