// Collectives between two groups of different sizes (MPI 5.0, section 6.2.3): roots in either
// group, results of the other group's data.
#include <numeric>

#include "buffers.hpp"

using namespace collective;

namespace {

struct Groups {
  explicit Groups(int first_size) : first(job::rank() < first_size) {
    MPI_Comm local;
    MPI_Comm_split(MPI_COMM_WORLD, first, job::rank(), &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, first ? first_size : 0, 1, &comm);
    MPI_Comm_free(&local);
    me = rank_in(comm);
    size = size_of(comm);
    MPI_Comm_remote_size(comm, &remote);
  }
  ~Groups() { MPI_Comm_free(&comm); }

  // What a process says of itself and what it hears of one in the other group.
  int mine(int to, int i) const { return value(first ? me : 100 + me, to, i) % 100000; }
  int theirs(int from, int i) const { return value(first ? 100 + from : from, me, i) % 100000; }
  int theirs(int from, int to, int i) const {
    return value(first ? 100 + from : from, to, i) % 100000;
  }
  int sum_of_theirs(int i) const {
    int sum = 0;
    for (int from = 0; from < remote; ++from) sum += theirs(from, 0, i);
    return sum;
  }
  // The argument root, when that rank of the first (or second) group is the root.
  int root(bool in_first, int rank) const {
    if (first != in_first) return rank;
    return rank == me ? MPI_ROOT : MPI_PROC_NULL;
  }

