#include "libmpi_lite/collective/agreement.hpp"

#include <algorithm>
#include <bit>

#include "libmpi_lite/collective/collective.hpp"
#include "libmpi_lite/core/error.hpp"

namespace viaduct::mpi {

namespace {

// A communicator takes four contexts: two for itself and, if it is an intercommunicator, two for
// its local group. 0 to 3 are MPI_COMM_WORLD's and MPI_COMM_SELF's.
constexpr std::uint32_t kContextsOfComm = 4;
// The largest that can be taken; as an int it is sent from leader to leader.
constexpr std::uint32_t kLastContext = 0x7ffffff8;

// A context is never used twice: what is left of a communicator that was freed cannot be mistaken.
std::uint32_t next_context = kContextsOfComm;

Items ints(std::vector<int>& data) {
  return {data.data(), static_cast<MPI_Count>(data.size()), &datatype(MPI_INT)};
}

}  // namespace

void finish(Ref<Request> request) {
  wait(*request);
  if (request->error != MPI_SUCCESS)
    throw Error(request->error,
                "the processes could not agree on a communicator: a message failed");
}

void broadcast(Comm& comm, std::span<int> data, int root) {
  finish(start_broadcast(comm, {data.data(), static_cast<MPI_Count>(data.size()), MPI_INT}, root));
}

void broadcast(Comm& comm, std::vector<int>& data, int root) {
  int size = static_cast<int>(data.size());
  broadcast(comm, {&size, 1}, root);
  data.resize(static_cast<std::size_t>(size));
  broadcast(comm, std::span(data), root);
}

std::vector<int> exchange(const Envelope& with, std::vector<int> ours) {
  std::vector<int> our_size{static_cast<int>(ours.size())}, their_size{0};
  Ref<Request> sizes = start_send(ints(our_size), with, SendMode::standard);
  Ref<Request> values = start_send(ints(ours), with, SendMode::standard);
  finish(start_receive(ints(their_size), with));
  std::vector<int> theirs(static_cast<std::size_t>(their_size[0]));
  finish(start_receive(ints(theirs), with));
  finish(std::move(sizes));
  finish(std::move(values));
  return theirs;
}

std::vector<int> exchange_between_groups(Comm& intercomm, std::vector<int> ours) {
  std::vector<int> theirs;
  if (intercomm.rank() == 0) {
    const Envelope other{&intercomm, intercomm.collective_context(), 0, agreement_tag(0)};
    theirs = exchange(other, std::move(ours));
  }
  broadcast(*intercomm.local, theirs, 0);
  return theirs;
}

std::uint32_t largest_next_context(Comm& comm) {
  std::uint32_t largest = 0;
  const Op& max = *op_handles.find(reinterpret_cast<std::uintptr_t>(MPI_MAX));
  finish(start_allreduce(comm, {&next_context, 1, MPI_UINT32_T}, &largest, max));
  return largest;
}

std::uint32_t take_context(std::uint32_t context) {
  if (context > kLastContext)
    throw Error(MPI_ERR_OTHER, "more communicators have been made than there are contexts");
  next_context = context + kContextsOfComm;
  return context;
}

std::uint32_t agree_on_context(Comm& comm) {
  if (!comm.inter()) return take_context(largest_next_context(comm));
  const std::uint32_t ours = largest_next_context(*comm.local);
  const std::vector<int> theirs = exchange_between_groups(comm, {static_cast<int>(ours)});
  return take_context(std::max(ours, static_cast<std::uint32_t>(theirs[0])));
}

// Up a binomial tree over the ranks of the group and down again: the others in `comm` are busy with
// something else, so its collectives cannot be used.
std::uint32_t agree_on_context(Comm& comm, const Group& group, int tag) {
  const auto me = static_cast<unsigned>(group.rank());
  const auto size = static_cast<unsigned>(group.size());
  const auto with = [&](unsigned rank) {
    return Envelope{&comm, comm.collective_context(),
                    comm.group()->rank_of(group.world_rank(static_cast<int>(rank))),
                    agreement_tag(tag)};
  };
  std::uint32_t largest = next_context;
  const Items value{&largest, 1, &datatype(MPI_UINT32_T)};

  // Bits below the lowest set bit of this rank: its children; that bit: its parent.
  const unsigned parent_bit = me == 0 ? std::bit_ceil(size) : me & -me;
  for (unsigned bit = 1; bit < parent_bit && me + bit < size; bit <<= 1) {
    std::uint32_t theirs = 0;
    receive({&theirs, 1, value.type}, with(me + bit), MPI_STATUS_IGNORE);
    largest = std::max(largest, theirs);
  }
  if (me != 0) {
    send(value, with(me - parent_bit), SendMode::standard);
    receive(value, with(me - parent_bit), MPI_STATUS_IGNORE);
  }
  for (unsigned bit = parent_bit >> 1; bit > 0; bit >>= 1)
    if (me + bit < size) send(value, with(me + bit), SendMode::standard);
  return take_context(largest);
}

}  // namespace viaduct::mpi
