// Ranks of correct programs that are late, or far ahead of each other: nobody takes it for a
// mistake, however long others wait and ask.
#include <malloc.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>

#include "job.hpp"

namespace {

// Long enough for the others to ask what has become of an operation.
void be_late() {
  ::usleep(150'000);
}

// Rank `root` of the first group tells the second one something `n` times. The others of the first
// group have nothing to do with it: they are soon that many operations ahead.
void far_ahead(int n) {
  const bool first = job::rank() < job::size() - 1;
  MPI_Comm local, inter;
  MPI_Comm_split(MPI_COMM_WORLD, first, job::rank(), &local);
  MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, first ? job::size() - 1 : 0, 1, &inter);
  MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
  const int root = !first ? 0 : job::rank() == 0 ? MPI_ROOT : MPI_PROC_NULL;
  if (job::rank() == 0) be_late();
  int failed = 0;
  for (int i = 0; i < n; ++i) failed += MPI_Bcast(nullptr, 0, MPI_INT, root, inter) != MPI_SUCCESS;
  CHECK_EQ(failed, 0);
  CHECK_EQ(MPI_Barrier(inter), MPI_SUCCESS);
  const int mine = first ? 1 : 1000;
  int sum = -1;
  CHECK_EQ(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter), MPI_SUCCESS);
  CHECK_EQ(sum, first ? 1000 : job::size() - 1);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&local);
}

// The root is late, and has freed the communicator when it reads what the others have asked it.
void freed_before_it_is_asked() {
  constexpr int kBefore = 2, kRounds = 6;
  std::size_t before = 0;
  for (int i = 0; i < kBefore + kRounds; ++i) {
    if (i == kBefore) before = ::mallinfo2().uordblks;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int data = job::rank() == 0 ? i : -1;
    if (job::rank() == 0) be_late();
    CHECK_EQ(MPI_Bcast(&data, 1, MPI_INT, 0, comm), MPI_SUCCESS);
    CHECK_EQ(data, i);
    MPI_Comm_free(&comm);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  const std::size_t after = ::mallinfo2().uordblks;
  if (job::rank() == 0) CHECK_EQ(after - std::min(after, before) < 2000, true);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (const int n : {300'000, 524'288, 524'300}) {
    job::section("ranks that are " + std::to_string(n) + " operations ahead of others");
    far_ahead(n);
  }
  job::section("a communicator that is gone when others ask about it leaves no memory");
  freed_before_it_is_asked();
  return job::report();
}
