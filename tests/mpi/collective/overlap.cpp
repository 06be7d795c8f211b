// Many nonblocking collectives at once, on several communicators, with point-to-point messages in
// between, completed in an order that differs from rank to rank.
#include <algorithm>
#include <memory>
#include <random>

#include "buffers.hpp"

using namespace collective;

namespace {

// One operation with its buffers, of a kind that all ranks choose alike.
struct Operation {
  Operation(MPI_Comm comm, int kind, int root, int n, int serial)
      : kind(kind),
        root(root),
        n(n),
        serial(serial),
        me(rank_in(comm)),
        size(size_of(comm)),
        out(static_cast<std::size_t>(n * size)),
        in(static_cast<std::size_t>(n * size), -1) {
    for (int to = 0; to < size; ++to)
      for (int i = 0; i < n; ++i) out[static_cast<std::size_t>(to * n + i)] = item(me, to, i);
    start(comm);
  }

  int item(int from, int to, int i) const { return value(from, to, i) % 10000 + serial; }
  int sum(int to, int i) const {
    int s = 0;
    for (int from = 0; from < size; ++from) s += item(from, to, i);
    return s;
  }
  void start(MPI_Comm comm) {
    void *o = out.data(), *i = in.data();
    switch (kind) {
      case 0: MPI_Ibarrier(comm, &request); break;
      case 1: MPI_Ibcast(me == root ? o : i, n, MPI_INT, root, comm, &request); break;
      case 2: MPI_Igather(o, n, MPI_INT, i, n, MPI_INT, root, comm, &request); break;
      case 3: MPI_Iscatter(o, n, MPI_INT, i, n, MPI_INT, root, comm, &request); break;
      case 4: MPI_Iallgather(o, n, MPI_INT, i, n, MPI_INT, comm, &request); break;
      case 5: MPI_Ialltoall(o, n, MPI_INT, i, n, MPI_INT, comm, &request); break;
      case 6: MPI_Ireduce(o, i, n, MPI_INT, MPI_SUM, root, comm, &request); break;
      case 7: MPI_Iallreduce(o, i, n, MPI_INT, MPI_SUM, comm, &request); break;
      default: MPI_Ireduce_scatter_block(o, i, n, MPI_INT, MPI_SUM, comm, &request);
    }
  }
  bool right() const {
    const auto holds = [&](int at, auto expected) {
      for (int i = 0; i < n; ++i)
        if (in[static_cast<std::size_t>(at * n + i)] != expected(i)) return false;
      return true;
    };
    switch (kind) {
      case 0: return true;
      case 1: return me == root || holds(0, [&](int i) { return item(root, 0, i); });
      case 3: return holds(0, [&](int i) { return item(root, me, i); });
      case 6: return me != root || holds(0, [&](int i) { return sum(0, i); });
      case 7: return holds(0, [&](int i) { return sum(0, i); });
      case 8: return holds(0, [&](int i) { return sum(me, i); });
      default: break;
    }
    if (kind == 2 && me != root) return true;
    for (int from = 0; from < size; ++from)
      if (!holds(from, [&](int i) { return item(from, kind == 5 ? me : 0, i); })) return false;
    return true;
  }

  static constexpr int kKinds = 9;
  int kind, root, n, serial, me, size;
  std::vector<int> out, in;
  MPI_Request request = MPI_REQUEST_NULL;
};

void round(const std::vector<MPI_Comm>& comms, unsigned seed) {
  constexpr int kOperations = 40;
  constexpr int kSizes[] = {0, 1, 3, 100, 3000, 9000};
  std::mt19937 same(seed), own(seed + static_cast<unsigned>(job::rank()) + 1);
  std::vector<std::unique_ptr<Operation>> operations;
  for (int k = 0; k < kOperations; ++k) {
    const MPI_Comm comm = comms[same() % comms.size()];
    const int kind = static_cast<int>(same() % Operation::kKinds);
    const int root = static_cast<int>(same()) & 0xffff, n = kSizes[same() % std::size(kSizes)];
    operations.push_back(std::make_unique<Operation>(comm, kind, root % size_of(comm), n, k));
  }

  // A message that has to get past all of them.
  const int right = (job::rank() + 1) % job::size();
  int from_left = -1;
  MPI_Sendrecv(&seed, 1, MPI_INT, right, 3, &from_left, 1, MPI_INT, MPI_ANY_SOURCE, 3,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQ(from_left, static_cast<int>(seed));

  std::shuffle(operations.begin(), operations.end(), own);
  for (std::size_t k = 0; k < operations.size(); ++k) {
    MPI_Request& request = operations[k]->request;
    if (own() % 2) {
      for (int done = 0; !done;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    } else {
      MPI_Status status;
      MPI_Wait(&request, &status);
    }
    CHECK(request == MPI_REQUEST_NULL);
    CHECK(operations[k]->right());
  }
}

// A blocking collective makes progress on those that were started before.
void blocking_among_nonblocking() {
  const int n = job::size();
  std::vector<int> all(static_cast<std::size_t>(n));
  const int mine = job::rank();
  int sum = 0;
  MPI_Request requests[2];
  MPI_Iallgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD, &requests[0]);
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK_EQ(sum, n * (n - 1) / 2);
  for (int rank = 0; rank < n; ++rank) CHECK_EQ(all[static_cast<std::size_t>(rank)], rank);
}

// Nobody leaves a barrier before the last one has come.
void barriers_hold() {
  const int n = job::size();
  for (int late = 0; late < n; ++late) {
    int come = 0;
    if (job::rank() == late) {
      const double until = MPI_Wtime() + 0.02;
      while (MPI_Wtime() < until) {
      }
      for (int to = 0; to < n; ++to)
        if (to != late) MPI_Send(&late, 1, MPI_INT, to, 4, MPI_COMM_WORLD);
      MPI_Barrier(MPI_COMM_WORLD);
    } else {
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Iprobe(late, 4, MPI_COMM_WORLD, &come, MPI_STATUS_IGNORE);
      CHECK(come);
      MPI_Recv(&come, 1, MPI_INT, late, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }

    // The nonblocking one is not complete as long as one has not started it.
    MPI_Request request;
    int done = 0;
    if (job::rank() != late) {
      MPI_Ibarrier(MPI_COMM_WORLD, &request);
      for (int i = 0; i < 200; ++i) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      CHECK(!done);
      MPI_Send(&late, 1, MPI_INT, late, 5, MPI_COMM_WORLD);
    } else {
      for (int i = 1; i < n; ++i)
        MPI_Recv(&come, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Ibarrier(MPI_COMM_WORLD, &request);
    }
    if (!done) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const Communicators communicators;
    std::vector<MPI_Comm> comms = communicators.all();
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, job::rank() % 2, 0, &half);
    // `half` has different sizes on both sides: what all ranks choose alike is by its own ranks.
    comms.push_back(half);
    job::section("a barrier holds everybody");
    barriers_hold();
    job::section("blocking collectives among nonblocking ones");
    blocking_among_nonblocking();
    job::section("overlapping collectives, completed in any order");
    for (unsigned seed = 1; seed <= 8; ++seed) round(comms, seed);
    MPI_Comm_free(&half);
  }
  return job::report();
}
