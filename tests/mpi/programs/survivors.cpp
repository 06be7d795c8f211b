// Rank 1 dies or leaves, and rank 0 waits for it in one of several ways:
//
//   mpiexec -n 3 survivors announced|stranger|leaver|napper|probed|speaker|connecting
//   mpiexec -n 3 survivors elsewhere|busy|transfer
//   mpiexec -n N survivors collectives|constructors|windows   (N >= 3)
//
// Rank 0 says "noticed" or what it has seen instead. A launcher ends a job as soon as one of its
// processes has ended; so each is started by another one, which does not end by itself.
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kLong = 4 << 20;
constexpr int kNever = -1;  // of error classes: nothing happened

int word = 0;

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}
void tell(int to, int tag, MPI_Comm comm = MPI_COMM_WORLD) {
  MPI_Send(&word, 1, MPI_INT, to, tag, comm);
}
void hear(int from, int tag) {
  MPI_Recv(&word, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
int class_of(int code) {
  int error = MPI_SUCCESS;
  MPI_Error_class(code, &error);
  return error;
}
// The error class with which the request ends; `meanwhile` is done between two looks.
template <class Meanwhile>
int end_of(MPI_Request request, Meanwhile meanwhile) {
  const auto until = Clock::now() + 20s;
  while (Clock::now() < until) {
    int flag = 0;
    const int code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || flag) return class_of(code);
    meanwhile();
  }
  return kNever;
}
int end_of(MPI_Request request) {
  return end_of(request, [] {});
}
int end_of_receive(int from, int tag, MPI_Comm comm = MPI_COMM_WORLD) {
  MPI_Request request;
  const int code = MPI_Irecv(&word, 1, MPI_INT, from, tag, comm, &request);
  return code != MPI_SUCCESS ? class_of(code) : end_of(request);
}

int failures = 0;
void expect(int got, int wanted, const char* what) {
  if (got == wanted) return;
  ++failures;
  std::printf("%s: error class %d, expected %d\n", what, got, wanted);
}

// It has sent the RTS of a long message, whose receive comes when it is known to be dead.
void announced(int rank) {
  std::vector<char> data(kLong);
  MPI_Request request;
  if (rank == 1) {
    MPI_Isend(data.data(), kLong, MPI_CHAR, 0, 7, MPI_COMM_WORLD, &request);
    tell(0, 2);
    die();
  }
  hear(1, 2);
  expect(end_of_receive(1, 99), MPI_ERR_PROC_ABORTED, "a receive");
  MPI_Irecv(data.data(), kLong, MPI_CHAR, 1, 7, MPI_COMM_WORLD, &request);
  expect(end_of(request), MPI_ERR_PROC_ABORTED, "the receive of what was announced");
}

// It has never said anything, and nobody has spoken to it.
void stranger(int rank) {
  if (rank == 1) die();
  std::this_thread::sleep_for(300ms);
  expect(end_of_receive(1, 1), MPI_ERR_PROC_ABORTED, "a receive");
  expect(class_of(MPI_Send(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD)), MPI_ERR_PROC_ABORTED,
         "a send");
}

// It ends itself in the middle of the job.
void leaver(int rank) {
  if (rank == 1) {
    tell(0, 2);
    std::exit(0);
  }
  hear(1, 2);
  expect(end_of_receive(1, 99), MPI_ERR_PROC_ABORTED, "a receive");
}

// Rank 0 looks only now and then.
void napper(int rank) {
  if (rank == 1) {
    tell(0, 2);
    std::this_thread::sleep_for(300ms);
    die();
  }
  hear(1, 2);
  MPI_Request request;
  MPI_Irecv(&word, 1, MPI_INT, 1, 99, MPI_COMM_WORLD, &request);
  expect(end_of(request, [] { std::this_thread::sleep_for(10ms); }), MPI_ERR_PROC_ABORTED,
         "a receive");
}

// Nothing but probes waits for it.
void probed(int rank) {
  if (rank == 1) die();
  MPI_Message message;
  int flag = 0;
  expect(class_of(MPI_Probe(1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)), MPI_ERR_PROC_ABORTED,
         "a probe");
  expect(class_of(MPI_Mprobe(1, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE)),
         MPI_ERR_PROC_ABORTED, "a matched probe");
  expect(class_of(MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE)),
         MPI_ERR_PROC_ABORTED, "a nonblocking probe for anybody");
}

