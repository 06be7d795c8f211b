// Buffers that share memory and ranks that disagree about an operation: an error of the right
// class, nobody waits for ever, and what comes after works.
#include <malloc.h>

#include <algorithm>
#include <numeric>

#include "buffers.hpp"

using namespace collective;

namespace {

int rank() {
  return job::rank();
}
int size() {
  return job::size();
}

// All ranks go on together, whatever the one before was.
void still_works() {
  int mine = rank(), sum = -1;
  CHECK_EQ(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
  CHECK_EQ(sum, size() * (size() - 1) / 2);
}

// ---- memory that is both read and written ------------------------------------------------------

// A buffer of `n` ints for each rank, and this rank's own place in it.
struct Shared {
  explicit Shared(int n)
      : n(n),
        all(static_cast<std::size_t>(n * size() + n)),
        counts(static_cast<std::size_t>(size()), n),
        places(counts.size()),
        byte_places(counts.size()),
        types(counts.size(), MPI_INT) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      places[i] = static_cast<int>(i) * n;
      byte_places[i] = places[i] * static_cast<int>(sizeof(int));
    }
  }
  int* own() { return all.data() + rank() * n; }
  int* data() { return all.data(); }

  int n;
  std::vector<int> all, counts, places, byte_places;
  std::vector<MPI_Datatype> types;
};

