// MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw (MPI 5.0, section 6.8): short even blocks by
// Bruck's algorithm, or by one message between each two nodes; all else by a message for each
// block. `From` is a Spread, or Blocks for MPI_IN_PLACE; both have operator[] by rank.
#include <algorithm>
#include <bit>
#include <cstring>

#include "libmpi_lite/collective/algorithms/algorithms.hpp"
#include "libmpi_lite/collective/algorithms/inter.hpp"
#include "libmpi_lite/collective/algorithms/sizes.hpp"

namespace viaduct::mpi {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

// Sends a block to each of the ranks first..end-1 after this one. All their receives may ask to be
// written into (write protocol), and do so when they take part. As nothing ends before they do,
// those that have asked are served first, and the others have some time to ask.
template <class From>
void send_blocks(const Subgroup& subgroup, const From& from, int first, int end, Pending& pending) {
  PoolVector<int> left;
  for (int i = first; i < end; ++i) left.push_back(subgroup.after(subgroup.me, i));
  for (unsigned polls = 0; !left.empty(); ++polls) {
    const auto waits = [&](int to) {
      return polls < kPollsForRequests && subgroup.op().may_be_asked(to, length(from[at(to)]));
    };
    std::erase_if(left, [&](int to) {
      if (waits(to)) return false;
      pending.add(subgroup.send(to, from[at(to)]));
      return true;
    });
    if (!left.empty()) poll_channels();
  }
}

// A message for each block. In step i each rank sends to the rank i after it, so no two ranks send
// to the same rank in the same step. The window limits the messages under way. Its receives come
// first, as in MPI/MBCF (section 3.3), so that requests to write into them are early.
template <class From>
Task pairwise(Collective& op, From from, Spread into) {
  const Subgroup subgroup = all_ranks(op);
  Pending pending(op);
  for (int first = 1; first < subgroup.size; first += kExchangeWindow) {
    if (first > 1) co_await pending;
    const int end = std::min(first + kExchangeWindow, subgroup.size);
    for (int i = first; i < end; ++i) {
      const int source = subgroup.after(subgroup.me, -i);
      pending.add(subgroup.receive(source, into[source]));
    }
    send_blocks(subgroup, from, first, end, pending);
  }
  copy(op, from[at(subgroup.me)], into[subgroup.me]);
  co_await pending;
}

// Bruck: a block for the rank at distance d travels in hops, one for each bit that is set in d,
// together with all blocks that make the same hop. So a rank sends log2(size) messages in place of
// size, and each block is in several of them. `all` holds the blocks by their distance. The rank at
// distance d is the rank d after this one, or, if the size is a power of two, this rank XOR d: then
// those to which a hop goes are the same ranks as those from which it comes.
template <class From>
Task bruck(Collective& op, From from, Spread into, std::size_t block) {
  const Subgroup subgroup = all_ranks(op);
  const bool cube = std::has_single_bit(at(subgroup.size));
  const auto ahead = [&](int distance) {
    return cube ? subgroup.me ^ distance : subgroup.after(subgroup.me, distance);
  };
  const auto behind = [&](int distance) {
    return cube ? subgroup.me ^ distance : subgroup.after(subgroup.me, -distance);
  };
  const Scratch all(block * at(subgroup.size)), out(all.size()), in(all.size());
  for (int i = 0; i < subgroup.size; ++i)
    copy(op, from[at(ahead(i))], bytes_at(all.data() + at(i) * block, block));

  Pending pending(op);
  for (int distance = 1; distance < subgroup.size; distance *= 2) {
    std::size_t bytes = 0;
    for (int i = distance; i < subgroup.size; ++i) {
      if (!(i & distance)) continue;
      std::memcpy(out.data() + bytes, all.data() + at(i) * block, block);
      bytes += block;
    }
    pending.add(subgroup.send(ahead(distance), bytes_at(out.data(), bytes)));
    pending.add(subgroup.receive(behind(distance), bytes_at(in.data(), bytes)));
    co_await pending;
    bytes = 0;
    for (int i = distance; i < subgroup.size; ++i) {
      if (!(i & distance)) continue;
      std::memcpy(all.data() + at(i) * block, in.data() + bytes, block);
      bytes += block;
    }
  }
  for (int i = 0; i < subgroup.size; ++i)
    copy(op, bytes_at(all.data() + at(i) * block, block), into[behind(i)]);
}

// What the leader of a node does between collecting all blocks that its node sends, and handing out
// all blocks that its node receives. Within a row, blocks lie in node order: Plan::by_node().
//
//    collected: a row from each local rank, the blocks that it sends
//    out:       a piece for each node, in it for each local rank its blocks for that node's ranks
//    in:        a piece from each node, in it for each of its ranks the blocks for the local ranks
//    sorted:    a row for each local rank, the blocks that it receives
class NodeExchange {
 public:
  NodeExchange(const Hierarchy& hierarchy, const Plan& plan, std::size_t block)
      : hierarchy_(hierarchy),
        plan_(plan),
        block_(block),
        row_(block * plan.by_node().size()),
        locals_(at(hierarchy.local.size)),
        collected_(row_ * locals_),
        out_(collected_.size()),
        in_(collected_.size()),
        sorted_(collected_.size()) {}

  std::byte* collected() { return collected_.data(); }
  const std::byte* sorted() const { return sorted_.data(); }

