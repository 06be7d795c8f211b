// Buffered mode (MPI 5.0, section 3.6): a send copies its data into a buffer that the program has
// attached, to the process, to a communicator or to a session, and is complete at once.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "libmpi_lite/transfer/transfer.hpp"

namespace viaduct::mpi {

// One attached buffer. Each message in it is a segment: the packed data, and an ordinary
// standard-mode send that reads it. The segment is free again when that send is complete.
//
// The program keeps ownership of the memory and must leave it alone until flush() has returned and
// this object is gone. With MPI_BUFFER_AUTOMATIC each segment has memory of its own.
class SendBuffer final : public CommBuffer {
 public:
  SendBuffer(void* memory, std::size_t bytes);
  ~SendBuffer() override;

  void* memory() const { return memory_; }
  std::size_t bytes() const { return bytes_; }
  // Sends a copy of the items. Throws Error: MPI_ERR_BUFFER if there is no room, or what went wrong
  // when the copy was sent.
  void send(const Items& items, const Envelope& to);
  // Waits until all messages in the buffer have been sent.
  void flush();
  // Complete when all messages that are in the buffer now have been sent. Does not wait.
  Ref<Request> start_flush();

 private:
  class Flush;
  struct Segment {
    std::size_t at = 0, bytes = 0;  // place in the buffer
    std::unique_ptr<std::byte[]>
        own;                   // with MPI_BUFFER_AUTOMATIC: memory of its own in place of it
    std::uint64_t number = 0;  // in the order of sending
    Ref<Request> send;
  };
  using Place = std::list<Segment>::iterator;

  bool automatic() const { return memory_ == MPI_BUFFER_AUTOMATIC; }
  std::byte* place_of(const Segment& s) const { return s.own ? s.own.get() : memory_ + s.at; }
  void reclaim();  // frees the segments whose messages have been sent
  Place reserve(std::size_t wanted);
  bool fits(std::size_t at, Place next, std::size_t wanted);
  Place take(std::size_t at, Place next, std::size_t wanted);
  bool sent_before(std::uint64_t number) const;  // all segments with lower numbers
  void on_sent();

  std::byte* memory_;
  std::size_t bytes_;
  std::list<Segment> segments_;  // by place
  std::size_t newest_end_ = 0;   // where the segment that was taken last ends, or ended
  std::uint64_t next_number_ = 0;
  std::vector<Ref<Flush>> flushes_;
};

// The buffer of the process (MPI_Buffer_attach); nothing: none is attached.
std::unique_ptr<CommBuffer>& process_buffer();

// Sends from the buffer of the communicator, of its session, or of the process, the first of them
// that there is. The result is complete. Throws Error.
Ref<Request> start_buffered(const Items& items, const Envelope& to);

}  // namespace viaduct::mpi
