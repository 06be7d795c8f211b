// A simulated network: many ports in one process on a virtual clock, with seeded faults. The same
// seed gives the same run. Models PacketDevice (SimPort), so Link and the drivers run on it as they
// do on DPDK ports.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "drivers/base/fault_injector.hpp"
#include "drivers/link/packet_device.hpp"

namespace viaduct::sim {

class SimNetwork;

struct SimFrame {
  link::FrameMeta<SimFrame> meta;
  class SimPort* owner = nullptr;
  std::uint32_t references = 0;
  std::uint32_t length = 0;
  std::vector<std::byte> bytes;
};

struct SimPortConfig {
  std::size_t mtu = 1500;
  std::size_t pool = 4096;
  std::size_t receive_ring = 1024;  // frames that arrive and are not fetched; beyond it they drop
  std::size_t transmit_burst = 32;  // the most one transmit call takes
};

class SimPort {
 public:
  using Frame = SimFrame;

  link::Address address() const { return address_; }
  std::size_t mtu() const { return config_.mtu; }
  std::size_t receive_capacity() const { return config_.receive_ring; }
  std::size_t pool_size() const { return config_.pool; }

  Frame* allocate();
  std::uint16_t transmit(Frame** burst, std::uint16_t count);
  std::uint16_t receive(Frame** burst, std::uint16_t count);
  bool may_receive() const { return true; }
  bool sleep(base::Duration, int) const { return false; }  // the clock stands still meanwhile
  void expect_transmit() {}

  static std::byte* bytes(Frame* f) { return f->bytes.data(); }
  static std::size_t length(Frame* f) { return f->length; }
  static void set_length(Frame* f, std::size_t n) { f->length = static_cast<std::uint32_t>(n); }
  static void retain(Frame* f) { ++f->references; }
  static void release(Frame* f);
  static link::FrameMeta<Frame>& meta(Frame* f) { return f->meta; }

  void set_transmit_burst(std::size_t most) { config_.transmit_burst = most; }  // 0: full
  std::size_t frames_in_use() const { return frames_.size() - free_.size(); }
  std::size_t most_frames_in_use() const { return most_in_use_; }
  std::uint64_t overruns() const { return overruns_; }  // arrived at a full ring, or found no frame

 private:
  friend class SimNetwork;
  void arrive(std::vector<std::byte> bytes);

  SimNetwork* net_ = nullptr;
  std::uint32_t index_ = 0;
  SimPortConfig config_;
  link::Address address_;
  std::vector<std::unique_ptr<SimFrame>> frames_;
  std::vector<SimFrame*> free_;
  std::deque<SimFrame*> ring_;
  std::size_t most_in_use_ = 0;
  std::uint64_t overruns_ = 0;
  base::Time wire_free_{};  // when the last frame sent has left
};

struct SimConfig {
  base::Duration latency = std::chrono::microseconds{5};  // one way
  base::Duration jitter{0};                               // added at random, 0..jitter; keeps order
  double bytes_per_ns = 1.25;                             // of each port's wire; 0: unlimited
  base::Duration reorder_delay =
      std::chrono::microseconds{20};  // the most a reordered frame is late
  std::size_t path_mtu = 0;           // frames with a larger payload vanish on the way; 0: no limit
  base::FaultSpec faults;
};

class SimNetwork {
 public:
  explicit SimNetwork(const SimConfig& config = {});

  // A port; the reference stays good as long as the net. Addresses count up from
  // 02:00:00:00:00:01.
  SimPort& add_port(const SimPortConfig& config = {});

  base::Time now() const { return now_; }
  // Moves the clock to the next arrival, or to `until` if that is earlier. True: something arrived.
  bool step(base::Time until);

  // Frames between the two ports vanish, both ways, until healed.
  void partition(const SimPort& a, const SimPort& b) { cut_.insert(pair(a, b)); }
  void heal(const SimPort& a, const SimPort& b) { cut_.erase(pair(a, b)); }
  void set_latency(base::Duration one_way) { config_.latency = one_way; }
  void set_faults(const base::FaultSpec& faults) { injector_ = base::FaultInjector(faults); }
  const base::FaultCounts& faults() const { return injector_.counts(); }
  std::uint64_t partitioned() const { return partitioned_; }

  // Sees each frame as it is sent (port index, contents), may change it; false drops it. For tests
  // that aim at one frame. Empty: none.
  std::function<bool(std::uint32_t, std::vector<std::byte>&)> hook;

  // Puts a frame on the wire as if the port had sent it; for attacks.
  void inject(SimPort& from, std::vector<std::byte> bytes) { send(from, std::move(bytes)); }

 private:
  friend class SimPort;
  struct Event {
    base::Time at;
    std::uint64_t number;  // ties are broken by the order of sending
    std::uint32_t to;
    std::vector<std::byte> bytes;
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  static Pair pair(const SimPort& a, const SimPort& b) { return std::minmax(a.index_, b.index_); }
  void send(SimPort& from, std::vector<std::byte> bytes);
  void deliver(SimPort& from, std::uint32_t to, std::vector<std::byte> bytes);

  SimConfig config_;
  base::FaultInjector injector_;
  base::Time now_{};
  std::uint64_t sent_ = 0, partitioned_ = 0;
  std::vector<std::unique_ptr<SimPort>> ports_;
  std::priority_queue<Event> events_;
  std::set<Pair> cut_;
};

}  // namespace viaduct::sim
