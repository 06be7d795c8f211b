// Processes with a network channel each on the simulated network, for the tests in this directory.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "drivers/sim/sim_network.hpp"
#include "libmpi_lite/channel/mbcf.hpp"
#include "libmpi_lite/channel/startx.hpp"
#include "tests/link/sim_schedule.hpp"
#include "tests/mpi/channel/fake_job.hpp"

namespace viaduct::mpi {

struct BedConfig {
  int processes = 2;
  sim::SimConfig net{};
  sim::SimPortConfig port{};
  link::LinkConfig link{};
  std::size_t eager = 2048;
  std::size_t eager_of_last = 0;  // of the last process; 0: as the others'
  std::size_t fifo = 64u << 10;
  link::test::PauseConfig pauses{};
};

using MakeChannel = std::unique_ptr<Channel> (*)(ChannelSink&, Launch&,
                                                 std::shared_ptr<sim::SimPort>, const NetConfig&,
                                                 const BedConfig&, ClockOf<sim::SimPort>);

class Bed {
 public:
  Bed(MakeChannel make, const BedConfig& config)
      : net(config.net),
        job{config.processes, {}},
        schedule(net,
                 [this](std::size_t i, link::Time) {
                   if (processes_[i]->polls) processes_[i]->channel->poll();
                 }),
        config_(config) {
    for (int rank = 0; rank < config.processes; ++rank) {
      processes_.push_back(std::make_unique<Process>(job, rank));
      Process& p = *processes_.back();
      p.port = &net.add_port(config.port);
      NetConfig own{"sim" + std::to_string(rank), config.link, config.eager};
      if (rank == config.processes - 1 && config.eager_of_last != 0)
        own.eager = config.eager_of_last;
      own.link.seed = 100 * (config.net.faults.seed + 1) + static_cast<std::uint64_t>(rank);
      // The net owns the port.
      const auto number = static_cast<std::size_t>(rank);
      p.channel = make(p.sink, p.launch, {std::shared_ptr<void>(), p.port}, own, config,
                       {[this, number] { return schedule.read_clock(number); }});
    }
    schedule.set_pauses(config.pauses);
  }
  ~Bed() {
    schedule.set_pauses({});
    // Links still send frames as they end.
    for (auto& p : processes_) p->channel.reset();
  }
  Channel& operator[](int rank) { return *at(rank).channel; }
  Sink& sink(int rank) { return at(rank).sink; }
  int size() const { return static_cast<int>(processes_.size()); }

  // Polls everybody and lets time pass until `done` says so; false when `limit` came first.
  bool run(const std::function<bool()>& done, link::Duration limit = std::chrono::seconds{20}) {
    const link::Time end = net.now() + limit;
    while (!done()) {
      if (net.now() >= end) return false;
      schedule.poll_all(processes_.size());
      const link::Time next = net.now() + step;
      while (net.step(next)) continue;
    }
    return true;
  }
  void run_for(link::Duration time) {
    run([] { return false; }, time);
  }
  // Whoever sleeps does not poll.
  void sleep(int rank, bool asleep = true) { at(rank).polls = !asleep; }
  // Gone without a word: nothing of it reaches anybody any more.
  void vanish(int rank) {
    for (auto& other : processes_)
      if (other->port != at(rank).port) net.partition(*at(rank).port, *other->port);
    sleep(rank);
  }
  // It ends as it should.
  void leave(int rank) {
    at(rank).channel.reset();
    sleep(rank);
  }

  sim::SimNetwork net;
  FakeJob job;
  link::test::SimSchedule schedule;
  link::Duration step = std::chrono::microseconds{1};  // between two polls

 private:
  struct Process {
    Process(FakeJob& job, int rank) : launch(job, rank) {}
    FakeLaunch launch;
    Sink sink;
    sim::SimPort* port = nullptr;
    std::unique_ptr<Channel> channel;
    bool polls = true;
  };
  Process& at(int rank) { return *processes_[static_cast<std::size_t>(rank)]; }

  const BedConfig config_;
  std::vector<std::unique_ptr<Process>> processes_;
};

// A test that holds for both channels, and for mbcf without Remote Write.
struct ChannelUnderTest {
  const char* name;
  MakeChannel make;
  const char* label;  // in names of tests
};
inline const ChannelUnderTest kChannelsUnderTest[] = {
    {"mbcf",
     [](ChannelSink& sink, Launch& launch, std::shared_ptr<sim::SimPort> port, const NetConfig& own,
        const BedConfig& config, ClockOf<sim::SimPort> clock) -> std::unique_ptr<Channel> {
       return std::make_unique<MbcfChannel<sim::SimPort>>(sink, launch, std::move(port), own,
                                                          config.fifo, std::move(clock));
     },
     "mbcf"},
    {"mbcf",
     [](ChannelSink& sink, Launch& launch, std::shared_ptr<sim::SimPort> port, const NetConfig& own,
        const BedConfig& config, ClockOf<sim::SimPort> clock) -> std::unique_ptr<Channel> {
       NetConfig through_fifo = own;
       through_fifo.remote_write = false;
       return std::make_unique<MbcfChannel<sim::SimPort>>(
           sink, launch, std::move(port), through_fifo, config.fifo, std::move(clock));
     },
     "mbcf_fifo"},
    {"startx",
     [](ChannelSink& sink, Launch& launch, std::shared_ptr<sim::SimPort> port, const NetConfig& own,
        const BedConfig&, ClockOf<sim::SimPort> clock) -> std::unique_ptr<Channel> {
       return std::make_unique<StartxChannel<sim::SimPort>>(sink, launch, std::move(port), own,
                                                            std::move(clock));
     },
     "startx"},
};

class NetChannels : public testing::TestWithParam<ChannelUnderTest> {
 protected:
  Bed make(const BedConfig& config = {}) { return Bed(GetParam().make, config); }
};
}  // namespace viaduct::mpi