// What it has said is heard when it is dead already. No call may fail that has nothing to do with
// it.
void speaker(int rank) {
  MPI_Request request;
  if (rank == 1) {
    MPI_Issend(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
    die();
  }
  std::this_thread::sleep_for(300ms);
  expect(end_of_receive(1, 1), MPI_SUCCESS, "the receive of what it has sent");
  int flag = 0;
  expect(class_of(MPI_Iprobe(0, 5, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE)), MPI_SUCCESS,
         "a probe on MPI_COMM_SELF");
  expect(end_of_receive(1, 1), MPI_ERR_PROC_ABORTED, "another receive");
}

// A receive from anybody is none of its business in a communicator that it is not in.
void elsewhere(int rank) {
  MPI_Comm without;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 1, 0, &without);
  MPI_Comm_set_errhandler(without, MPI_ERRORS_RETURN);
  if (rank == 1) {
    tell(0, 1);
    std::this_thread::sleep_for(200ms);
    die();
  }
  if (rank == 2) {
    std::this_thread::sleep_for(1500ms);
    return tell(0, 1, without);
  }
  hear(1, 1);
  MPI_Request everybody;
  MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &everybody);
  expect(end_of_receive(MPI_ANY_SOURCE, 1, without), MPI_SUCCESS, "a receive without the dead");
  expect(end_of(everybody), MPI_ERR_PROC_ABORTED, "a receive from anybody");
  expect(end_of_receive(MPI_ANY_SOURCE, 3), MPI_ERR_PROC_ABORTED, "a later one");
}

