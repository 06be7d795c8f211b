// How one row is measured: warm up, estimate the time of a call, then take samples of one or
// several calls, with a barrier before each sample.
#include <algorithm>
#include <cmath>

#include "bench.hpp"

namespace bench {
namespace {

constexpr double kSampleSeconds = 30e-6;  // what a batch should last, for the clock's sake
constexpr int kMaxCalls = 1000;           // in a batch
constexpr double kWarmUpShare = 0.1;      // of the time for a row
constexpr double kFirstWarmUp = 0.1;      // seconds before the first row: all rings are touched

// Seconds that so many calls took at this rank.
double time_of(const Case& test, int calls) {
  const double began = MPI_Wtime();
  for (int i = 0; i < calls; ++i) test.call();
  return MPI_Wtime() - began;
}

// How many calls a sample has and how many samples there are. Rank 0 decides, or ranks would
// disagree about when to stop.
struct SamplePlan {
  int calls, samples;
};

// At least Options::warmup calls and a tenth of the time: a library's memory is touched for the
// first time here, before the first row that of its ports. Rank 0 says when it is enough, because
// the clocks of ranks differ.
void warm_up(const Case& test, const Options& options, bool first) {
  const double end =
      MPI_Wtime() + std::max(options.seconds * kWarmUpShare, first ? kFirstWarmUp : 0);
  int more = options.warmup;
  do {
    for (int i = 0; i < more; ++i) test.call();
    more = MPI_Wtime() < end ? std::max(options.warmup, 1) : 0;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  } while (more != 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Estimates the time of a call. Batched cases get as many calls a sample as take
// 30 us.
SamplePlan make_plan(const Case& test, const Options& options) {
  constexpr int kTrials = 5;
  const double each = std::max(time_of(test, kTrials) / kTrials, 1e-9);
  int plan[2];
  plan[0] =
      test.batched
          ? static_cast<int>(std::clamp(std::ceil(kSampleSeconds / each), 1.0, double{kMaxCalls}))
          : 1;
  plan[1] = static_cast<int>(
      std::clamp(options.seconds / (each * plan[0]), 3.0, static_cast<double>(options.rounds)));
  MPI_Bcast(plan, 2, MPI_INT, 0, MPI_COMM_WORLD);
  return {.calls = plan[0], .samples = plan[1]};
}

// The row's figure from the seconds of one call.
double figure(const Case& test, double seconds) {
  return test.unit == Unit::us         ? seconds * 1e6 * test.factor
         : test.unit == Unit::mb_per_s ? test.factor / seconds * 1e-6
                                       : test.factor / seconds;
}

}  // namespace

Row measure(const Case& test, const Options& options, bool first) {
  warm_up(test, options, first);
  const SamplePlan plan = make_plan(test, options);
  std::vector<double> mine(static_cast<std::size_t>(plan.samples)), all(mine.size());
  for (double& sample : mine) {
    MPI_Barrier(MPI_COMM_WORLD);
    // At least a nanosecond: figure() divides by it.
    sample = std::max(time_of(test, plan.calls) / plan.calls, 1e-9);
  }
  // Otherwise the slowest rank's time counts, sample by sample.
  if (test.root_clock)
    all = mine;
  else
    MPI_Reduce(mine.data(), all.data(), plan.samples, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  for (double& sample : all) sample = figure(test, sample);
  std::sort(all.begin(), all.end());
  return {.test = test.test,
          .bytes = test.bytes,
          .unit = test.unit,
          .min = all.front(),
          .median = all[all.size() / 2],
          .max = all.back(),
          .samples = plan.samples};
}

}  // namespace bench
