// Makes the error of its first argument with the default error handler. Never comes to its end.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

// A thread that reads from somebody who says nothing, and holds its stream meanwhile.
void start_reader() {
  static int ends[2];
  if (pipe(ends) != 0) std::abort();
  std::FILE* stream = fdopen(ends[0], "r");
  std::thread([stream] {
    char line[8];
    while (std::fgets(line, sizeof line, stream)) continue;
  }).detach();
  while (ftrylockfile(stream) == 0) {
    funlockfile(stream);
    std::this_thread::yield();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (!std::strcmp(what, "before-init")) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  }
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
  if (!std::strcmp(what, "after-finalize")) {
    MPI_Finalize();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  }
  if (rank == 1) {
    if (!std::strcmp(what, "world")) MPI_Send(nullptr, 0, MPI_INT, 7, 0, MPI_COMM_WORLD);
    if (!std::strcmp(what, "named")) {
      MPI_Comm_set_name(comm, "ocean");
      MPI_Send(nullptr, 0, MPI_INT, 0, -3, comm);
    }
    if (!std::strcmp(what, "unnamed")) MPI_Send(nullptr, -1, MPI_INT, 0, 0, comm);
    if (!std::strcmp(what, "no-comm")) MPI_Comm_size(MPI_COMM_NULL, &rank);
    if (!std::strcmp(what, "abort")) MPI_Abort(MPI_COMM_WORLD, 3);
    if (!std::strcmp(what, "abort-while-reading")) {
      start_reader();
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (!std::strcmp(what, "errors-abort")) {
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_ABORT);
      MPI_Send(nullptr, 0, MPI_INT, 99, 0, comm);
    }
  }
  MPI_Recv(nullptr, 0, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  std::puts("still alive");
  MPI_Finalize();
  return 0;
}
