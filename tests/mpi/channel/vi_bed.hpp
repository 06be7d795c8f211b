// Processes with a VI channel each, all in this one, on RDMA devices in memory (fake_device.hpp).
// Their connections go over the loopback interface.
#pragma once

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "libmpi_lite/channel/vi/vi_channel.hpp"
#include "libvipl/core/device_source.hpp"
#include "tests/mpi/channel/fake_job.hpp"
#include "tests/vipl/core/fake_device.hpp"

namespace viaduct::mpi {

class ViBed {
 public:
  explicit ViBed(int processes, ViConfig config = {}) : job{processes, {}} {
    vipl::set_device_source(vi::fake::FakeProvider::get());
    if (config.nic == "nic0") config.nic = "fake0";
    config.job_key = kJobKey;
    for (int rank = 0; rank < processes; ++rank) {
      processes_.push_back(std::make_unique<Process>(job, rank));
      Process& p = *processes_.back();
      p.channel = std::make_unique<ViChannel>(p.sink, p.launch, config);
    }
  }
  ~ViBed() {
    for (auto& p : processes_) p->channel.reset();
  }
  ViChannel& operator[](int rank) { return *at(rank).channel; }
  Sink& sink(int rank) { return at(rank).sink; }
  int size() const { return static_cast<int>(processes_.size()); }

  // Polls everybody until `done` says so; false when the time is over.
  bool run(const std::function<bool()>& done,
           std::chrono::milliseconds limit = std::chrono::seconds{60}) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      for (auto& p : processes_)
        if (p->channel && p->polls) p->channel->poll();
    }
    return true;
  }
  void run_for(std::chrono::milliseconds time) {
    run([] { return false; }, time);
  }
  // Whoever sleeps does not poll.
  void sleep(int rank, bool asleep = true) { at(rank).polls = !asleep; }
  // Gone without a word, as a process that was killed.
  void kill(int rank) { at(rank).channel.reset(); }
  // Ends as it should.
  void leave(int rank) {
    at(rank).channel->finished();
    at(rank).channel.reset();
  }
  std::uint64_t count(int rank, ViCounter counter) { return (*this)[rank].counters()[counter]; }
  // A message of one byte, as soon as there is room.
  bool send(int from, int to, std::uint8_t byte = 1) {
    const std::byte message[1]{std::byte{byte}};
    return run([&] { return (*this)[from].send_control(to, message, {}); });
  }

  static constexpr std::uint64_t kJobKey = 0x1234'5678'9abc'def0;
  FakeJob job;

 private:
  struct Process {
    Process(FakeJob& job, int rank) : launch(job, rank) {}
    FakeLaunch launch;
    Sink sink;
    std::unique_ptr<ViChannel> channel;
    bool polls = true;
  };
  Process& at(int rank) { return *processes_[static_cast<std::size_t>(rank)]; }

  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace viaduct::mpi
