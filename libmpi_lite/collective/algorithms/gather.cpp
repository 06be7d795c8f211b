// MPI_Gather, MPI_Scatter and their v-forms (MPI 5.0, sections 6.5 and 6.6): short blocks by trees,
// in two stages if there are several nodes; long blocks, blocks of few ranks on one node, and the
// v-forms directly to or from the root. Trees move packed blocks, in the order of places (see class
// Tree).
#include "libmpi_lite/collective/algorithms/algorithms.hpp"
#include "libmpi_lite/collective/algorithms/inter.hpp"
#include "libmpi_lite/collective/algorithms/sizes.hpp"

namespace viaduct::mpi {

std::size_t Lengths::of_places(const Subgroup& subgroup, int root, int place, int n) const {
  if (!list) return each * static_cast<std::size_t>(n);
  std::size_t sum = 0;
  for (int i = 0; i < n; ++i) sum += list[index_of_place(subgroup, root, place + i)];
  return sum;
}

// A leaf sends from the program's buffer, and needs no packed copy. Others collect the blocks of
// their subtree, the own one first, and pass them on in one message.
Task tree_gather(Subgroup subgroup, Items mine, Lengths lengths, std::byte* all, int root) {
  const Tree& tree = subgroup.tree(root);
  Pending pending(subgroup.op());
  if (tree.width() == 1 && tree.parent() >= 0) {
    pending.add(subgroup.send(tree.parent(), mine));
    co_await pending;
    co_return;
  }

  const std::size_t total = lengths.of_places(subgroup, root, tree.place(), tree.width());
  const Scratch scratch(tree.parent() < 0 ? 0 : total);
  if (tree.parent() >= 0) all = scratch.data();
  for (int k = 0; k < tree.children(); ++k) {
    std::byte* const at = all + lengths.of_places(subgroup, root, tree.place(), tree.offset(k));
    pending.add(subgroup.receive(
        tree.child(k), bytes_at(at, lengths.of_places(subgroup, root, tree.place() + tree.offset(k),
                                                      tree.width(k)))));
  }
  pack(mine, all);
  co_await pending;
  if (tree.parent() >= 0) pending.add(subgroup.send(tree.parent(), bytes_at(all, total)));
  co_await pending;
}

// The reverse of tree_gather(). The largest subtree is served first.
Task tree_scatter(Subgroup subgroup, const std::byte* all, Lengths lengths, Items mine, int root) {
  const Tree& tree = subgroup.tree(root);
  Pending pending(subgroup.op());
  if (tree.width() == 1 && tree.parent() >= 0) {
    pending.add(subgroup.receive(tree.parent(), mine));
    co_await pending;
    co_return;
  }

  const std::size_t total = lengths.of_places(subgroup, root, tree.place(), tree.width());
  const Scratch scratch(tree.parent() < 0 ? 0 : total);
  if (tree.parent() >= 0) {
    all = scratch.data();
    pending.add(subgroup.receive(tree.parent(), bytes_at(all, total)));
  }
  co_await pending;
  for (int k = tree.children() - 1; k >= 0; --k) {
    const std::byte* const at =
        all + lengths.of_places(subgroup, root, tree.place(), tree.offset(k));
    pending.add(subgroup.send(
        tree.child(k), bytes_at(at, lengths.of_places(subgroup, root, tree.place() + tree.offset(k),
                                                      tree.width(k)))));
  }
  unpack(all, mine);
  co_await pending;
}

namespace {

// Calls each(rank) in the order in which the blocks of all ranks lie at the root, packed, when they
// have come through the stages: by the places of the nodes, and within a node by those of its
// ranks. For the root only: only on its node may the leader be another one than in the plan.
// Elsewhere it is the first rank, and places are indices.
template <class Each>
void for_each_place(const Hierarchy& hierarchy, const Plan& plan, Each each) {
  for (int i = 0; i < plan.nodes(); ++i) {
    const int node = index_of_place(hierarchy.leaders, hierarchy.root, i);
    const std::span<const int> members = plan.members(node);
    for (int k = 0; k < static_cast<int>(members.size()); ++k) {
      const int index =
          node == plan.my_node() ? index_of_place(hierarchy.local, hierarchy.local_leader, k) : k;
      each(members[static_cast<std::size_t>(index)]);
    }
  }
}

// By node: the bytes of all blocks of its ranks.
PoolVector<std::size_t> bytes_of_nodes(const Plan& plan, std::size_t block) {
  PoolVector<std::size_t> bytes;
  for (int node = 0; node < plan.nodes(); ++node)
    bytes.push_back(plan.members(node).size() * block);
  return bytes;
}

bool in_stages(const Plan& plan) {
  return plan.nodes() > 1 && plan.staged();
}

// At the root the blocks arrive packed in `all`, and are then copied to their places. In place,
// `mine` is into[root], and the last copy does nothing.
Task short_gather(Collective& op, Items mine, Spread into, int root) {
  const Plan& plan = plan_of(op.comm());
  const std::size_t block = length(mine);
  const bool rooted = op.comm().rank() == root;
  const Scratch all(rooted ? block * static_cast<std::size_t>(op.comm().size()) : 0);
  const std::byte* from = all.data();
  const auto place = [&](int rank) {
    if (rank != root) copy(op, bytes_at(from, block), into[rank]);
    from += block;
  };

  if (in_stages(plan)) {
    const Hierarchy hierarchy(op, root);
    const PoolVector<std::size_t> nodes = bytes_of_nodes(plan, block);
    const Scratch node(hierarchy.is_leader() ? nodes[static_cast<std::size_t>(plan.my_node())] : 0);
    co_await tree_gather(hierarchy.local, mine, {block}, node.data(), hierarchy.local_leader);
    if (hierarchy.is_leader())
      co_await tree_gather(hierarchy.leaders, bytes_at(node.data(), node.size()), {0, nodes.data()},
                           all.data(), hierarchy.root);
    if (rooted) for_each_place(hierarchy, plan, place);
  } else {
    const Subgroup subgroup = all_ranks(op);
    co_await tree_gather(subgroup, mine, {block}, all.data(), root);
    if (rooted)
      for (int i = 0; i < subgroup.size; ++i) place(index_of_place(subgroup, root, i));
  }
  if (rooted) copy(op, mine, into[root]);
}

// At the root the blocks are packed into `all` first. In place, the root's own block must not be
// written, as that memory may be read-only: so `mine` becomes empty.
Task short_scatter(Collective& op, Spread from, Items mine, int root) {
  const Plan& plan = plan_of(op.comm());
  const std::size_t block = length(mine);
  const bool rooted = op.comm().rank() == root;
  if (rooted && mine.data == from[root].data && mine.type == from[root].type) mine = nothing_at();
  const Scratch all(rooted ? block * static_cast<std::size_t>(op.comm().size()) : 0);
  std::byte* to = all.data();
  const auto place = [&](int rank) {
    copy(op, from[rank], bytes_at(to, block));
    to += block;
  };

  if (in_stages(plan)) {
    const Hierarchy hierarchy(op, root);
    const PoolVector<std::size_t> nodes = bytes_of_nodes(plan, block);
    const Scratch node(hierarchy.is_leader() ? nodes[static_cast<std::size_t>(plan.my_node())] : 0);
    if (rooted) for_each_place(hierarchy, plan, place);
    if (hierarchy.is_leader())
      co_await tree_scatter(hierarchy.leaders, all.data(), {0, nodes.data()},
                            bytes_at(node.data(), node.size()), hierarchy.root);
    co_await tree_scatter(hierarchy.local, node.data(), {block}, mine, hierarchy.local_leader);
  } else {
    const Subgroup subgroup = all_ranks(op);
    if (rooted)
      for (int i = 0; i < subgroup.size; ++i) place(index_of_place(subgroup, root, i));
    co_await tree_scatter(subgroup, all.data(), {block}, mine, root);
  }
}

Task direct_gather(Collective& op, Items mine, Spread into, int root) {
  Pending pending(op);
  if (op.comm().rank() == root) {
    for (int rank = 0; rank < op.comm().size(); ++rank)
      if (rank != root) pending.add(op.receive(rank, into[rank]));
    copy(op, mine, into[root]);
  } else {
    pending.add(op.send(root, mine));
  }
  co_await pending;
}

Task direct_scatter(Collective& op, Spread from, Items mine, int root) {
  Pending pending(op);
  if (op.comm().rank() == root) {
    for (int rank = 0; rank < op.comm().size(); ++rank)
      if (rank != root) pending.add(op.send(rank, from[rank]));
    copy(op, from[root], mine);
  } else {
    pending.add(op.receive(root, mine));
  }
  co_await pending;
}

// A tree saves messages at the root, and costs copies and waits. In an oversubscribed subgroup the
// tree would be a star, which only costs copies.
bool by_tree(Comm& comm, std::size_t block) {
  const Plan& plan = plan_of(comm);
  return block <= kTreeGather && comm.size() > 2 && !in_one_step(comm) &&
         (in_stages(plan) || !plan.staged());
}

// The argument that names data for all ranks. It is significant at the root only; elsewhere an
// empty Spread takes its place, which is never used.
template <class Many>
Spread at_root(Collective& op, const Many& many, int root) {
  const Comm& comm = op.comm();
  if (root == (comm.inter() ? MPI_ROOT : comm.rank())) return Spread(op, many);
  return Spread(op, Part{nullptr, 0, MPI_BYTE});
}
// The argument that names this rank's block. In an intercommunicator it is not significant in the
// root's group, where `root` is negative (MPI_ROOT or MPI_PROC_NULL).
Items mine_of(Collective& op, const Part& part, const Spread& many, int root) {
  if (root < 0) return nothing_at();
  return part.data == MPI_IN_PLACE ? many[root] : op.items(part);
}

template <class Many>
Ref<Request> start_gathering(Comm& comm, const Part& from, const Many& into, int root,
                             bool all_know_lengths) {
  auto op =
      make<Collective>(comm, all_know_lengths ? CollectiveKind::gather : CollectiveKind::gatherv);
  const Spread many = at_root(*op, into, root);
  const Items mine = mine_of(*op, from, many, root);
  if (comm.inter()) return op->run(inter_gather(*op, mine, many, root));
  if (all_know_lengths && by_tree(comm, length(mine)))
    return op->run(short_gather(*op, mine, many, root));
  op->take_long_form();
  return op->run(direct_gather(*op, mine, many, root));
}

template <class Many>
Ref<Request> start_scattering(Comm& comm, const Many& from, const Part& into, int root,
                              bool all_know_lengths) {
  auto op =
      make<Collective>(comm, all_know_lengths ? CollectiveKind::scatter : CollectiveKind::scatterv);
  const Spread many = at_root(*op, from, root);
  const Items mine = mine_of(*op, into, many, root);
  if (comm.inter()) return op->run(inter_scatter(*op, many, mine, root));
  if (all_know_lengths && by_tree(comm, length(mine)))
    return op->run(short_scatter(*op, many, mine, root));
  op->take_long_form();
  return op->run(direct_scatter(*op, many, mine, root));
}

}  // namespace

Ref<Request> start_gather(Comm& comm, const Part& from, const Part& into, int root) {
  return start_gathering(comm, from, into, root, true);
}

Ref<Request> start_scatter(Comm& comm, const Part& from, const Part& into, int root) {
  return start_scattering(comm, from, into, root, true);
}

// The v-forms are flat at any size: only the root knows the counts, so no rank on the way could
// allocate room for the blocks that pass through it.
Ref<Request> start_gatherv(Comm& comm, const Part& from, const Parts& into, int root) {
  return start_gathering(comm, from, into, root, false);
}

Ref<Request> start_scatterv(Comm& comm, const Parts& from, const Part& into, int root) {
  return start_scattering(comm, from, into, root, false);
}

}  // namespace viaduct::mpi
