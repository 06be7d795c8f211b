// Makes communicators in two steps: all agree on a context (agreement.cpp), and each process works
// out the groups from what it knows or receives.
#include "libmpi_lite/collective/construction.hpp"

#include <algorithm>

#include "libmpi_lite/collective/agreement.hpp"
#include "libmpi_lite/collective/collective.hpp"
#include "libmpi_lite/core/error.hpp"

namespace viaduct::mpi {

namespace {

std::vector<int> list(const Group& group) {
  return {group.world_ranks().begin(), group.world_ranks().end()};
}

// nullptr where this process is not in the group, and where the other side of an intercommunicator
// is empty.
Ref<Comm> make_comm(const Comm& old, std::uint32_t context, Ref<Group> group,
                    Ref<Group> remote = nullptr) {
  if (group->rank() == MPI_UNDEFINED || (remote && remote->size() == 0)) return nullptr;
  return make<Comm>(context, std::move(group), std::move(remote), old.errhandler);
}

struct Choice {  // sent as two MPI_INTs
  int color, key;
};

// The processes that have chosen `color`, by key and then by rank in the old group. `choices` is
// the color and key of each rank.
Ref<Group> of_color(const Group& old, const std::vector<int>& choices, int color) {
  std::vector<std::pair<int, int>> members;  // key, rank
  for (int rank = 0; rank < old.size(); ++rank) {
    const auto at = static_cast<std::size_t>(rank) * 2;
    if (choices[at] == color) members.emplace_back(choices[at + 1], rank);
  }
  std::sort(members.begin(), members.end());
  std::vector<int> world_ranks;
  world_ranks.reserve(members.size());
  for (const auto& [key, rank] : members) world_ranks.push_back(old.world_rank(rank));
  return make<Group>(std::move(world_ranks), old.me(), old.session());
}

}  // namespace

Ref<Comm> duplicate(Comm& comm) {
  Ref<Comm> made = make_comm(comm, agree_on_context(comm), comm.group(), comm.remote_group());
  made->topology = comm.topology;
  return made;
}

Ref<Request> start_duplicate(Comm& comm, Ref<Comm>& made) {
  made = make_comm(comm, Comm::kUnsettled, comm.group(), comm.remote_group());
  made->topology = comm.topology;
  return start_settling(comm, made);
}

Ref<Comm> create(Comm& comm, const Ref<Group>& group) {
  const std::uint32_t context = agree_on_context(comm);
  if (!comm.inter()) return make_comm(comm, context, group);
  std::vector<int> remote = exchange_lists(leaders_of(comm), list(*group));
  return make_comm(comm, context, group, make<Group>(std::move(remote), group->me()));
}

Ref<Comm> create_from_group(Comm& comm, const Ref<Group>& group, int tag) {
  return make_comm(comm, agree_on_context(comm, *group, tag), group);
}

Ref<Comm> split(Comm& comm, int color, int key) {
  const std::uint32_t context = agree_on_context(comm);
  Comm& local = comm.inter() ? *comm.local : comm;
  const Choice mine{color, key};
  std::vector<int> choices(static_cast<std::size_t>(local.size()) * 2);
  finish_collective(*start_allgather(local, {&mine, 2, MPI_INT}, {choices.data(), 2, MPI_INT}));
  std::vector<int> their_choices;
  if (comm.inter()) their_choices = exchange_lists(leaders_of(comm), choices);
  if (color == MPI_UNDEFINED) return nullptr;
  return make_comm(comm, context, of_color(*comm.group(), choices, color),
                   comm.inter() ? of_color(*comm.remote_group(), their_choices, color) : nullptr);
}

Ref<Comm> create_intercomm(Comm& local, int local_leader, Comm* peer, int remote_leader, int tag) {
  Leaders leaders{&local, local_leader, {}};
  if (local.rank() == local_leader)
    leaders.other = {peer, peer->collective_context(), remote_leader, agreement_tag(tag)};
  const std::uint32_t context = agree_on_context(leaders);
  Ref<Group> remote =
      make<Group>(exchange_lists(leaders, list(*local.group())), local.group()->me());
  if (intersect(*local.group(), *remote)->size() > 0)
    throw Error(MPI_ERR_COMM, "the two groups have a process in common");
  return make_comm(local, context, local.group(), std::move(remote));
}

Ref<Comm> merge(Comm& intercomm, bool high) {
  const std::uint32_t context = agree_on_context(intercomm);
  int our_high = high;  // if the processes of a group differ, the leader's value counts
  broadcast(*intercomm.local, {&our_high, 1}, 0);
  const int their_high = exchange_lists(leaders_of(intercomm), {our_high})[0];

  const Group& ours = *intercomm.group();
  const Group& theirs = *intercomm.remote_group();
  const bool we_are_first =
      our_high != their_high ? !our_high : ours.world_rank(0) < theirs.world_rank(0);
  return make_comm(intercomm, context, we_are_first ? unite(ours, theirs) : unite(theirs, ours));
}

}  // namespace viaduct::mpi
