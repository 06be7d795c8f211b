// Sends messages of 8 bytes between two processes' engines over Virtual Interfaces, a given number
// of times each way, on RDMA devices in memory: for callgrind, see bench/vipl-instructions.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "libmpi_lite/channel/vi/vi_channel.hpp"
#include "libmpi_lite/core/data/datatype_builder.hpp"
#include "libmpi_lite/transfer/engine.hpp"
#include "libvipl/core/device_source.hpp"
#include "tests/mpi/channel/fake_job.hpp"
#include "tests/vipl/core/fake_device.hpp"

using namespace viaduct::mpi;

namespace {

constexpr int kProcesses = 2;
constexpr unsigned long kWarmUp = 1000;  // with the connection, and until its window is full

struct Process {
  Process(FakeJob& job, int rank)
      : peer(1 - rank),
        comm(make<Comm>(4u, make<Group>(std::vector{0, 1}, rank), nullptr, nullptr)),
        launch(job, rank),
        transfer(
            [&](ChannelSink& sink) {
              ViConfig config;
              config.nic = "fake" + std::to_string(rank);
              config.job_key = launch.job_key();
              std::vector<std::unique_ptr<Channel>> channels;
              channels.push_back(std::make_unique<ViChannel>(sink, launch, config));
              return channels;
            },
            [](int) { return 0; }, rank, kProcesses, {}) {}

  Envelope other() const { return {comm.get(), comm->context(), peer, 0}; }
  Items items() { return {&word, 8, &datatype(MPI_BYTE)}; }

  const int peer;
  Ref<Comm> comm;
  FakeLaunch launch;
  Transfer transfer;
  std::uint64_t word = 0;
};

}  // namespace

// What MPI_Send and MPI_Recv do when the connection stands and the message is there. With names
// that callgrind finds.
extern "C" [[gnu::noinline]] bool mpi_send(Process& from) {
  return from.transfer.send_now(from.items(), from.other(), SendMode::standard);
}
extern "C" [[gnu::noinline]] void mpi_receive(Process& at) {
  const auto request = make<ReceiveRequest>(at.items(), at.other(), at.peer);
  at.transfer.start(*request);
  while (!request->complete) at.transfer.progress();
}

namespace {

void carry(Process& from, Process& to, std::uint64_t word) {
  from.word = word;
  while (!mpi_send(from)) {  // not connected yet
    from.transfer.progress();
    to.transfer.progress();
  }
  mpi_receive(to);
  if (to.word == word) return;
  std::fprintf(stderr, "message %llu is wrong\n", static_cast<unsigned long long>(word));
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: mpi-vi-instructions-of TIMES\n");
    return 2;
  }
  viaduct::vipl::set_device_source(viaduct::vi::fake::FakeProvider::get());
  define_datatypes();
  FakeJob job{kProcesses, {}};
  Process a(job, 0), b(job, 1);
  for (std::uint64_t i = 1; i <= kWarmUp + std::stoul(argv[1]); ++i) {
    carry(a, b, 2 * i);
    carry(b, a, 2 * i + 1);
  }
  a.transfer.finished();
  b.transfer.finished();
  return 0;
}
