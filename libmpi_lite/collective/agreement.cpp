// Agreement on contexts: each process proposes the lowest context that it has not used, and all
// take the largest proposal. Where threads of some process may agree on several contexts at the
// same time, two agreements could have the same result; so all take one that the first process,
// which has it for itself, proposes beside.
#include "libmpi_lite/collective/agreement.hpp"

#include <algorithm>

#include "libmpi_lite/collective/algorithms/algorithms.hpp"
#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/core/threads/library_lock.hpp"
#include "libmpi_lite/transfer/process.hpp"

namespace viaduct::mpi {
namespace {

// A communicator takes four contexts: two for itself and, if it is an intercommunicator, two for
// its local group. 0 to 3 are those of MPI_COMM_WORLD and MPI_COMM_SELF. Of each eight contexts the
// first four are for communicators whose processes wait for each other and agree, the last four for
// those to which one process gives a context that it has for itself (settle()).
constexpr std::uint32_t kContextsOfComm = 4, kStep = 2 * kContextsOfComm;
constexpr std::uint32_t kLastContext = kFirstFlagOfContext - kStep;

// No process uses a context twice, so a late message of a communicator that was freed cannot match
// in a new one.
std::uint32_t next_context = kStep;
std::uint32_t given_contexts = 0;  // how many this process has given

// The next context that this process can give, and no other process; 0: they are used up.
std::uint32_t next_given_context() {
  const Group& world = *Process::self().world().group();
  const std::uint64_t number =
      std::uint64_t{given_contexts} * static_cast<std::uint64_t>(world.size()) +
      static_cast<std::uint64_t>(world.rank());
  if (number >= kLastContext / kStep) return 0;
  return static_cast<std::uint32_t>(number) * kStep + kContextsOfComm;
}

std::uint32_t give_context() {
  const std::uint32_t context = next_given_context();
  ++given_contexts;
  return context;
}

// What a process says in an agreement; sent as three MPI_UINT32_Ts. All take the largest of each.
struct Proposal {
  std::uint32_t several = LibraryLock::shared() ? 1 : 0;  // agreements at a time are possible
  std::uint32_t context = next_context;
  std::uint32_t given = 0;  // the context that this process gives; 0: it gives none
};
constexpr MPI_Count kProposalItems = 3;
static_assert(sizeof(Proposal) == kProposalItems * sizeof(std::uint32_t));

// `first`: this process is the one that gives a context, if one is to be given. Where other threads
// may give contexts meanwhile, this one is taken now.
Proposal make_proposal(bool first) {
  Proposal proposal;
  if (first) proposal.given = proposal.several != 0 ? give_context() : next_given_context();
  return proposal;
}

// `agreed` is what all have agreed on. Throws Error, at all processes alike, if there are no more
// contexts.
std::uint32_t take_context(const Proposal& agreed) {
  const std::uint32_t context = agreed.several != 0 ? agreed.given : agreed.context;
  if (context > kLastContext || context == 0)
    throw Error(MPI_ERR_OTHER, "more communicators have been made than there are contexts");
  if (agreed.several == 0)
    next_context = context + kStep;
  else if (!LibraryLock::shared() && context == next_given_context())
    ++given_contexts;
  return context;
}

Reduction largest_proposal(Collective& op) {
  const Op& max = *op_handles.find(reinterpret_cast<std::uintptr_t>(MPI_MAX));
  return {op, max, MPI_UINT32_T, kProposalItems};
}

Task agree_over(Collective& op, Proposal& proposal) {
  const Reduction largest = largest_proposal(op);
  co_await allreduce(op, largest, &proposal, &proposal);
}

// Over a part of a communicator. allreduce() is not for that: its plan is for the whole.
Task agree_over(Subgroup subgroup, Proposal& proposal) {
  const Reduction largest = largest_proposal(subgroup.op());
  co_await doubling_allreduce(subgroup, largest, &proposal);
}

// The leaders exchange `ours` and `theirs`, and broadcast what they got within their groups.
Task exchange(Collective& op, const Leaders& leaders, Items ours, Items theirs) {
  if (op.comm().rank() == leaders.leader) {
    Pending pending(op);
    pending.add(op.send(leaders.other, ours));
    pending.add(op.receive(leaders.other, theirs));
    co_await pending;
  }
  co_await tree_broadcast(all_ranks(op), theirs, leaders.leader);
}

// Over both groups: the largest of each, then the larger of the two.
Task agree_over(Collective& op, const Leaders& leaders, Proposal& proposal) {
  co_await agree_over(op, proposal);
  Proposal theirs;
  Datatype& type = datatype(MPI_UINT32_T);
  co_await exchange(op, leaders, {&proposal, kProposalItems, &type},
                    {&theirs, kProposalItems, &type});
  proposal = {std::max(proposal.several, theirs.several),
              std::max(proposal.context, theirs.context), std::max(proposal.given, theirs.given)};
}

// One process gives the context, as several communicators may be waiting for theirs, in different
// orders at different processes: no agreement could do without a wait. It is rank 0, or, of the two
// leaders of an intercommunicator, the one that is the earlier process.
Task settle(Collective& op, Ref<Comm> comm, Ref<Comm> made) {
  std::uint32_t context = 0;
  Datatype& type = datatype(MPI_UINT32_T);
  const Items item{&context, 1, &type};
  if (op.comm().rank() == 0) context = give_context();
  if (comm->inter() && op.comm().rank() == 0) {
    const Leaders leaders = leaders_of(*comm);
    std::uint32_t theirs = 0;
    Pending pending(op);
    pending.add(op.send(leaders.other, item));
    pending.add(op.receive(leaders.other, {&theirs, 1, &type}));
    co_await pending;
    const bool ours = comm->group()->world_rank(0) < comm->remote_group()->world_rank(0);
    if (!ours) context = theirs;
  }
  co_await tree_broadcast(all_ranks(op), item, 0);
  if (context == 0)
    throw Error(MPI_ERR_OTHER, "more communicators have been made than there are contexts");
  made->settle(context);
}

Items ints(std::span<const int> data) {
  return {data.data(), static_cast<MPI_Count>(data.size()), &datatype(MPI_INT)};
}

}  // namespace

Leaders leaders_of(Comm& intercomm) {
  return {
      intercomm.local.get(), 0, {&intercomm, intercomm.collective_context(), 0, agreement_tag(0)}};
}

void broadcast(Comm& comm, std::span<int> data, int root) {
  const auto count = static_cast<MPI_Count>(data.size());
  finish_collective(*start_broadcast(comm, {data.data(), count, MPI_INT}, root));
}

std::vector<int> exchange_lists(const Leaders& leaders, const std::vector<int>& ours) {
  const auto swap = [&](std::span<const int> from, std::span<int> into) {
    auto op = make<Collective>(*leaders.local, CollectiveKind::construction);
    finish_collective(*op->run(exchange(*op, leaders, ints(from), ints(into))));
  };
  const int our_size = static_cast<int>(ours.size());
  int their_size = 0;
  swap({&our_size, 1}, {&their_size, 1});
  std::vector<int> theirs(static_cast<std::size_t>(their_size));
  swap(ours, theirs);
  return theirs;
}

std::uint32_t agree_on_context(const Leaders& leaders) {
  Proposal proposal = make_proposal(leaders.local->rank() == leaders.leader);
  auto op = make<Collective>(*leaders.local, CollectiveKind::construction);
  finish_collective(*op->run(agree_over(*op, leaders, proposal)));
  return take_context(proposal);
}

std::uint32_t agree_on_context(Comm& comm) {
  if (comm.inter()) return agree_on_context(leaders_of(comm));
  Proposal proposal = make_proposal(comm.rank() == 0);
  auto op = make<Collective>(comm, CollectiveKind::construction);
  finish_collective(*op->run(agree_over(*op, proposal)));
  return take_context(proposal);
}

// Only the members of `group` call this, so the collectives of `comm`, which are numbered, cannot
// be used.
std::uint32_t agree_on_context(Comm& comm, const Group& group, int tag) {
  std::vector<int> ranks;
  for (const int process : group.world_ranks()) ranks.push_back(comm.group()->rank_of(process));
  Proposal proposal = make_proposal(group.rank() == 0);
  auto op = make<Collective>(comm, agreement_tag(tag));
  const Subgroup subgroup{op.get(), ranks.data(), group.size(), group.rank(), false};
  finish_collective(*op->run(agree_over(subgroup, proposal)));
  return take_context(proposal);
}

Ref<Request> start_settling(Comm& comm, Ref<Comm> made) {
  auto op = make<Collective>(comm.inter() ? *comm.local : comm, CollectiveKind::construction);
  return op->run(settle(*op, Ref<Comm>(&comm), std::move(made)));
}

}  // namespace viaduct::mpi
