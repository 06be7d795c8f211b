// The memory in which other processes of the node leave messages for this one. It is anonymous
// (memfd): others reach it through /proc, nothing is ever in /dev/shm, and it is gone with the last
// process that has it open, however that ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "drivers/base/unique_fd.hpp"
#include "drivers/link/types.hpp"

namespace viaduct::mpi {

inline constexpr std::size_t kLine = 64;  // bytes that move between cores as one
inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kHalfRing = (128 << 10) - kLine;  // data of one half of a ring
inline constexpr std::size_t kCopySlots = 256;  // long transfers into one process at a time

// A queue from one process to another; see shm_ring.hpp. Each half begins near the start of a page:
// a queue that never has a backlog uses one page of each.
struct Ring {
  alignas(kLine) std::atomic<std::uint32_t> writer;  // rank + 1 of the process that writes; 0: none
  alignas(kLine) std::atomic<std::uint64_t> reader_turns;  // how often the reader has left a half
  alignas(kLine) std::byte data[2][kHalfRing];
};

// A long transfer that both ends work on; see shm_copy.hpp.
struct CopySlot {
  alignas(kLine) std::atomic<std::uint64_t> claimed;  // bytes that somebody moves or has moved
  std::atomic<std::uint64_t> done;                    // bytes that are there
  std::atomic<std::uint32_t> failed;                  // an end cannot move what it has claimed
  std::atomic<std::uint32_t> sender_done;             // the sender no longer looks at this
};

// How the process of a segment stands to MPI.
enum class Presence : std::uint32_t {
  there,
  finished,     // it has left as it should
  ended_early,  // it has called exit() without MPI_Finalize
};

struct alignas(kPage) Segment {
  static constexpr std::uint64_t kMagic = 0x3174647669614dull;
  std::uint64_t magic;
  std::uint32_t rings;                 // there is room for
  std::atomic<std::uint32_t> claimed;  // those below have writers; others may
  std::atomic<Presence> presence;
  // When its process was last in the library: ns of CLOCK_MONOTONIC, some ms old at most.
  std::atomic<std::int64_t> seen;
  std::atomic<int> cpu;  // on which it was then, some polls ago at most; -1: not known
  // Whether its process sleeps, and how it is woken.
  enum Asleep : std::uint32_t {
    awake,
    on_futex,  // this word
    on_bell,   // a byte written to the pipe `bell`, which is opened as the segment is
  };
  alignas(kLine) std::atomic<std::uint32_t> asleep;
  std::atomic<int> bell;  // the descriptor that its process has of it
  CopySlot copies[kCopySlots];

  Ring& ring(std::uint32_t n) { return reinterpret_cast<Ring*>(this + 1)[n]; }
  // A ring for that rank to write; nullptr: all have writers. May be killed at any point.
  Ring* claim(int rank);
  static std::size_t bytes(std::uint32_t rings) { return sizeof(Segment) + rings * sizeof(Ring); }
};
static_assert(sizeof(Segment) % kPage == 0 && sizeof(Ring) % kPage == 0);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// A mapping of a segment; unmapped at the end.
class SegmentMap {
 public:
  // This process's own. Pages that nobody uses take no memory. Throws SetupError.
  static SegmentMap create(std::uint32_t rings);
  // Another process's, made with as many rings; the descriptor is closed again. Throws SetupError.
  static SegmentMap open(int pid, int fd, std::uint32_t rings);

  SegmentMap() = default;
  SegmentMap(SegmentMap&& other) noexcept;
  SegmentMap& operator=(SegmentMap&& other) noexcept;
  ~SegmentMap();

  Segment* operator->() const { return segment_; }
  Segment& operator*() const { return *segment_; }
  explicit operator bool() const { return segment_ != nullptr; }
  int fd() const { return fd_.get(); }  // by which others open it

 private:
  Segment* segment_ = nullptr;
  std::size_t bytes_ = 0;
  base::UniqueFd fd_;
};

}  // namespace viaduct::mpi
