// MPI_Allgather and MPI_Allgatherv (MPI 5.0, section 6.7): short blocks in rounds that double what
// a rank has, or in stages; long ones by a ring between nodes. On one node long ones, and all if
// the ranks are few, go from each rank to each other one. Both forms are one algorithm, as all
// ranks know all counts.
#include <algorithm>
#include <utility>

#include "libmpi_lite/collective/algorithms/algorithms.hpp"
#include "libmpi_lite/collective/algorithms/doubling.hpp"
#include "libmpi_lite/collective/algorithms/inter.hpp"
#include "libmpi_lite/collective/algorithms/sizes.hpp"

namespace viaduct::mpi {

Task doubling_allgather(Subgroup subgroup, Blocks blocks) {
  Doubling round(subgroup);
  const int own = round.own(), first = round.first();
  const auto block = [&](int position) -> const Items& {
    return blocks[static_cast<std::size_t>(subgroup.after(first, position))];
  };
  PoolVector<std::size_t> starts;  // by position: where that block is, packed
  starts.reserve(blocks.size() + 1);
  starts.push_back(0);
  for (int i = 0; i < subgroup.size; ++i) starts.push_back(starts.back() + length(block(i)));
  const auto start = [&](int position) { return starts[static_cast<std::size_t>(position)]; };

  const Scratch all(starts.back());
  const auto run = [&](int from) {  // of as many blocks as this round moves
    return bytes_at(all.data() + start(from), start(from + round.count()) - start(from));
  };
  pack(block(own), all.data() + start(own));
  Pending pending(subgroup.op());
  for (; !round.done(); round.next()) {
    pending.add(subgroup.send(round.to(), run(round.sent())));
    pending.add(subgroup.receive(round.from(), run(round.received())));
    co_await pending;
  }
  for (int i = 0; i < subgroup.size; ++i)
    if (i != own) unpack(all.data() + start(i), block(i));
}

// In each step a process passes on the block that it got in the step before.
Task ring_allgather(Subgroup subgroup, Blocks blocks) {
  const auto block = [&](int distance) -> const Items& {
    return blocks[static_cast<std::size_t>(subgroup.after(subgroup.me, -distance))];
  };
  Pending pending(subgroup.op());
  for (int step = 0; step < subgroup.size - 1; ++step) {
    pending.add(subgroup.receive(subgroup.after(subgroup.me, -1), block(step + 1)));
    pending.add(subgroup.send(subgroup.after(subgroup.me, 1), block(step)));
    co_await pending;
  }
}

Task direct_allgather(Subgroup subgroup, Blocks blocks) {
  const auto block = [&](int i) -> const Items& { return blocks[static_cast<std::size_t>(i)]; };
  Pending pending(subgroup.op());
  add_exchange(pending, subgroup, block(subgroup.me), block);
  co_await pending;
}

// On one node all paths are equal and the waits cost most. Between nodes, a ring in node order
// sends every block through each link once.
Task long_allgather(Subgroup subgroup, Blocks blocks) {
  return plan_of(subgroup.op().comm()).nodes() == 1 ? direct_allgather(subgroup, std::move(blocks))
                                                    : ring_allgather(subgroup, std::move(blocks));
}

namespace {

Blocks blocks_of(const Subgroup& subgroup, const Spread& spread) {
  Blocks blocks;
  blocks.reserve(static_cast<std::size_t>(subgroup.size));
  for (int i = 0; i < subgroup.size; ++i) blocks.push_back(spread[subgroup.rank(i)]);
  return blocks;
}

// Blocks go to the leader of each node, are exchanged between the leaders, and go back to all ranks
// of the node; packed in node order.
Task staged_allgather(Collective& op, Spread into) {
  const Hierarchy hierarchy(op);
  const Plan& plan = plan_of(op.comm());
  PoolVector<std::size_t> lengths;  // of the blocks of this node
  for (const int rank : plan.members(plan.my_node())) lengths.push_back(length(into[rank]));
  PoolVector<std::size_t> starts(1, 0);  // of the nodes
  for (int node = 0; node < plan.nodes(); ++node) {
    starts.push_back(starts.back());
    for (const int rank : plan.members(node)) starts.back() += length(into[rank]);
  }

  const Scratch all(starts.back());
  co_await tree_gather(hierarchy.local, into[op.comm().rank()], {0, lengths.data()},
                       all.data() + starts[static_cast<std::size_t>(plan.my_node())], 0);
  if (hierarchy.is_leader() && plan.nodes() > 1) {
    Blocks nodes;
    for (std::size_t i = 0; i + 1 < starts.size(); ++i)
      nodes.push_back(bytes_at(all.data() + starts[i], starts[i + 1] - starts[i]));
    co_await doubling_allgather(hierarchy.leaders, std::move(nodes));
  }
  co_await tree_broadcast(hierarchy.local, bytes_at(all.data(), all.size()), 0);

  const std::byte* from = all.data();
  for (const int rank : plan.by_node()) {
    if (rank != op.comm().rank()) unpack(from, into[rank]);
    from += length(into[rank]);
  }
}

// The choice depends on the total, which all ranks know.
Task allgather(Collective& op, const Items& mine, const Spread& into) {
  const Plan& plan = plan_of(op.comm());
  if (mine.data != MPI_IN_PLACE) copy(op, mine, into[op.comm().rank()]);
  std::size_t total = 0;
  for (int rank = 0; rank < op.comm().size(); ++rank) total += length(into[rank]);
  if (total > kShortAllgather) {
    op.take_long_form();
    const Subgroup subgroup = by_node(op);
    return long_allgather(subgroup, blocks_of(subgroup, into));
  }
  const Subgroup subgroup = all_ranks(op);
  if (in_one_step(op.comm())) return direct_allgather(subgroup, blocks_of(subgroup, into));
  if (plan.staged()) return staged_allgather(op, into);
  return doubling_allgather(subgroup, blocks_of(subgroup, into));
}

template <class Into>
Ref<Request> start(Comm& comm, const Part& from, const Into& into) {
  auto op = make<Collective>(comm, CollectiveKind::allgather);
  const Spread to(*op, into);
  const Items mine = from.data == MPI_IN_PLACE ? nothing_at(MPI_IN_PLACE) : op->items(from);
  return op->run(comm.inter() ? inter_allgather(*op, mine, to) : allgather(*op, mine, to));
}

}  // namespace

Ref<Request> start_allgather(Comm& comm, const Part& from, const Part& into) {
  return start(comm, from, into);
}

Ref<Request> start_allgatherv(Comm& comm, const Part& from, const Parts& into) {
  return start(comm, from, into);
}

}  // namespace viaduct::mpi
