// A job whose processes are all in this one, and what their channels report; for the tests in this
// directory.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "drivers/base/setup_error.hpp"
#include "libmpi_lite/channel/channel.hpp"
#include "libmpi_lite/launch/launch.hpp"

namespace viaduct::mpi {

struct FakeJob {
  int size;
  std::map<std::string, std::string> values;  // "rank key"
  std::atomic<std::size_t> gets = 0;          // each process may have a thread
};

class FakeLaunch final : public Launch {
 public:
  FakeLaunch(FakeJob& job, int rank)
      : Launch({.rank = rank,
                .size = job.size,
                .local_rank = rank,
                .local_size = job.size,
                .job_key = 7}),
        job_(job) {}
  const char* name() const override { return "fake"; }
  void put(std::string_view key, std::string_view value) override {
    EXPECT_TRUE(job_.values.emplace(named(rank(), key), value).second) << key << " twice";
    EXPECT_LE(value.size(), 900u);
    EXPECT_EQ(value.find(' '), std::string_view::npos);
  }
  void fence() override {}
  void start_fence() override {}
  bool fence_passed() override { return true; }
  std::string get(int rank, std::string_view key) override {
    ++job_.gets;
    const auto found = job_.values.find(named(rank, key));
    if (found == job_.values.end())
      throw base::SetupError("rank " + std::to_string(rank) + " has not put " + std::string(key));
    return found->second;
  }
  void finalize() override {}
  [[noreturn]] void abort(int, std::string_view) override { std::abort(); }

  static std::string named(int rank, std::string_view key) {
    return std::to_string(rank) + " " + std::string(key);
  }

 private:
  FakeJob& job_;
};

// What has happened to a process; tests may hook in.
struct Sink final : ChannelSink {
  std::function<void(int, Bytes)> control = [](int, Bytes) {};
  std::map<Cookie, bool> sent, received;  // whether it went well
  std::map<int, std::string> lost;

  void on_control(int from, Bytes message) override { control(from, message); }
  void on_long_sent(Cookie cookie, bool ok) override { end(sent, cookie, ok); }
  void on_long_received(Cookie cookie, bool ok) override { end(received, cookie, ok); }
  void on_peer_lost(int peer, std::string_view why) override {
    EXPECT_TRUE(lost.emplace(peer, why).second) << "lost twice";
    EXPECT_FALSE(why.empty());
  }

 private:
  static void end(std::map<Cookie, bool>& all, Cookie cookie, bool ok) {
    EXPECT_TRUE(all.emplace(cookie, ok).second) << "transfer " << cookie << " ended twice";
  }
};

// Contents that tell where they belong.
inline std::byte pattern(std::uint64_t seed, std::size_t i) {
  return static_cast<std::byte>(((i + 1) * 2654435761u + seed * 40503u) >> 13);
}
inline std::vector<std::byte> patterned(std::uint64_t seed, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = pattern(seed, i);
  return bytes;
}

}  // namespace viaduct::mpi
