// Allocation in attached buffers, and the sends from them.
#include "libmpi_lite/transfer/buffered.hpp"

#include <algorithm>

#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/transfer/engine.hpp"
#include "libmpi_lite/transfer/parts/composite.hpp"

namespace viaduct::mpi {
namespace {

constexpr std::size_t kAlignment = 16;  // bytes; segments are multiples of it

SendBuffer& buffer_for(const Comm& comm) {
  static SendBuffer none(nullptr, 0);  // has room for messages without data
  const Ref<Session>& session = comm.session();
  const std::unique_ptr<CommBuffer>& buffer = comm.buffer                  ? comm.buffer
                                              : session && session->buffer ? session->buffer
                                                                           : process_buffer();
  return buffer ? static_cast<SendBuffer&>(*buffer) : none;
}

}  // namespace

// A flush that is under way. Its only part ends when the last of its segments has been sent.
class SendBuffer::Flush final : public Composite {
 public:
  explicit Flush(std::uint64_t number) : Composite(nullptr, false), before(number) { expect(1); }
  using Composite::part_complete;
  const std::uint64_t before;  // it waits for the segments with lower numbers

 private:
  void start_parts() override {}
};

std::unique_ptr<CommBuffer>& process_buffer() {
  static std::unique_ptr<CommBuffer> buffer;
  return buffer;
}

SendBuffer::SendBuffer(void* memory, std::size_t bytes)
    : memory_(static_cast<std::byte*>(memory)), bytes_(bytes) {}
SendBuffer::~SendBuffer() = default;

// ---- places ------------------------------------------------------------------------------------

void SendBuffer::reclaim() {
  std::erase_if(segments_, [](const Segment& s) { return s.send->complete; });
}

// Makes a segment in a gap that is large enough; segments_.end(): there is none. Section 3.6
// describes a buffer in which each message goes behind the one before, or else to the start, and
// programs may count on what fits there. So that place is tried first, then any gap.
SendBuffer::Place SendBuffer::reserve(std::size_t wanted) {
  if (automatic()) {
    segments_.emplace_back().own = std::make_unique_for_overwrite<std::byte[]>(wanted);
    return std::prev(segments_.end());
  }
  if (segments_.empty()) newest_end_ = 0;
  const auto behind_newest =
      std::find_if(segments_.begin(), segments_.end(),
                   [&](const Segment& s) { return s.at + s.bytes > newest_end_; });
  if (fits(newest_end_, behind_newest, wanted)) return take(newest_end_, behind_newest, wanted);
  std::size_t at = 0;
  for (auto next = segments_.begin();; at = next->at + next->bytes, ++next) {
    if (fits(at, next, wanted)) return take(at, next, wanted);
    if (next == segments_.end()) return next;
  }
}

bool SendBuffer::fits(std::size_t at, Place next, std::size_t wanted) {
  return wanted <= (next == segments_.end() ? bytes_ : next->at) - at;
}

SendBuffer::Place SendBuffer::take(std::size_t at, Place next, std::size_t wanted) {
  newest_end_ = at + wanted;
  return segments_.insert(next,
                          Segment{.at = at, .bytes = wanted, .own = {}, .number = 0, .send = {}});
}

// ---- sends -------------------------------------------------------------------------------------

void SendBuffer::send(const Items& items, const Envelope& to) {
  const auto bytes = static_cast<std::size_t>(items.bytes());
  const std::size_t wanted = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  reclaim();
  auto segment = reserve(wanted);
  // The event that completes an earlier send may be waiting in a channel behind other messages, so
  // poll as long as anything happens.
  while (segment == segments_.end() && progress()) {
    reclaim();
    segment = reserve(wanted);
  }
  if (segment == segments_.end())
    throw Error(MPI_ERR_BUFFER, "the attached buffer of " + std::to_string(bytes_) +
                                    " bytes has no room for a message of " + std::to_string(bytes) +
                                    " bytes");
  std::byte* const copy = place_of(*segment);
  items.type->pack(items.data, 0, {copy, bytes});
  const Items packed{copy, static_cast<MPI_Count>(bytes), &datatype(MPI_BYTE)};
  try {
    segment->number = next_number_++;
    segment->send = start_send(packed, to, SendMode::standard);
    Request& sent = *segment->send;
    if (sent.error != MPI_SUCCESS) throw Error(sent.error, error_text(sent));
    if (sent.complete) return;
    sent.on_complete = [](Request&, void* buffer) { static_cast<SendBuffer*>(buffer)->on_sent(); };
    sent.on_complete_argument = this;
  } catch (...) {
    segments_.erase(segment);
    throw;
  }
}

bool SendBuffer::sent_before(std::uint64_t number) const {
  return std::ranges::all_of(
      segments_, [&](const Segment& s) { return s.number >= number || s.send->complete; });
}

void SendBuffer::on_sent() {
  std::erase_if(flushes_, [&](const Ref<Flush>& flush) {
    const bool done = sent_before(flush->before);
    if (done) flush->part_complete();
    return done;
  });
}

void SendBuffer::flush() {
  // Other threads may change the list meanwhile.
  for (;;) {
    const auto open =
        std::ranges::find_if(segments_, [](const Segment& s) { return !s.send->complete; });
    if (open == segments_.end()) break;
    const Ref<Request> send = open->send;
    wait(*send);
  }
  segments_.clear();
}

Ref<Request> SendBuffer::start_flush() {
  Ref<Flush> flush(new Flush(next_number_));
  if (sent_before(flush->before))
    flush->part_complete();
  else
    flushes_.push_back(flush);
  return flush;
}

Ref<Request> start_buffered(const Items& items, const Envelope& to) {
  // The request that the program gets. It is complete as soon as the data has been copied; the send
  // of the copy is the segment's.
  auto done = make<SendRequest>(items, to, -1, SendMode::buffered);
  if (to.rank != MPI_PROC_NULL) buffer_for(*to.comm).send(items, to);
  done->finish();
  return done;
}

}  // namespace viaduct::mpi
