// Ranks that wait for ever, or end as they should not, for tests of what is said about them. The
// first argument tells how; it ends by itself after half a minute.
#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

int rank, size;

void receive_of(int source, int tag) {
  int value;
  MPI_Recv(&value, 1, MPI_INT, source, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Each waits for the next one.
void cycle() {
  receive_of((rank + 1) % size, 7);
}

// Rank 0 is in another operation than the others.
void mismatch() {
  rank == 0 ? receive_of(1, 9) : void(MPI_Barrier(MPI_COMM_WORLD));
}

void probe() {
  MPI_Status status;
  rank == 0 ? void(MPI_Probe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &status)) : void(::pause());
}

// A long message without a receive, an unexpected one, and a rank that is not in MPI.
void busy() {
  static char data[1 << 20];
  if (rank == 0) {
    int value = 1;
    MPI_Send(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    MPI_Send(data, sizeof data, MPI_CHAR, 1, 4, MPI_COMM_WORLD);
  } else if (rank == 1) {
    receive_of(0, 6);
  } else {
    for (int i = 0; i < 300; ++i) ::usleep(100'000);  // a signal ends one of them
  }
}

void poll() {
  int value, done = 0;
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, &request);
  while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

void on_signal(int) {
  static const char kText[] = "the program's own handler\n";
  static_cast<void>(!::write(1, kText, sizeof kText - 1));
}

// Enough messages for each kind of fault.
void talk() {
  for (int i = 0; i < 200; ++i) MPI_Barrier(MPI_COMM_WORLD);
}

// Long waits that are meant: two of them, each a second and a half.
void patient() {
  for (int i = 0; i < 2; ++i) {
    if (rank == 0) ::usleep(1'500'000);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

void leave() {
  if (rank == size - 1) {
    ::usleep(200'000);
    std::exit(0);
  }
  for (;;) MPI_Barrier(MPI_COMM_WORLD);
}

void die() {
  if (rank == size - 1) {
    ::usleep(200'000);
    std::raise(SIGSEGV);
  }
  for (;;) MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  ::alarm(30);
  if (how == "handler") std::signal(SIGUSR1, on_signal);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    std::puts("started");
    std::fflush(stdout);
  }
  if (how == "cycle" || how == "handler") cycle();
  if (how == "mismatch") mismatch();
  if (how == "probe") probe();
  if (how == "busy") busy();
  if (how == "poll") poll();
  if (how == "patient") patient();
  if (how == "talk") talk();
  if (how == "leave") leave();
  if (how == "die") die();
  MPI_Finalize();
  return 0;
}
