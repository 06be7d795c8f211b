// When the simulated processes run. A real process can lose its CPU for milliseconds between any
// two instructions; what shows is that it goes on with a time that it has read long ago, and that
// all others have gone on meanwhile. So a process may lose its CPU wherever it reads the clock:
// just before, or just after, so that it acts on an old time.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "drivers/sim/sim_network.hpp"

namespace viaduct::link::test {

// How often and for how long a process loses its CPU. The length is drawn so that each order of
// magnitude between the two is as likely.
struct PauseConfig {
  double probability = 0;  // at each reading of the clock
  Duration shortest = std::chrono::microseconds{100};
  Duration longest = std::chrono::milliseconds{100};
  std::uint64_t seed = 1;
};

class SimSchedule {
 public:
  // Lets process i of the test poll its link or driver once with the time given.
  using Poll = std::function<void(std::size_t, Time)>;

  SimSchedule(sim::SimNetwork& net, Poll poll) : net_(net), poll_(std::move(poll)) {}

  void set_pauses(const PauseConfig& pauses) {
    pauses_ = pauses;
    random_.seed(pauses.seed);
  }

  // What the process sees on its clock. The others run while it has no CPU.
  Time read_clock(std::size_t process) {
    if (pauses_.probability == 0) return net_.now();
    if (chance(pauses_.probability / 2)) pause(process);
    const Time read = net_.now();
    if (chance(pauses_.probability / 2)) pause(process);
    return read;
  }

  // Polls each process that is not in the middle of a call of its own.
  void poll_all(std::size_t processes) {
    processes_ = processes;
    busy_.resize(processes);
    for (std::size_t i = 0; i < processes; ++i) {
      if (busy_[i]) continue;
      busy_[i] = true;
      poll_(i, read_clock(i));
      busy_[i] = false;
    }
  }

  std::uint64_t pauses() const { return count_; }

 private:
  bool chance(double p) { return std::uniform_real_distribution<>{}(random_) < p; }

  void pause(std::size_t process) {
    ++count_;
    const double shortest = static_cast<double>(pauses_.shortest.count());
    const double range = static_cast<double>(pauses_.longest.count()) / shortest;
    const Time end =
        net_.now() +
        Duration{static_cast<std::int64_t>(shortest * std::pow(range, uniform_(random_)))};
    busy_.resize(std::max(busy_.size(), process + 1));
    const bool was_busy = busy_[process];
    busy_[process] = true;
    while (net_.now() < end) {
      net_.step(std::min(net_.now() + kStep, end));
      poll_all(processes_);
    }
    busy_[process] = was_busy;
  }

  static constexpr Duration kStep = std::chrono::microseconds{50};

  sim::SimNetwork& net_;
  const Poll poll_;
  PauseConfig pauses_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<> uniform_;
  std::size_t processes_ = 0;
  std::vector<bool> busy_;
  std::uint64_t count_ = 0;
};

}  // namespace viaduct::link::test