// Rank 2 leaves rank 0 no idle moment.
void busy(int rank) {
  if (rank == 1) {
    tell(0, 1);
    die();
  }
  if (rank == 2)
    for (;;) tell(0, 2);
  hear(1, 1);
  MPI_Request request;
  int in = 0;
  MPI_Irecv(&in, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
  const int end = end_of(request, [] {
    for (int i = 0; i < 100; ++i) hear(2, 2);
  });
  expect(end, MPI_ERR_PROC_ABORTED, "a receive");
}

// It dies before it has answered rank 0, which may be the first to speak to it.
void connecting(int rank) {
  if (rank == 1) {
    std::this_thread::sleep_for(300ms);
    die();
  }
  MPI_Request request;
  const int code = MPI_Issend(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
  expect(code != MPI_SUCCESS ? class_of(code) : end_of(request), MPI_ERR_PROC_ABORTED, "a send");
}

// It dies in the middle of a long message, and ranks 0 and 2 still reach each other.
void transfer(int rank) {
  std::vector<char> data(kLong);
  if (rank == 1) {
    std::thread([] {
      std::this_thread::sleep_for(500ms);
      die();
    }).detach();
    for (;;) MPI_Send(data.data(), kLong, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
  }
  if (rank == 2) {
    hear(0, 2);
    return tell(0, 3);
  }
  int end = MPI_SUCCESS;
  while (end == MPI_SUCCESS) {
    MPI_Request request;
    MPI_Irecv(data.data(), kLong, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request);
    end = end_of(request);
  }
  expect(end, MPI_ERR_PROC_ABORTED, "a receive of a long message");
  tell(2, 2);
  expect(end_of_receive(2, 3), MPI_SUCCESS, "a receive from the other");
}

// Rank 0 speaks for all that are left.
void add_failures_of_others(int rank, int size) {
  if (rank != 0) {
    std::fflush(stdout);
    MPI_Send(&failures, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    return;
  }
  for (int other = 2; other < size; ++other) {
    hear(other, 1);
    failures += word;
  }
}

// Its contribution is missing everywhere: nobody may take the result for one, whether it waits for
// the dead process itself or for somebody who does.
void collectives(int rank) {
  constexpr int kLarge = 1 << 16;  // the algorithms for long messages
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 1) die();
  const auto blocks = static_cast<std::size_t>(size);
  std::vector<int> in(kLarge * blocks), out(in.size());
  const auto try_all = [&](int count, const char* name) {
    const auto expect_loss = [&](int code, const char* what) {
      char text[200];
      std::snprintf(text, sizeof text, "rank %d, %s of %s messages", rank, what, name);
      expect(class_of(code), MPI_ERR_PROC_ABORTED, text);
    };
    const MPI_Comm world = MPI_COMM_WORLD;
    void *const from = in.data(), *const to = out.data();
    expect_loss(MPI_Barrier(world), "MPI_Barrier");
    expect_loss(MPI_Allreduce(from, to, count, MPI_INT, MPI_SUM, world), "MPI_Allreduce");
    expect_loss(MPI_Allgather(from, count, MPI_INT, to, count, MPI_INT, world), "MPI_Allgather");
    expect_loss(MPI_Alltoall(from, count, MPI_INT, to, count, MPI_INT, world), "MPI_Alltoall");
    expect_loss(MPI_Reduce_scatter_block(from, to, count, MPI_INT, MPI_MAX, world),
                "MPI_Reduce_scatter_block");
    MPI_Request request;
    MPI_Iallreduce(from, to, count, MPI_INT, MPI_BAND, world, &request);
    expect_loss(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Iallreduce");
    const int reduced = MPI_Reduce(from, to, count, MPI_INT, MPI_SUM, 0, world);
    const int gathered = MPI_Gather(from, count, MPI_INT, to, count, MPI_INT, 0, world);
    if (rank == 0) expect_loss(reduced, "MPI_Reduce");
    if (rank == 0) expect_loss(gathered, "MPI_Gather");
    const int scanned = MPI_Scan(from, to, count, MPI_INT, MPI_SUM, world);
    if (rank > 1) expect_loss(scanned, "MPI_Scan");
    MPI_Comm made;
    expect_loss(MPI_Comm_dup(world, &made), "MPI_Comm_dup");
    expect_loss(MPI_Bcast(to, count, MPI_INT, 1, world), "MPI_Bcast from the dead");
  };
  try_all(1, "short");
  try_all(kLarge, "long");
  add_failures_of_others(rank, size);
}

// Nor can a communicator be made with it; not even those whose own group is complete wait forever.
void constructors(int rank) {
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm part, inter, made;
  MPI_Group all;
  // The dead one is the last of its group: the leaders live.
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, -rank, &part);
  MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, rank == 0 ? size - 1 : 0, 5, &inter);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  for (const MPI_Comm comm : {part, inter}) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  if (rank == 1) die();
  const auto expect_loss = [&](int code, const char* what) {
    char text[100];
    std::snprintf(text, sizeof text, "rank %d, %s", rank, what);
    expect(class_of(code), MPI_ERR_PROC_ABORTED, text);
  };
  expect_loss(MPI_Comm_dup(inter, &made), "MPI_Comm_dup of an intercommunicator");
  expect_loss(MPI_Intercomm_merge(inter, rank == 0, &made), "MPI_Intercomm_merge");
  expect_loss(MPI_Comm_split(inter, 0, 0, &made), "MPI_Comm_split of an intercommunicator");
  expect_loss(MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, rank == 0 ? size - 1 : 0, 6, &made),
              "MPI_Intercomm_create");
  expect_loss(MPI_Comm_create_group(MPI_COMM_WORLD, all, 1, &made), "MPI_Comm_create_group");
  expect_loss(MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &made), "MPI_Comm_split");
  add_failures_of_others(rank, size);
}

