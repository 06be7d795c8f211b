// A channel for tests of one process: what is said is noted, what others say the test makes up.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "libmpi_lite/channel/channel.hpp"

namespace viaduct::mpi {

// Notes what it is given, and does nothing by itself.
class MockChannel final : public Channel {
 public:
  static constexpr std::size_t kEager = 24, kEarly = 3;

  struct Open {
    int from;
    MutableBytes into;
    Cookie cookie;
  };
  struct Sending {
    Bytes data;
    Cookie cookie;
  };

  struct WrittenNow {
    std::vector<std::byte> data, head;
  };

  const char* name() const override { return "mock"; }
  Limits limits() const override {
    return {.control = control,
            .eager = eager,
            .early = early,
            .remote_key = remote_key,
            .writes_now = writes_now};
  }
  bool send_control(int to, Bytes head, Bytes body) override {
    if (full) return false;
    said_to.insert(to);
    said.emplace_back(head.begin(), head.end());
    said.back().insert(said.back().end(), body.begin(), body.end());
    return true;
  }
  void offer(int, Bytes, RemoteKey&) override {}
  bool open_receive(int from, MutableBytes into, const RemoteKey*, Cookie cookie,
                    RemoteKey&) override {
    if (refuse_open) return false;
    open.push_back({from, into, cookie});
    return true;
  }
  void close_receive(int, const RemoteKey&) override { ++closed; }
  bool start_send(int, Bytes data, const RemoteKey&, Cookie cookie) override {
    sending.push_back({data, cookie});
    return true;
  }
  bool write_now(int, Bytes data, const RemoteKey&, Bytes head) override {
    if (full) return false;
    written_now.push_back({{data.begin(), data.end()}, {head.begin(), head.end()}});
    return true;
  }
  void watch(int rank) override { watched.push_back(rank); }
  bool poll() override { return false; }
  bool busy() const override { return false; }
  bool sleep(std::chrono::microseconds, int bell) override {
    slept_beside.push_back(bell);
    return true;
  }
  bool arm_bell(int& armed) override {
    if (!rings) return false;
    ++bells_armed;
    if (bell >= 0) armed = bell;
    return true;
  }
  void disarm_bell() override { --bells_armed; }
  bool sleeps_lightly() const override { return lightly; }
  bool shares_cpu() override { return shares; }
  std::string describe(int) const override { return "mock"; }

  std::size_t control = 256, eager = kEager, early = kEarly;
  std::size_t remote_key = RemoteKey::kMax;
  bool writes_now = false, full = false, refuse_open = false;
  std::vector<std::vector<std::byte>> said;
  std::set<int> said_to;
  std::vector<Open> open;
  std::vector<Sending> sending;
  std::vector<WrittenNow> written_now;
  int closed = 0;
  std::vector<int> watched;
  // Sleeping: whether its bell can be armed, its descriptor; bells with which it slept itself.
  bool rings = true;
  int bell = -1, bells_armed = 0;
  std::vector<int> slept_beside;
  bool lightly = true, shares = false;
};

}  // namespace viaduct::mpi
