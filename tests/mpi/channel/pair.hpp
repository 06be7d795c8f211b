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
  Process(Pair& pair, int rank)
      : Launch({.rank = rank, .size = 2, .local_rank = rank, .local_size = 2, .job_key = 7}),
        shared_(*pair.shared_) {
    const std::string memif =
        "net_memif0,socket=" + pair.directory_ + "/memif,socket-abstract=no,mac=02:00:00:00:5a:0";
    setenv("VIADUCT_PORTS", (memif + "0,role=server;" + memif + "1,role=client").c_str(), 1);
  }
  const char* name() const override { return "pair"; }
  void put(std::string_view, std::string_view value) override {
    value.copy(shared_.cards[static_cast<std::size_t>(rank())], 1000);
  }
  void fence() override {
    start_fence();
    while (!fence_passed()) std::this_thread::yield();
  }
  void start_fence() override { passed_at_ = (shared_.at_fence++ / 2 + 1) * 2; }
  bool fence_passed() override { return shared_.at_fence >= passed_at_; }
  std::string get(int rank, std::string_view) override {
    return shared_.cards[static_cast<std::size_t>(rank)];
  }
  void finalize() override {}
  [[noreturn]] void abort(int, std::string_view) override { std::abort(); }

 private:
  Shared& shared_;
  unsigned passed_at_ = 0;
};

inline std::unique_ptr<Channel> open_channel(std::string_view name, ChannelSink& sink,
                                             Launch& launch) {
  auto channel = name == "mbcf" ? open_mbcf_channel(sink, launch, nullptr)
                                : open_startx_channel(sink, launch, nullptr);
  launch.fence();
  return channel;
}

}  // namespace viaduct::mpi