  bool first;
  MPI_Comm comm;
  int me, size, remote;
};

constexpr int kSizes[] = {0, 1, 100, 5000};

template <class Check>
void check_items(int n, const std::vector<int>& data, int at, Check expected) {
  for (int i = 0; i < n; ++i) CHECK_EQ(data[static_cast<std::size_t>(at + i)], expected(i));
}

void rooted(const Groups& g, bool nb, int n, bool in_first, int rank) {
  const int root = g.root(in_first, rank);
  const bool is_root = root == MPI_ROOT, takes_part = root != MPI_PROC_NULL;
  const auto room = static_cast<std::size_t>(n * std::max(g.remote, 1));
  // Nothing is significant for those beside the root.
  const MPI_Datatype type = takes_part ? MPI_INT : MPI_DATATYPE_NULL;
  const auto mine = [&](int to, int i) { return g.mine(to, i); };

  std::vector<int> data(room, -1);
  for (int i = 0; is_root && i < n; ++i) data[static_cast<std::size_t>(i)] = mine(0, i);
  CHECK_EQ(COLLECTIVE(nb, bcast, Bcast, takes_part ? data.data() : nullptr, n, type, root, g.comm),
           MPI_SUCCESS);
  if (root >= 0) check_items(n, data, 0, [&](int i) { return g.theirs(rank, 0, i); });

  std::vector<int> own(static_cast<std::size_t>(n)), all(room, -1);
  for (int i = 0; i < n; ++i) own[static_cast<std::size_t>(i)] = mine(rank, i);
  CHECK_EQ(COLLECTIVE(nb, gather, Gather, own.data(), n, root >= 0 ? type : MPI_DATATYPE_NULL,
                      all.data(), n, is_root ? type : MPI_DATATYPE_NULL, root, g.comm),
           MPI_SUCCESS);
  for (int from = 0; is_root && from < g.remote; ++from)
    check_items(n, all, from * n, [&](int i) { return g.theirs(from, rank, i); });

  std::vector<int> out(room), in(static_cast<std::size_t>(n), -1);
  for (int to = 0; is_root && to < g.remote; ++to)
    for (int i = 0; i < n; ++i) out[static_cast<std::size_t>(to * n + i)] = mine(to, i);
  CHECK_EQ(COLLECTIVE(nb, scatter, Scatter, out.data(), n, is_root ? type : MPI_DATATYPE_NULL,
                      in.data(), n, root >= 0 ? type : MPI_DATATYPE_NULL, root, g.comm),
           MPI_SUCCESS);
  if (root >= 0) check_items(n, in, 0, [&](int i) { return g.theirs(rank, i); });

  // The v-forms, with a gap of one between the parts.
  std::vector<int> counts(static_cast<std::size_t>(g.remote), n), places(counts.size());
  for (std::size_t k = 0; k < places.size(); ++k) places[k] = static_cast<int>(k) * (n + 1);
  std::vector<int> spread(room + places.size(), -1);
  CHECK_EQ(COLLECTIVE(nb, gatherv, Gatherv, own.data(), n, type, spread.data(), counts.data(),
                      places.data(), type, root, g.comm),
           MPI_SUCCESS);
  for (int from = 0; is_root && from < g.remote; ++from)
    check_items(n, spread, from * (n + 1), [&](int i) { return g.theirs(from, rank, i); });
  for (int to = 0; is_root && to < g.remote; ++to)
    for (int i = 0; i < n; ++i) spread[static_cast<std::size_t>(to * (n + 1) + i)] = mine(to, i);
  std::fill(in.begin(), in.end(), -1);
  CHECK_EQ(COLLECTIVE(nb, scatterv, Scatterv, spread.data(), counts.data(), places.data(), type,
                      in.data(), n, type, root, g.comm),
           MPI_SUCCESS);
  if (root >= 0) check_items(n, in, 0, [&](int i) { return g.theirs(rank, i); });

  for (int i = 0; i < n; ++i) own[static_cast<std::size_t>(i)] = mine(0, i);
  std::vector<int> sum(static_cast<std::size_t>(n), -1);
  CHECK_EQ(COLLECTIVE(nb, reduce, Reduce, root >= 0 ? own.data() : nullptr,
                      is_root ? sum.data() : nullptr, n, type, takes_part ? MPI_SUM : MPI_OP_NULL,
                      root, g.comm),
           MPI_SUCCESS);
  if (is_root) check_items(n, sum, 0, [&](int i) { return g.sum_of_theirs(i); });
}

void symmetric(const Groups& g, bool nb, int n) {
  const auto room = static_cast<std::size_t>(n * g.remote);
  std::vector<int> own, all(room, -1);
  for (int i = 0; i < n; ++i) own.push_back(g.mine(0, i));
  CHECK_EQ(COLLECTIVE(nb, barrier, Barrier, g.comm), MPI_SUCCESS);
  CHECK_EQ(
      COLLECTIVE(nb, allgather, Allgather, own.data(), n, MPI_INT, all.data(), n, MPI_INT, g.comm),
      MPI_SUCCESS);
  for (int from = 0; from < g.remote; ++from)
    check_items(n, all, from * n, [&](int i) { return g.theirs(from, 0, i); });

  std::vector<int> counts(static_cast<std::size_t>(g.remote), n), places(counts.size());
  for (std::size_t k = 0; k < places.size(); ++k) places[k] = static_cast<int>(k) * n;
  std::fill(all.begin(), all.end(), -1);
  CHECK_EQ(COLLECTIVE(nb, allgatherv, Allgatherv, own.data(), n, MPI_INT, all.data(), counts.data(),
                      places.data(), MPI_INT, g.comm),
           MPI_SUCCESS);
  for (int from = 0; from < g.remote; ++from)
    check_items(n, all, from * n, [&](int i) { return g.theirs(from, 0, i); });

  std::vector<int> out;
  for (int to = 0; to < g.remote; ++to)
    for (int i = 0; i < n; ++i) out.push_back(g.mine(to, i));
  const auto check_all = [&] {
    for (int from = 0; from < g.remote; ++from)
      check_items(n, all, from * n, [&](int i) { return g.theirs(from, i); });
    std::fill(all.begin(), all.end(), -1);
  };
  CHECK_EQ(
      COLLECTIVE(nb, alltoall, Alltoall, out.data(), n, MPI_INT, all.data(), n, MPI_INT, g.comm),
      MPI_SUCCESS);
  check_all();
  CHECK_EQ(COLLECTIVE(nb, alltoallv, Alltoallv, out.data(), counts.data(), places.data(), MPI_INT,
                      all.data(), counts.data(), places.data(), MPI_INT, g.comm),
           MPI_SUCCESS);
  check_all();
  const std::vector<MPI_Datatype> types(counts.size(), MPI_INT);
  for (int& place : places) place *= static_cast<int>(sizeof(int));
  CHECK_EQ(COLLECTIVE(nb, alltoallw, Alltoallw, out.data(), counts.data(), places.data(),
                      types.data(), all.data(), counts.data(), places.data(), types.data(), g.comm),
           MPI_SUCCESS);
  check_all();
}

void reductions(const Groups& g, bool nb, int n) {
  std::vector<int> own, sum(static_cast<std::size_t>(n), -1);
  for (int i = 0; i < n; ++i) own.push_back(g.mine(0, i));
  CHECK_EQ(
      COLLECTIVE(nb, allreduce, Allreduce, own.data(), sum.data(), n, MPI_INT, MPI_SUM, g.comm),
      MPI_SUCCESS);
  check_items(n, sum, 0, [&](int i) { return g.sum_of_theirs(i); });

  // Both groups reduce the same number of items, each spread over the ranks of the other one.
  const int each = n * g.remote, total = n * g.remote * g.size;
  std::vector<int> whole, part(static_cast<std::size_t>(each), -1);
  for (int i = 0; i < total; ++i) whole.push_back(g.mine(0, i));
  const auto check_part = [&](int first, int count) {
    check_items(count, part, 0, [&](int i) { return g.sum_of_theirs(first + i); });
    std::fill(part.begin(), part.end(), -1);
  };
  CHECK_EQ(COLLECTIVE(nb, reduce_scatter_block, Reduce_scatter_block, whole.data(), part.data(),
                      each, MPI_INT, MPI_SUM, g.comm),
           MPI_SUCCESS);
  check_part(g.me * each, each);
  // The first rank takes one item of each other one.
  std::vector<int> counts(static_cast<std::size_t>(g.size), n > 0 ? each - 1 : 0);
  counts[0] = n > 0 ? each + g.size - 1 : 0;
  part.resize(static_cast<std::size_t>(each + g.size));
  const int first = std::accumulate(counts.begin(), counts.begin() + g.me, 0);
  CHECK_EQ(COLLECTIVE(nb, reduce_scatter, Reduce_scatter, whole.data(), part.data(), counts.data(),
                      MPI_INT, MPI_SUM, g.comm),
           MPI_SUCCESS);
  check_part(first, counts[static_cast<std::size_t>(g.me)]);
}

// A group that is late has nothing to do with how many operations it has completed among itself.
void late_group(int first_size) {
  const bool first = job::rank() < first_size;
  MPI_Comm local, inter;
  MPI_Comm_split(MPI_COMM_WORLD, first, job::rank(), &local);
  MPI_Comm_set_errhandler(local, MPI_ERRORS_RETURN);
  if (!first) {
    for (int i = 0; i < 5; ++i) MPI_Barrier(local);
    // Long enough for the others to ask what has become of it, and able to answer.
    for (const double end = MPI_Wtime() + 0.2; MPI_Wtime() < end;) {
      int flag;
      MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
  }
  CHECK_EQ(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, first ? first_size : 0, 1, &inter),
           MPI_SUCCESS);
  if (inter != MPI_COMM_NULL) MPI_Comm_free(&inter);
  MPI_Comm_free(&local);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  for (const int first_size : {1, job::size() / 2}) {
    if (first_size < 1 || first_size >= job::size()) continue;
    const std::string name = std::to_string(first_size) + " and " +
                             std::to_string(job::size() - first_size) + " processes: ";
    job::section(name + "made when one group is late");
    late_group(first_size);
    const Groups g(first_size);
    job::section(name + "to and from one root");
    for (const bool nonblocking : {false, true})
      for (const int n : kSizes)
        for (const bool in_first : {true, false})
          for (int rank = 0; rank < (in_first == g.first ? g.size : g.remote); ++rank)
            rooted(g, nonblocking, n, in_first, rank);
    job::section(name + "each to each");
    for (const bool nonblocking : {false, true})
      for (const int n : kSizes) symmetric(g, nonblocking, n);
    job::section(name + "reductions");
    for (const bool nonblocking : {false, true})
      for (const int n : kSizes) reductions(g, nonblocking, n);
  }
  return job::report();
}
