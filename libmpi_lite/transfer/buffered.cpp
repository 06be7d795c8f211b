// Allocation in the attached buffer. Each buffered message is a segment: the packed data, and an
// ordinary standard-mode send (operations.cpp) that reads it. The segment is free again when that
// send is complete.
#include "libmpi_lite/transfer/buffered.hpp"

#include <algorithm>
#include <list>
#include <memory>

#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

struct Segment {
  std::size_t at = 0, bytes = 0;     // place in the attached buffer
  std::unique_ptr<std::byte[]> own;  // with MPI_BUFFER_AUTOMATIC: memory of its own in place of it
  Ref<Request> send;
};

// The one attached buffer of the process. `segments` is sorted by place.
class AttachedBuffer {
 public:
  using Place = std::list<Segment>::iterator;

  std::byte* memory = nullptr;  // the program's; nullptr: no buffer is attached
  std::size_t bytes = 0;
  std::list<Segment> segments;
  std::size_t newest_end = 0;  // where the segment that was taken last ends, or ended

  bool automatic() const { return memory == MPI_BUFFER_AUTOMATIC; }
  std::byte* place_of(const Segment& s) const { return s.own ? s.own.get() : memory + s.at; }
  // Frees the segments whose messages have been sent.
  void reclaim() {
    std::erase_if(segments, [](const Segment& s) { return s.send->complete; });
  }
  // Makes a segment in a gap that is large enough; segments.end(): there is none. Section 3.6
  // describes a buffer in which each message goes behind the one before, or else to the start, and
  // programs may count on what fits there. So that place is tried first, then any gap.
  Place reserve(std::size_t wanted) {
    if (automatic()) {
      segments.emplace_back().own = std::make_unique_for_overwrite<std::byte[]>(wanted);
      return std::prev(segments.end());
    }
    if (segments.empty()) newest_end = 0;
    const auto behind_newest =
        std::find_if(segments.begin(), segments.end(),
                     [&](const Segment& s) { return s.at + s.bytes > newest_end; });
    if (fits(newest_end, behind_newest, wanted)) return take(newest_end, behind_newest, wanted);
    std::size_t at = 0;
    for (auto next = segments.begin();; at = next->at + next->bytes, ++next) {
      if (fits(at, next, wanted)) return take(at, next, wanted);
      if (next == segments.end()) return next;
    }
  }

 private:
  bool fits(std::size_t at, Place next, std::size_t wanted) {
    return wanted <= (next == segments.end() ? bytes : next->at) - at;
  }
  Place take(std::size_t at, Place next, std::size_t wanted) {
    newest_end = at + wanted;
    return segments.insert(next, Segment{.at = at, .bytes = wanted, .own = {}, .send = {}});
  }
};
AttachedBuffer attached;

constexpr std::size_t kAlignment = 16;  // bytes; segments are multiples of it

}  // namespace

void attach_buffer(void* buffer, std::size_t bytes) {
  if (attached.memory)
    throw Error(MPI_ERR_BUFFER, "there is a buffer attached already; detach it first");
  attached.memory = static_cast<std::byte*>(buffer);
  attached.bytes = bytes;
}

void detach_buffer(void*& buffer, std::size_t& bytes) {
  for (const Segment& s : attached.segments) wait(*s.send);
  attached.segments.clear();
  buffer = std::exchange(attached.memory, nullptr);
  bytes = std::exchange(attached.bytes, 0);
}

Ref<Request> start_buffered(const Items& items, const Envelope& to) {
  // The request that the program gets. It is complete as soon as the data has been copied; the send
  // of the copy is the segment's.
  auto done = make<SendRequest>(items, to, -1, SendMode::buffered);
  if (to.rank != MPI_PROC_NULL) {
    const auto bytes = static_cast<std::size_t>(items.bytes());
    const std::size_t wanted = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    attached.reclaim();
    auto segment = attached.reserve(wanted);
    // The event that completes an earlier send may be waiting in a channel behind other messages,
    // so poll as long as anything happens.
    while (segment == attached.segments.end() && progress()) {
      attached.reclaim();
      segment = attached.reserve(wanted);
    }
    if (segment == attached.segments.end())
      throw Error(MPI_ERR_BUFFER, "the attached buffer of " + std::to_string(attached.bytes) +
                                      " bytes has no room for a message of " +
                                      std::to_string(bytes) + " bytes");
    std::byte* const copy = attached.place_of(*segment);
    items.type->pack(items.data, 0, {copy, bytes});
    const Items packed{copy, static_cast<MPI_Count>(bytes), &datatype(MPI_BYTE)};
    try {
      segment->send = start_send(packed, to, SendMode::standard);
      const Request& sent = *segment->send;
      if (sent.error != MPI_SUCCESS) throw Error(sent.error, error_text(sent));
    } catch (...) {
      attached.segments.erase(segment);
      throw;
    }
  }
  done->finish();
  return done;
}

}  // namespace viaduct::mpi
