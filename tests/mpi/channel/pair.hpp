// A job of two processes on a memif pair, for tests and measurements of the channels as programs
// open them.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "drivers/link/types.hpp"
#include "libmpi_lite/channel/mbcf.hpp"
#include "libmpi_lite/channel/startx.hpp"

namespace viaduct::mpi {

// Made before the processes are; they share it.
class Pair {
 public:
  Pair() {
    char name[] = "/tmp/viaduct-channels-XXXXXX";
    if (mkdtemp(name) == nullptr) std::abort();
    directory_ = name;
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    shared_ = new (memory) Shared;
  }
  ~Pair() {
    munmap(shared_, sizeof(Shared));
    std::filesystem::remove_all(directory_);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  class Process;

 private:
  struct Shared {
    std::array<char[1024], 2> cards{};
    std::atomic<unsigned> at_fence{0};
  };
  std::string directory_;
  Shared* shared_;
};

// One of the two, as its process manager knows it.
class Pair::Process final : public Launch {
 public:
  // Chooses the port by VIADUCT_PORTS, as a user does.
  Process(Pair& pair, int rank) : shared_(*pair.shared_), rank_(rank) {
    const std::string memif =
        "net_memif0,socket=" + pair.directory_ + "/memif,socket-abstract=no,mac=02:00:00:00:5a:0";
    setenv("VIADUCT_PORTS", (memif + "0,role=server;" + memif + "1,role=client").c_str(), 1);
  }
  const char* name() const override { return "pair"; }
  int rank() const override { return rank_; }
  int size() const override { return 2; }
  int local_rank() const override { return rank_; }
  int local_size() const override { return 2; }
  std::uint64_t job_key() const override { return 7; }
  int appnum() const override { return -1; }
  int universe_size() const override { return -1; }
  void put(std::string_view, std::string_view value) override {
    value.copy(shared_.cards[static_cast<std::size_t>(rank_)], 1000);
  }
  void fence() override {
    const unsigned before = shared_.at_fence++;
    while (shared_.at_fence < (before / 2 + 1) * 2) std::this_thread::yield();
  }
  std::string get(int rank, std::string_view) override {
    return shared_.cards[static_cast<std::size_t>(rank)];
  }
  void finalize() override {}
  [[noreturn]] void abort(int, std::string_view) override { std::abort(); }

 private:
  Shared& shared_;
  const int rank_;
};

inline std::unique_ptr<Channel> open_channel(std::string_view name, ChannelSink& sink,
                                             Launch& launch) {
  auto channel = name == "mbcf" ? open_mbcf_channel(sink, launch, nullptr)
                                : open_startx_channel(sink, launch, nullptr);
  launch.fence();
  return channel;
}

}  // namespace viaduct::mpi