// Rank 1 dies with the lock of rank 2, and in an epoch of each kind.
void windows(int rank) {
  int size, memory[4] = {}, value = rank;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Win locked, flushed, started, posted, fenced;
  for (MPI_Win* win : {&locked, &flushed, &started, &posted, &fenced}) {
    MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win);
    MPI_Win_set_errhandler(*win, MPI_ERRORS_RETURN);
  }
  MPI_Group world, one;
  const int dead = 1;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &dead, &one);
  if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, locked);
  if (rank == 1) MPI_Put(&value, 1, MPI_INT, 2, 0, 1, MPI_INT, locked);
  if (rank == 1) MPI_Win_flush(2, locked);
  if (rank != 1) MPI_Win_lock_all(0, flushed);
  if (rank != 1) MPI_Get(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, flushed);
  if (rank != 1) MPI_Win_flush(1, flushed);
  MPI_Win_fence(MPI_MODE_NOPRECEDE, fenced);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) die();
  const auto expect_loss = [&](int code, const char* what) {
    char text[100];
    std::snprintf(text, sizeof text, "rank %d, %s", rank, what);
    expect(class_of(code), MPI_ERR_PROC_ABORTED, text);
  };
  int code = MPI_SUCCESS;
  while (code == MPI_SUCCESS) {  // until it is dead
    code = MPI_Put(&value, 1, MPI_INT, 1, 1, 1, MPI_INT, flushed);
    if (code == MPI_SUCCESS) code = MPI_Win_flush(1, flushed);
  }
  expect_loss(code, "MPI_Win_flush");
  MPI_Request request;
  expect_loss(MPI_Rget(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, flushed, &request), "MPI_Rget");
  expect(class_of(MPI_Put(&value, 1, MPI_INT, rank, 1, 1, MPI_INT, flushed)), MPI_SUCCESS,
         "MPI_Put to a living process");
  MPI_Win_unlock_all(flushed);
  MPI_Win_start(one, 0, started);
  expect_loss(MPI_Win_complete(started), "MPI_Win_complete");
  MPI_Win_post(one, 0, posted);
  expect_loss(MPI_Win_wait(posted), "MPI_Win_wait");
  // The lock of the dead goes to the living.
  expect(class_of(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, locked)), MPI_SUCCESS, "MPI_Win_lock");
  MPI_Put(&value, 1, MPI_INT, 2, 2, 1, MPI_INT, locked);
  expect(class_of(MPI_Win_unlock(2, locked)), MPI_SUCCESS, "MPI_Win_unlock");
  expect_loss(MPI_Win_fence(0, fenced), "MPI_Win_fence");
  expect_loss(MPI_Win_free(&started), "MPI_Win_free");
  add_failures_of_others(rank, size);
}

void run(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const struct {
    const char* name;
    void (*run)(int);
    bool all = false;  // ranks take part, not only 0 and 1
  } cases[] = {{"announced", announced},
               {"stranger", stranger},
               {"leaver", leaver},
               {"napper", napper},
               {"probed", probed},
               {"speaker", speaker},
               {"elsewhere", elsewhere, true},
               {"busy", busy, true},
               {"connecting", connecting},
               {"transfer", transfer, true},
               {"collectives", collectives, true},
               {"constructors", constructors, true},
               {"windows", windows, true}};
  for (const auto& c : cases) {
    if (std::strcmp(argv[1], c.name) != 0) continue;
    if (rank < 2 || c.all) c.run(rank);
    if (rank == 0) std::puts(failures == 0 ? "noticed" : "missed");
  }
  std::fflush(stdout);
  for (;;) pause();  // until the launcher is ended
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (fork() == 0) run(argc, argv);
  while (wait(nullptr) > 0) continue;
  for (;;) pause();
}
