// Random programs of sends and receives, held against a model of MPI's matching.
//
//   mpiexec -n 4 stress [--seeds FROM:TO] [--timeout SECONDS] [--avoid mpich|openmpi]
//
// A seed is a small program for all ranks (see plan.hpp); what it does is the same whenever it is
// run with as many ranks. When one fails or hangs, its seed is printed: run it alone with --seeds
// N:N.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "job.hpp"
#include "runner.hpp"

namespace {

using stress::Communicator;
using stress::Plan;

struct UnderWay {
  unsigned long long seed = 0;
  int step = -1;
  const Plan* plan = nullptr;
};
UnderWay now;

std::string where() {
  std::string text = "seed " + std::to_string(now.seed) + ", rank " + std::to_string(job::rank());
  if (!now.plan) return text;
  const auto& steps = now.plan->steps[static_cast<std::size_t>(job::rank())];
  const auto at = static_cast<std::size_t>(now.step);
  if (at < steps.size())
    return text + ", step " + std::to_string(at) + ": " + describe(*now.plan, steps[at]);
  return text + ", at its end";
}

// The process hangs and will be ended: what is not safe in a signal handler does no harm any more.
void on_alarm(int) {
  std::cerr << "stress: hangs: " << where() << std::endl;
  std::_Exit(3);
}

// Of several messages, complete_all() finds the error in the statuses and calls this again.
void on_error(MPI_Comm*, int* code, ...) {
  if (*code == MPI_ERR_IN_STATUS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(*code, text, &length);
  std::cerr << "stress: " << std::string(text, static_cast<std::size_t>(length)) << ": " << where()
            << std::endl;
  MPI_Abort(MPI_COMM_WORLD, 4);
}

// Every rank lists all communicators, also those it is not in.
void add_split(std::vector<Communicator>& comms, int (*color)(int rank), int (*key)(int rank)) {
  MPI_Comm mine;
  MPI_Comm_split(MPI_COMM_WORLD, color(job::rank()), key(job::rank()), &mine);
  for (int c = 0; c < 2; ++c) {
    Communicator comm{.comm = color(job::rank()) == c ? mine : MPI_COMM_NULL, .members = {}};
    for (int r = 0; r < job::size(); ++r)
      if (color(r) == c) comm.members.push_back(r);
    std::sort(comm.members.begin(), comm.members.end(),
              [&](int a, int b) { return key(a) < key(b); });
    if (!comm.members.empty()) comms.push_back(comm);
  }
}

std::vector<Communicator> make_communicators() {
  Communicator world{.comm = MPI_COMM_NULL, .members = {}};
  for (int r = 0; r < job::size(); ++r) world.members.push_back(r);
  std::vector<Communicator> comms(2, world);
  for (Communicator& c : comms) MPI_Comm_dup(MPI_COMM_WORLD, &c.comm);
  add_split(
      comms, [](int) { return 0; }, [](int rank) { return -rank; });
  add_split(
      comms, [](int rank) { return rank % 2; }, [](int rank) { return rank; });
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(on_error, &handler);
  for (const Communicator& c : comms)
    if (c.comm != MPI_COMM_NULL) MPI_Comm_set_errhandler(c.comm, handler);
  MPI_Errhandler_free(&handler);
  return comms;
}

void free_communicators(std::vector<Communicator>& comms) {
  for (Communicator& c : comms)
    if (c.comm != MPI_COMM_NULL) MPI_Comm_free(&c.comm);
}

struct Options {
  unsigned long long from = 1, to = 1000;
  unsigned timeout = 30;
  stress::Avoid avoid;
};

bool parse_avoid(const std::string& library, stress::Avoid& avoid) {
  avoid.buffered_pairs = avoid.buffered_pairs || library == "mpich";
  avoid.buffered_restarts = avoid.buffered_restarts || library == "openmpi";
  return library == "mpich" || library == "openmpi";
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; i += 2) {
    char* end = nullptr;
    if (i + 1 == argc) return false;
    if (std::strcmp(argv[i], "--seeds") == 0) {
      options.from = std::strtoull(argv[i + 1], &end, 10);
      if (*end != ':') return false;
      options.to = std::strtoull(end + 1, &end, 10);
    } else if (std::strcmp(argv[i], "--timeout") == 0) {
      options.timeout = static_cast<unsigned>(std::strtoul(argv[i + 1], &end, 10));
    } else if (std::strcmp(argv[i], "--avoid") == 0) {
      if (!parse_avoid(argv[i + 1], options.avoid)) return false;
      continue;
    }
    if (!end || *end) return false;
  }
  return options.from <= options.to && options.timeout > 0;
}

void run_seeds(const Options& options) {
  constexpr unsigned long long kSeedsPerCommunicators = 64;
  std::vector<Communicator> comms = make_communicators();
  std::size_t messages = 0;
  const double began = MPI_Wtime();
  for (unsigned long long seed = options.from; seed <= options.to; ++seed) {
    const Plan plan = make_plan(seed, comms, job::size(), options.avoid);
    now = {.seed = seed, .step = -1, .plan = &plan};
    alarm(options.timeout);
    stress::Runner runner(seed, plan, comms, job::rank());
    runner.run(now.step);
    for (const std::string& complaint : runner.check()) {
      std::cerr << complaint << std::endl;
      CHECK(!"what was received is what had to be received");
    }
    messages += plan.messages.size();
    if (seed % kSeedsPerCommunicators == 0) {
      free_communicators(comms);
      comms = make_communicators();
    }
    // A rank that is ahead must not send to wildcards of this seed.
    MPI_Barrier(comms.front().comm);
    now.plan = nullptr;
  }
  alarm(0);
  free_communicators(comms);
  if (job::rank() == 0)
    std::cout << "# " << options.to - options.from + 1 << " seeds, " << messages << " messages, "
              << MPI_Wtime() - began << " s" << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Options options;
  if (!parse(argc, argv, options)) {
    if (job::rank() == 0)
      std::cerr << "usage: stress [--seeds FROM:TO] [--timeout SECONDS] [--avoid mpich|openmpi]"
                << std::endl;
    MPI_Finalize();
    return 2;
  }
  std::signal(SIGALRM, on_alarm);
  job::section("messages of seeds " + std::to_string(options.from) + " to " +
               std::to_string(options.to) + " are matched as MPI says");
  run_seeds(options);
  return job::report();
}
