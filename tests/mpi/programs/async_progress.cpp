// VIADUCT_ASYNC_PROGRESS=on: a process that computes, and calls no MPI function, still answers.
// Any number of ranks; with one, only that the thread does no harm is tested.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "job.hpp"

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kComputes = std::chrono::milliseconds(500);

void compute() {
  const auto until = Clock::now() + kComputes;
  volatile unsigned work = 0;
  while (Clock::now() < until) work = work + 1;
}

// Memory of the program's own, which others reach by messages only.
void targets() {
  job::section("a passive target that computes serves gets, puts and atomics");
  long memory[3] = {40 + job::rank(), -1, 0};
  MPI_Win win;
  MPI_Win_create(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Barrier(MPI_COMM_WORLD);
  const int target = job::size() - 1;
  if (job::rank() == target) {
    compute();
  } else if (job::rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // now the target sleeps
    const auto begin = Clock::now();
    for (int round = 0; round < 5; ++round) {
      long read = -1, before = -1;
      const long one = 1, put = 7;
      MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
      MPI_Get(&read, 1, MPI_LONG, target, 0, 1, MPI_LONG, win);
      MPI_Win_flush(target, win);
      CHECK_EQ(read, 40L + target);
      MPI_Put(&put, 1, MPI_LONG, target, 1, 1, MPI_LONG, win);
      MPI_Fetch_and_op(&one, &before, MPI_LONG, target, 2, MPI_SUM, win);
      MPI_Win_unlock(target, win);
      CHECK_EQ(before, long{round});
    }
    CHECK(Clock::now() - begin < kComputes / 2);
  }
  MPI_Win_free(&win);
  if (job::rank() == target && target > 0) {
    CHECK_EQ(memory[1], 7L);
    CHECK_EQ(memory[2], 5L);
  }
}

void messages() {
  job::section("a long message arrives at a process that computes");
  if (job::size() == 1) return;
  std::vector<int> data(1'000'000, job::rank());
  const int count = static_cast<int>(data.size());
  MPI_Request request = MPI_REQUEST_NULL;
  if (job::rank() == 1) MPI_Irecv(data.data(), count, MPI_INT, 0, 0, MPI_COMM_WORLD, &request);
  MPI_Barrier(MPI_COMM_WORLD);
  if (job::rank() == 0) {
    const auto begin = Clock::now();
    MPI_Ssend(data.data(), count, MPI_INT, 1, 0, MPI_COMM_WORLD);
    CHECK(Clock::now() - begin < kComputes / 2);
  } else if (job::rank() == 1) {
    compute();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(std::ranges::all_of(data, [](int i) { return i == 0; }));
  }
}

void children() {
  job::section("a child of fork ends, and the process goes on");
  const pid_t child = ::fork();
  if (child == 0) std::exit(3);
  int status = 0;
  CHECK_EQ(::waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
  int one = 1, sum = 0;
  for (int i = 0; i < 100; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQ(sum, job::size());
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  targets();
  messages();
  children();
  return job::report();
}