void own_place(bool nb, int n) {
  Shared s(n);
  const int* const counts = s.counts.data();
  const int* const places = s.places.data();
  CHECK_CLASS(COLLECTIVE(nb, allgather, Allgather, s.own(), n, MPI_INT, s.data(), n, MPI_INT,
                         MPI_COMM_WORLD),
              MPI_ERR_BUFFER);
  CHECK_CLASS(COLLECTIVE(nb, allgatherv, Allgatherv, s.own(), n, MPI_INT, s.data(), counts, places,
                         MPI_INT, MPI_COMM_WORLD),
              MPI_ERR_BUFFER);
  // One int of all that is sent comes back to where it was.
  int* const last = s.data() + (size() - 1) * n + n - 1;
  CHECK_CLASS(
      COLLECTIVE(nb, alltoall, Alltoall, s.data(), n, MPI_INT, last, n, MPI_INT, MPI_COMM_WORLD),
      MPI_ERR_BUFFER);
  CHECK_CLASS(COLLECTIVE(nb, alltoallv, Alltoallv, s.data(), counts, places, MPI_INT, last, counts,
                         places, MPI_INT, MPI_COMM_WORLD),
              MPI_ERR_BUFFER);
  CHECK_CLASS(
      COLLECTIVE(nb, alltoallw, Alltoallw, s.data(), counts, s.byte_places.data(), s.types.data(),
                 last, counts, s.byte_places.data(), s.types.data(), MPI_COMM_WORLD),
      MPI_ERR_BUFFER);
  int* const next = s.data() + n - 1;
  CHECK_CLASS(
      COLLECTIVE(nb, allreduce, Allreduce, s.data(), next, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
      MPI_ERR_BUFFER);
  CHECK_CLASS(COLLECTIVE(nb, reduce_scatter, Reduce_scatter, s.data(), last, counts, MPI_INT,
                         MPI_SUM, MPI_COMM_WORLD),
              MPI_ERR_BUFFER);
  CHECK_CLASS(COLLECTIVE(nb, reduce_scatter_block, Reduce_scatter_block, s.data(), last, n, MPI_INT,
                         MPI_SUM, MPI_COMM_WORLD),
              MPI_ERR_BUFFER);
  CHECK_CLASS(COLLECTIVE(nb, scan, Scan, s.data(), next, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
              MPI_ERR_BUFFER);
  still_works();
}

// Only the root has both buffers; the others may have sent theirs before it says so.
void own_place_at_the_root(bool nb, int n) {
  Shared s(n);
  const auto check = [&](int code) {
    if (rank() == size() - 1 || code != MPI_SUCCESS) CHECK_CLASS(code, MPI_ERR_BUFFER);
    still_works();
  };
  const int root = size() - 1;
  check(COLLECTIVE(nb, gather, Gather, s.own(), n, MPI_INT, s.data(), n, MPI_INT, root,
                   MPI_COMM_WORLD));
  check(COLLECTIVE(nb, gatherv, Gatherv, s.own(), n, MPI_INT, s.data(), s.counts.data(),
                   s.places.data(), MPI_INT, root, MPI_COMM_WORLD));
  check(COLLECTIVE(nb, scatter, Scatter, s.data(), n, MPI_INT, s.own(), n, MPI_INT, root,
                   MPI_COMM_WORLD));
  check(COLLECTIVE(nb, scatterv, Scatterv, s.data(), s.counts.data(), s.places.data(), MPI_INT,
                   s.own(), n, MPI_INT, root, MPI_COMM_WORLD));
  check(COLLECTIVE(nb, reduce, Reduce, s.data(), s.data() + n - 1, n, MPI_INT, MPI_SUM, root,
                   MPI_COMM_WORLD));
}

// One rank makes the mistake, and the others depend on it.
void one_rank_only(bool nb, int n) {
  for (int wrong = 0; wrong < size(); ++wrong) {
    Shared s(n), apart(n);
    const int* const from = rank() == wrong ? s.own() : apart.data();
    CHECK_CLASS(COLLECTIVE(nb, allgather, Allgather, from, n, MPI_INT, s.data(), n, MPI_INT,
                           MPI_COMM_WORLD),
                MPI_ERR_BUFFER);
    CHECK_CLASS(COLLECTIVE(nb, allgatherv, Allgatherv, from, n, MPI_INT, s.data(), s.counts.data(),
                           s.places.data(), MPI_INT, MPI_COMM_WORLD),
                MPI_ERR_BUFFER);
    const int* const all = rank() == wrong ? s.data() : apart.data();
    CHECK_CLASS(
        COLLECTIVE(nb, alltoall, Alltoall, all, n, MPI_INT, s.data(), n, MPI_INT, MPI_COMM_WORLD),
        MPI_ERR_BUFFER);
    CHECK_CLASS(
        COLLECTIVE(nb, allreduce, Allreduce, all, s.data(), n, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
        MPI_ERR_BUFFER);
    still_works();
  }
}

// What touches no byte twice is right, however close it is.
void close_together(bool nb) {
  constexpr int kRows = 10;
  MPI_Datatype ints, column;
  MPI_Type_vector(kRows, 1, 2, MPI_INT, &ints);
  MPI_Type_create_resized(ints, 0, 2 * kRows * sizeof(int), &column);
  MPI_Type_commit(&column);
  const auto n = static_cast<std::size_t>(2 * kRows * size());
  std::vector<int> both(n, rank());  // of each pair one is sent and the other received
  CHECK_EQ(COLLECTIVE(nb, alltoall, Alltoall, both.data(), 1, column, both.data() + 1, 1, column,
                      MPI_COMM_WORLD),
           MPI_SUCCESS);
  for (int from = 0; from < size(); ++from)
    CHECK_EQ(both[static_cast<std::size_t>(2 * kRows * from + 1)], from);
  CHECK_CLASS(COLLECTIVE(nb, alltoall, Alltoall, both.data(), 1, column, both.data(), 1, column,
                         MPI_COMM_WORLD),
              MPI_ERR_BUFFER);
  int pair[2] = {rank(), -1};
  CHECK_EQ(
      COLLECTIVE(nb, allreduce, Allreduce, &pair[0], &pair[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
      MPI_SUCCESS);
  CHECK_EQ(COLLECTIVE(nb, allreduce, Allreduce, pair, pair, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
           MPI_SUCCESS);
  Shared s(3);
  const std::vector<int> none(s.counts.size(), 0);
  CHECK_EQ(COLLECTIVE(nb, alltoallv, Alltoallv, s.own(), none.data(), none.data(), MPI_INT,
                      s.data(), none.data(), s.places.data(), MPI_INT, MPI_COMM_WORLD),
           MPI_SUCCESS);
  MPI_Type_free(&column);
  MPI_Type_free(&ints);
}

// ---- lengths that differ -----------------------------------------------------------------------

enum class Operation { bcast, gather, scatter, allgather, alltoall, reduce, allreduce, scan };

int run(bool nb, Operation operation, int bytes, int root, char* out, char* in) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  switch (operation) {
    case Operation::bcast: return COLLECTIVE(nb, bcast, Bcast, out, bytes, MPI_CHAR, root, comm);
    case Operation::gather:
      return COLLECTIVE(nb, gather, Gather, out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, root, comm);
    case Operation::scatter:
      return COLLECTIVE(nb, scatter, Scatter, out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, root,
                        comm);
    case Operation::allgather:
      return COLLECTIVE(nb, allgather, Allgather, out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, comm);
    case Operation::alltoall:
      return COLLECTIVE(nb, alltoall, Alltoall, out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, comm);
    case Operation::reduce:
      return COLLECTIVE(nb, reduce, Reduce, out, in, bytes, MPI_UINT8_T, MPI_BOR, root, comm);
    case Operation::allreduce:
      return COLLECTIVE(nb, allreduce, Allreduce, out, in, bytes, MPI_UINT8_T, MPI_BOR, comm);
    case Operation::scan: break;
  }
  return COLLECTIVE(nb, scan, Scan, out, in, bytes, MPI_UINT8_T, MPI_BOR, comm);
}

// One rank has `other` bytes, the rest `bytes`. Those that receive something else than they expect
// say so.
void one_length_differs(Operation operation, int bytes, int other) {
  const auto room =
      static_cast<std::size_t>(std::max(bytes, other)) * static_cast<unsigned>(size());
  std::vector<char> out(room), in(room);
  for (const bool nb : {false, true})
    for (const int root : {0, size() - 1})
      for (const int wrong : {0, size() / 2, size() - 1}) {
        const int mine = rank() == wrong ? other : bytes;
        const int code = run(nb, operation, mine, root, out.data(), in.data());
        if (code != MPI_SUCCESS) CHECK_CLASS(code, MPI_ERR_TRUNCATE);
        const int failed = code != MPI_SUCCESS;
        int any = 0;
        CHECK_EQ(MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD), MPI_SUCCESS);
        CHECK(any);
      }
}

// Pairs on both sides of every limit between algorithms; those of the long broadcast differ by
// whole segments, too.
void lengths_differ() {
  constexpr int k = 1024;
  constexpr std::pair<int, int> kPairs[] = {{4, 5},
                                            {4, 0},
                                            {100, 300},
                                            {1 * k, 4 * k},
                                            {3 * k, 3 * k + 1},
                                            {8 * k, 32 * k},
                                            {16 * k, 64 * k},
                                            {64 * k, 200 * k},
                                            {192 * k, 256 * k},
                                            {192 * k, 200 * k},
                                            {196 * k, 260 * k}};
  for (const auto& [bytes, other] : kPairs)
    for (int op = 0; op <= static_cast<int>(Operation::scan); ++op) {
      one_length_differs(static_cast<Operation>(op), bytes, other);
      one_length_differs(static_cast<Operation>(op), other, bytes);
    }
  still_works();
}

// The beginner's mistake: the root says how much comes in all.
void whole_count_at_the_root() {
  std::vector<int> all(static_cast<std::size_t>(size() * size() + size()));
  const int mine = 7;
  const int code = MPI_Gather(&mine, 1, MPI_INT, all.data(), size(), MPI_INT, 0, MPI_COMM_WORLD);
  if (rank() == 0 || code != MPI_SUCCESS) CHECK_CLASS(code, MPI_ERR_TRUNCATE);
  still_works();
}

// By messages, as a collective that works would have failed ones forgotten. A rank behind others
// has to remember what they say of operations to come.
void keep_in_step() {
  char none = 0;
  for (int other = 0; other < size(); ++other)
    MPI_Sendrecv(&none, 0, MPI_CHAR, other, 1, &none, 0, MPI_CHAR, other, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

// A program that goes on with its mistake: what is known of failed operations is forgotten again.
void mistakes_without_end() {
  constexpr int kOperations = 20'000;
  Shared s(1);
  const auto in_use = [] { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; };
  const std::size_t before = in_use();
  for (int i = 0; i < kOperations; ++i) {
    MPI_Allgather(s.own(), 1, MPI_INT, s.data(), 1, MPI_INT, MPI_COMM_WORLD);
    if (i % 100 == 0) keep_in_step();
  }
  const std::size_t after = in_use();
  CHECK(after - std::min(after, before) < 4 * kOperations);
  still_works();
}

// ---- different operations ----------------------------------------------------------------------

void different_operations(bool nb) {
  for (int other = 0; other < size(); ++other) {
    int data[2] = {1, 2};
    const int code = rank() == other ? COLLECTIVE(nb, barrier, Barrier, MPI_COMM_WORLD)
                                     : COLLECTIVE(nb, allreduce, Allreduce, &data[0], &data[1], 1,
                                                  MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_CLASS(code, MPI_ERR_OTHER);
    still_works();
  }
}

// Where early messages are not judged, a rank that waits sends status queries.
void groups_disagree(bool nb) {
  const bool first = rank() < size() / 2;
  MPI_Comm local, inter;
  MPI_Comm_split(MPI_COMM_WORLD, first, rank(), &local);
  MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, first ? size() / 2 : 0, 1, &inter);
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  int data[2] = {1, 2};
  CHECK_CLASS(
      first ? COLLECTIVE(nb, barrier, Barrier, inter)
            : COLLECTIVE(nb, allreduce, Allreduce, &data[0], &data[1], 1, MPI_INT, MPI_SUM, inter),
      MPI_ERR_OTHER);
  CHECK_EQ(MPI_Barrier(inter), MPI_SUCCESS);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&local);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (const bool nb : {false, true}) {
    const char* const how = nb ? "nonblocking" : "blocking";
    std::printf("# %s\n", how);
    job::section("buffers that share memory");
    for (const int n : {1, 600, 30'000}) {
      own_place(nb, n);
      own_place_at_the_root(nb, n);
      if (size() > 1) one_rank_only(nb, n);
    }
    close_together(nb);
    if (size() > 1) {
      job::section("different operations");
      different_operations(nb);
      groups_disagree(nb);
    }
  }
  job::section("mistakes without end leave no memory");
  mistakes_without_end();
  if (size() > 1) {
    job::section("lengths that differ");
    lengths_differ();
    whole_count_at_the_root();
  }
  return job::report();
}