  void sort_out() {  // collected to out
    for_each_node([&](std::size_t first, std::size_t count) {
      for (std::size_t local = 0; local < locals_; ++local)
        std::memcpy(out_.data() + (first * locals_ + local * count) * block_,
                    collected_.data() + local * row_ + first * block_, count * block_);
    });
  }
  Task exchange() {  // out to in
    Pending pending(hierarchy_.leaders.op());
    int node = 0;
    for_each_node([&](std::size_t first, std::size_t count) {
      const std::size_t from = first * locals_ * block_, bytes = count * locals_ * block_;
      if (node == hierarchy_.leaders.me) {
        std::memcpy(in_.data() + from, out_.data() + from, bytes);
      } else {
        pending.add(hierarchy_.leaders.receive(node, bytes_at(in_.data() + from, bytes)));
        pending.add(hierarchy_.leaders.send(node, bytes_at(out_.data() + from, bytes)));
      }
      ++node;
    });
    co_await pending;
  }
  void sort_in() {  // in to sorted
    for_each_node([&](std::size_t first, std::size_t count) {
      for (std::size_t source = first; source < first + count; ++source)
        for (std::size_t local = 0; local < locals_; ++local)
          std::memcpy(sorted_.data() + local * row_ + source * block_,
                      in_.data() + (source * locals_ + local) * block_, block_);
    });
  }

 private:
  // Calls each(first place in by_node(), number of ranks) for each node.
  template <class Each>
  void for_each_node(Each each) {
    std::size_t first = 0;
    for (int node = 0; node < plan_.nodes(); ++node) {
      const std::size_t count = plan_.members(node).size();
      each(first, count);
      first += count;
    }
  }

  const Hierarchy& hierarchy_;
  const Plan& plan_;
  // Bytes of a block, and of a row of blocks of all ranks; how many ranks are on this node.
  const std::size_t block_, row_, locals_;
  Scratch collected_, out_, in_, sorted_;
};

// One message between each two nodes, in place of one between each two ranks.
template <class From>
Task staged_alltoall(Collective& op, From from, Spread into, std::size_t block) {
  const Hierarchy hierarchy(op);
  const Plan& plan = plan_of(op.comm());
  const Scratch row(block * plan.by_node().size());
  std::byte* place = row.data();
  for (const int rank : plan.by_node()) {
    copy(op, from[at(rank)], bytes_at(place, block));
    place += block;
  }

  const Items mine = bytes_at(row.data(), row.size());
  if (hierarchy.is_leader()) {
    NodeExchange node(hierarchy, plan, block);
    co_await tree_gather(hierarchy.local, mine, {row.size()}, node.collected(), 0);
    node.sort_out();
    co_await node.exchange();
    node.sort_in();
    co_await tree_scatter(hierarchy.local, node.sorted(), {row.size()}, mine, 0);
  } else {
    co_await tree_gather(hierarchy.local, mine, {row.size()}, nullptr, 0);
    co_await tree_scatter(hierarchy.local, nullptr, {row.size()}, mine, 0);
  }

  const std::byte* arrived = row.data();
  for (const int rank : plan.by_node()) {
    copy(op, bytes_at(arrived, block), into[rank]);
    arrived += block;
  }
}

// A `block` of this length: blocks differ, and this rank knows only the lengths of its own. As it
// exceeds every limit, each block becomes a message.
constexpr std::size_t kUneven = ~std::size_t{0};

template <class From>
Task exchange(Collective& op, const From& from, const Spread& into, std::size_t block) {
  if (op.comm().size() > kFewRanks && block > 0 && block <= kShortAlltoall)
    return plan_of(op.comm()).staged() ? staged_alltoall(op, from, into, block)
                                       : bruck(op, from, into, block);
  op.take_long_form();
  return pairwise(op, from, into);
}

// Sends from a packed copy of all blocks, so that the buffer is free for the blocks that arrive.
Task alltoall_in_place(Collective& op, Spread into, std::size_t block) {
  const int size = op.comm().size();
  std::size_t total = 0;
  for (int rank = 0; rank < size; ++rank) total += length(into[rank]);
  const Scratch packed(total);
  Blocks from;
  std::byte* place = packed.data();
  for (int rank = 0; rank < size; ++rank) {
    pack(into[rank], place);
    from.push_back(bytes_at(place, length(into[rank])));
    place += length(into[rank]);
  }
  co_await exchange(op, from, into, block);
}

Ref<Request> run(Collective& op, const Spread* from, const Spread& into, std::size_t block) {
  if (!from) return op.run(alltoall_in_place(op, into, block));
  return op.run(op.comm().inter() ? inter_alltoall(op, *from, into)
                                  : exchange(op, *from, into, block));
}

// The v- and w-forms. They are flat at any size: each two ranks know how much they exchange, but no
// third rank does, so none could pass their blocks on.
template <class Many>
Ref<Request> start_uneven(Comm& comm, const Many& from, const Many& into) {
  auto op = make<Collective>(comm, CollectiveKind::alltoallv);
  const Spread to(*op, into);
  if (from.data == MPI_IN_PLACE) return run(*op, nullptr, to, kUneven);
  const Spread out(*op, from);
  return run(*op, &out, to, kUneven);
}

}  // namespace

Ref<Request> start_alltoall(Comm& comm, const Part& from, const Part& into) {
  auto op = make<Collective>(comm, CollectiveKind::alltoall);
  const Spread to(*op, into);
  const std::size_t block = length(to[0]);
  if (from.data == MPI_IN_PLACE) return run(*op, nullptr, to, block);
  const Spread out(*op, from);
  return run(*op, &out, to, block);
}

Ref<Request> start_alltoallv(Comm& comm, const Parts& from, const Parts& into) {
  return start_uneven(comm, from, into);
}

Ref<Request> start_alltoallw(Comm& comm, const MixedParts& from, const MixedParts& into) {
  return start_uneven(comm, from, into);
}

}  // namespace viaduct::mpi
