// Sends and receives under way.
#pragma once

#include <memory>
#include <optional>

#include "libmpi_lite/core/request.hpp"
#include "libmpi_lite/transfer/transfer.hpp"
#include "libmpi_lite/transfer/wire.hpp"

namespace viaduct::mpi {

// Small objects that come and go with each message.
template <class T>
class Recycled {
 public:
  static void* operator new(std::size_t bytes) {
    if (free_ && bytes == sizeof(T)) {
      Free* p = free_;
      free_ = p->next;
      return p;
    }
    return ::operator new(bytes);
  }
  static void operator delete(void* p, std::size_t bytes) {
    if (bytes != sizeof(T)) return ::operator delete(p);
    free_ = new (p) Free{free_};
  }

 private:
  struct Free {
    Free* next;
  };
  static inline Free* free_ = nullptr;
};

// What both have in common. The buffer, the type and the communicator are held until the end, as a
// program may free its handles before.
class Operation : public Request {
 public:
  Operation(Kind kind, const Items& items, const Envelope& envelope, int peer)
      : Request(kind),
        data(const_cast<void*>(items.data)),
        count(items.count),
        type(items.type),
        comm(envelope.comm),
        context(envelope.context),
        rank(envelope.rank),
        tag(envelope.tag),
        peer(peer),
        bytes(items.bytes()) {}

  Comm* communicator() const override { return comm.get(); }
  // Before a persistent one is started again.
  void renew() {
    complete = cancelled = false;
    active = true;
    error = MPI_SUCCESS;
    status = empty_status();
    moved = 0;
    seconds = 0;
  }
  Envelope envelope() const { return {comm.get(), context, rank, tag}; }
  Items items() const { return {data, count, type.get()}; }
  // Where the data lies in one piece; only of contiguous types.
  std::byte* contiguous() const { return byte_at(data, type->true_lb()); }

  void* data;
  MPI_Count count;
  Ref<Datatype> type;
  Ref<Comm> comm;
  std::uint32_t context;
  int rank, tag;
  int peer;         // process at the other end; -1: any
  MPI_Count bytes;  // to send, or room to receive
  std::uintptr_t id =
      0;  // in the table of pending requests: how the other end names it; 0: not there
  // Packed form of the part of a long message that is being moved, if the type has gaps.
  std::unique_ptr<std::byte[]> staging;
  MPI_Count moved = 0;  // bytes of a long message that are through
};

class SendRequest final : public Operation, public Recycled<SendRequest> {
 public:
  static constexpr Kind kKind = Kind::send;
  using Recycled::operator new;
  using Recycled::operator delete;
  SendRequest(const Items& items, const Envelope& to, int peer, SendMode mode)
      : Operation(kKind, items, to, peer), mode(mode) {}

  // What the receiver is to say next about it, if anything.
  enum class Awaits : std::uint8_t {
    nothing,
    match,        // a synchronous message that went eagerly
    first_grant,  // a long message, announced
    grant,        // the receiver has granted a part of it: it has matched
  };
  bool can_be_cancelled() const { return awaits == Awaits::match || awaits == Awaits::first_grant; }
  // Before a persistent one is started again.
  void renew() {
    Operation::renew();
    awaits = Awaits::nothing;
    total = part = 0;
    next_grant.reset();
  }

  const SendMode mode;
  Awaits awaits = Awaits::nothing;
  MPI_Count total = 0;  // bytes that the receiver takes
  MPI_Count part = 0;   // bytes of the part that is being sent; 0: none is
  // For the next part, when it was quicker than the channel's word that this part is through.
  std::optional<CtsHead> next_grant;
};

class ReceiveRequest final : public Operation, public Recycled<ReceiveRequest> {
 public:
  static constexpr Kind kKind = Kind::receive;
  using Recycled::operator new;
  using Recycled::operator delete;
  ReceiveRequest(const Items& into, const Envelope& from, int peer)
      : Operation(kKind, into, from, peer) {}

  bool matches(int source, int with_tag) const {
    return (rank == MPI_ANY_SOURCE || rank == source) && (tag == MPI_ANY_TAG || tag == with_tag);
  }

  // In the queue of posted receives.
  ReceiveRequest *next = nullptr, *previous = nullptr;
  std::uint64_t serial = 0;
  bool posted = false;

  // A long message for it.
  std::uint64_t send = 0;  // the sender's name for it
  bool offered = false;    // `offer` holds
  RemoteKey offer;
  std::uint64_t sent_length = 0;  // bytes that the sender had, if they did not fit
  MPI_Count total = 0;            // bytes that will come
  MPI_Count part = 0;             // bytes of the part that is coming
  // Write protocol.
  bool wanted = false;   // the sender was asked to write
  bool written = false;  // ... and says that it does
  bool arrived = false;  // ... and the data is there
  RemoteKey remote_key;
};

}  // namespace viaduct::mpi
