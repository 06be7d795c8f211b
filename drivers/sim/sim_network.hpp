// A simulated network: many ports in one process on a virtual clock, with seeded faults. The same
// seed gives the same run. SimPort models PacketDevice, so Link and the drivers run on the
// simulated network as they do on DPDK ports. A discrete-event simulation: the clock moves only in
// step(), and the test that owns the network polls its links in between. One thread for network,
// ports and links.
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
  class SimPort* owner = nullptr;  // the port whose pool the frame belongs to
  std::uint32_t references = 0;
  std::uint32_t length = 0;      // of the frame, with its Ethernet header
  std::vector<std::byte> bytes;  // the whole buffer
};

struct SimPortConfig {
  std::size_t mtu = 1500;           // bytes of Ethernet payload
  std::size_t pool = 4096;          // frames, for sending and receiving together
  std::size_t receive_ring = 1024;  // frames that wait to be fetched; more are dropped
  std::size_t transmit_burst = 32;  // the most one transmit call takes
};

// A packet device (link/packet_device.hpp has the meaning of its members). SimNetwork owns its
// ports.
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
  bool sleep(base::Duration, int) const { return false; }  // the clock would stand still meanwhile
  void expect_transmit() {}

  static std::byte* bytes(Frame* f) { return f->bytes.data(); }
  static std::size_t length(Frame* f) { return f->length; }
  static void set_length(Frame* f, std::size_t n) { f->length = static_cast<std::uint32_t>(n); }
  static void retain(Frame* f) { ++f->references; }
  static void release(Frame* f);
  static link::FrameMeta<Frame>& meta(Frame* f) { return f->meta; }

  // For tests of a device that is full: how many frames a transmit call takes from now on; 0: none.
  void set_transmit_burst(std::size_t most) { config_.transmit_burst = most; }
  std::size_t frames_in_use() const { return frames_.size() - free_.size(); }
  std::size_t most_frames_in_use() const { return most_in_use_; }
  // Frames dropped on arrival, because the ring was full or the pool exhausted.
  std::uint64_t overruns() const { return overruns_; }

 private:
  friend class SimNetwork;
  void arrive(std::vector<std::byte> bytes);

  SimNetwork* net_ = nullptr;
  std::uint32_t index_ = 0;
  SimPortConfig config_;
  link::Address address_;
  std::vector<std::unique_ptr<SimFrame>> frames_;  // all that have been made
  std::vector<SimFrame*> free_;
  std::deque<SimFrame*> ring_;  // the receive ring
  std::size_t most_in_use_ = 0;
  std::uint64_t overruns_ = 0;
  base::Time wire_free_{};  // when the last frame that was sent has left
};

struct SimConfig {
  base::Duration latency = std::chrono::microseconds{5};  // one way
  base::Duration jitter{0};                               // added at random, 0..jitter; keeps order
  double bytes_per_ns = 1.25;  // of each port's wire (1.25: 10 Gbit/s); 0: unlimited
  base::Duration reorder_delay =
      std::chrono::microseconds{20};  // the most a reordered frame is late
  // Frames with a larger Ethernet payload vanish on the way, as on a wire with a smaller MTU than
  // the ports'; 0: no limit.
  std::size_t path_mtu = 0;
  base::FaultSpec faults;
};

class SimNetwork {
 public:
  explicit SimNetwork(const SimConfig& config = {});

  // Adds a port; the reference is valid as long as the network. Addresses count up from
  // 02:00:00:00:00:01.
  SimPort& add_port(const SimPortConfig& config = {});

  base::Time now() const { return now_; }
  // Moves the clock to the next arrival, or to `until` if that is earlier. True: frames have
  // arrived. The clock never runs backwards, whatever `until` says.
  bool step(base::Time until);

  // Frames between the two ports vanish, both ways, until heal(). Frames already under way arrive.
  void partition(const SimPort& a, const SimPort& b) { partitions_.insert(pair(a, b)); }
  void heal(const SimPort& a, const SimPort& b) { partitions_.erase(pair(a, b)); }
  // These apply to frames sent from now on. set_faults starts the random numbers and the counts
  // anew.
  void set_latency(base::Duration one_way) { config_.latency = one_way; }
  void set_faults(const base::FaultSpec& faults) { injector_ = base::FaultInjector(faults); }
  const base::FaultCounts& faults() const { return injector_.counts(); }
  std::uint64_t partitioned() const { return partitioned_; }

  // Called with each frame as it is sent (index of the port, contents); may change the frame; false
  // drops the frame. For tests that aim at one frame.
  std::function<bool(std::uint32_t, std::vector<std::byte>&)> hook;

  // Puts a frame on the wire as if the port had sent that frame; for tests of attacks.
  void inject(SimPort& from, std::vector<std::byte> bytes) { send(from, std::move(bytes)); }

 private:
  friend class SimPort;
  // The arrival of a frame.
  struct Event {
    base::Time at;
    std::uint64_t number;  // breaks ties by the order of sending, so that a run can be repeated
    std::uint32_t to;
    std::vector<std::byte> bytes;
    // Reversed: std::priority_queue has its greatest element on top, which has to be the earliest.
    bool operator<(const Event& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };
  using Pair = std::pair<std::uint32_t, std::uint32_t>;
  static Pair pair(const SimPort& a, const SimPort& b) { return std::minmax(a.index_, b.index_); }
  void send(SimPort& from, std::vector<std::byte> bytes);
  void schedule_arrival(SimPort& from, std::uint32_t to, std::vector<std::byte> bytes);

  SimConfig config_;
  base::FaultInjector injector_;
  base::Time now_{};  // the virtual clock
  std::uint64_t sent_ = 0, partitioned_ = 0;
  std::vector<std::unique_ptr<SimPort>> ports_;
  std::priority_queue<Event> events_;
  std::set<Pair> partitions_;  // pairs of ports that are partitioned
};

}  // namespace viaduct::sim
