// A rank that waits for long leaves the CPU to others, and is still there when the message comes.
// Rank 0 computes for a while, here by sleeping, and the others wait for it: in a receive, then in
// a collective operation, where they ask each other now and then. Prints TAP.
#include <mpi.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

using std::chrono::duration;

constexpr double kWait = 1.5;  // seconds
// Of all of that: a wait begins with some 10 ms of looking, and ten times as many on a slow
// machine.
constexpr double kMaxShareOfCpu = 0.1;
// Once it sleeps it takes half a hundredth.
constexpr double kAsleep = 0.2, kMaxShareAsleep = 0.015;
// More where other work makes every wake-up dearer: so many times what a thread takes that wakes as
// often as a rank may, and does nothing. One that spins takes fifty times as much.
constexpr double kMaxOverYardstick = 1.5;
constexpr std::chrono::milliseconds kYardstickSleep{2};
constexpr double kMaxLateness = 0.5;  // on a machine that is busy with other things

double processor_seconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

struct Report {
  double receive, asleep, yardstick, late, collective;
};

// All ranks share one clock.
double seconds_now() {
  return duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// How much of a CPU it takes.
template <class Call>
double share(Call call) {
  const double began = seconds_now(), used = processor_seconds();
  call();
  return (processor_seconds() - used) / (seconds_now() - began);
}

// The share of a CPU that the thread which makes this uses in the second that begins a while later,
// beside the yardstick's in the same second.
class SecondAsleep {
 public:
  SecondAsleep() { pthread_getcpuclockid(pthread_self(), &clock_); }
  void end() { watcher_.join(); }
  double share() const { return share_; }
  double yardstick() const { return yardstick_; }

 private:
  static double used(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  void watch() {
    std::this_thread::sleep_for(duration<double>(kAsleep));
    const double began = seconds_now(), before = used(clock_);
    const double own_before = used(CLOCK_THREAD_CPUTIME_ID);
    while (seconds_now() - began < 1) std::this_thread::sleep_for(kYardstickSleep);
    const double lasted = seconds_now() - began;
    share_ = (used(clock_) - before) / lasted;
    yardstick_ = (used(CLOCK_THREAD_CPUTIME_ID) - own_before) / lasted;
  }

  clockid_t clock_{};
  double share_ = 0, yardstick_ = 0;
  std::thread watcher_{[this] { watch(); }};
};

// How much of the CPU each wait took, and how long after it was sent the message was there.
Report wait_for_rank_0() {
  Report report{};
  report.receive = share([&] {
    SecondAsleep second;
    double sent = 0;
    MPI_Recv(&sent, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    report.late = seconds_now() - sent;
    second.end();
    report.asleep = second.share();
    report.yardstick = second.yardstick();
  });
  MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  report.collective = share([] { MPI_Barrier(MPI_COMM_WORLD); });
  return report;
}

void keep_waiting(int ranks) {
  std::this_thread::sleep_for(duration<double>(kWait));
  for (int rank = 1; rank < ranks; ++rank) {
    const double sent = seconds_now();
    MPI_Send(&sent, 1, MPI_DOUBLE, rank, 0, MPI_COMM_WORLD);
    // What is sent may leave in a later call only: this rank makes none while it computes.
    MPI_Recv(nullptr, 0, MPI_BYTE, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  std::this_thread::sleep_for(duration<double>(kWait));
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  Report mine{};
  if (rank == 0)
    keep_waiting(ranks);
  else
    mine = wait_for_rank_0();
  std::vector<Report> all(static_cast<std::size_t>(ranks));
  MPI_Gather(&mine, 5, MPI_DOUBLE, all.data(), 5, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  bool good = true;
  for (int r = 1; rank == 0 && r < ranks; ++r) {
    const auto [receive, asleep, yardstick, late, collective] = all[static_cast<std::size_t>(r)];
    const bool idle = receive < kMaxShareOfCpu && collective < kMaxShareOfCpu &&
                      asleep < std::max(kMaxShareAsleep, kMaxOverYardstick * yardstick),
               prompt = late < kMaxLateness;
    good = good && idle && prompt;
    std::printf(
        "%s - rank %d has waited with %.2f %% of a CPU in a receive (asleep %.2f %%, yardstick "
        "%.2f %%), "
        "%.2f %% in a barrier\n",
        idle ? "ok" : "not ok", r, 100 * receive, 100 * asleep, 100 * yardstick, 100 * collective);
    std::printf("%s - and had the message after %.0f us\n", prompt ? "ok" : "not ok", 1e6 * late);
  }
  MPI_Finalize();
  return good ? 0 : 1;
}
