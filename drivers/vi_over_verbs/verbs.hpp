// What a Virtual Interface needs of a device: the verbs of connections, in the few forms
// in which they are used. ibverbs.cpp puts libibverbs behind it; another device of that kind is
// another Provider.
//
// Thread-safety is that of libibverbs: every function may be called by any thread at any time,
// except that one object is destroyed by one thread, when nobody else uses it.
#pragma once

#include <endian.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "drivers/base/setup_error.hpp"

namespace viaduct::vi {

using viaduct::base::SetupError;

// Where a queue pair is, for the other side. Travels in connection requests.
struct QueuePairAddress {
  std::array<std::uint8_t, 16> gid{};
  std::uint32_t number = 0;
  std::uint32_t psn = 0;  // of the first packet it will send
  std::uint32_t mtu = 0;  // bytes a packet can carry
};

// ---- work and its completion ----
//
// Laid out as libibverbs has them, and with its numbers, so that nothing is converted on the way;
// ibverbs.cpp makes sure of that. Nothing is cleared when it is made, because that happens for each
// descriptor.

// Bytes of local memory.
struct Segment {
  std::uint64_t address;
  std::uint32_t length;
  std::uint32_t key;  // Region::local_key()
};

struct ReceiveWork {
  std::uint64_t id;
  const void* next;  // nullptr
  const Segment* segments;
  std::uint32_t count;  // of segments

  std::span<const Segment> list() const { return {segments, count}; }
};

enum class Operation : std::uint32_t {
  rdma_write = 0,
  rdma_write_with_immediate = 1,
  send = 2,
  send_with_immediate = 3,
  rdma_read = 4,
};

// What is to be done, and how.
struct Verb {
  static constexpr std::uint32_t kFence = 1;  // not before earlier RDMA reads are complete
  static constexpr std::uint32_t kSignaled = 2;

  Operation operation;
  std::uint32_t flags;
};

struct SendWork {
  std::uint64_t id;
  const void* next;  // nullptr
  const Segment* segments;
  std::uint32_t count;  // of segments
  Verb verb;
  std::uint32_t network_immediate;
  std::uint64_t remote_address;  // of RDMA operations, like all that follows
  std::uint32_t remote_key;
  std::array<std::uint64_t, 9> other;  // of operations that are not used here

  std::span<const Segment> list() const { return {segments, count}; }
  bool has_immediate() const {
    return verb.operation == Operation::rdma_write_with_immediate ||
           verb.operation == Operation::send_with_immediate;
  }
  bool is_write() const {
    return verb.operation == Operation::rdma_write ||
           verb.operation == Operation::rdma_write_with_immediate;
  }
};

// Other values are failures too.
enum class Outcome : std::uint32_t {
  success = 0,
  local_length = 1,            // more than the device can send, or than the receive has room for
  local_operation = 2,         // the device could not do the work
  local_protection = 4,        // a local segment outside its region, or a key that is none
  flushed = 5,                 // the queue pair went into the error state before
  local_access = 8,            // a receive met an RDMA write that went too far
  remote_invalid_request = 9,  // the other side refused: too long, or an operation it forbids
  remote_access = 10,          // ... or a key, range or right that is none
  remote_operation = 11,       // ... or it failed there
  unanswered = 12,             // nothing came back
  receiver_not_ready = 13,     // no receive was posted there
};

struct Completion {
  std::uint64_t id;
  Outcome outcome;
  std::uint32_t operation;  // of receives that succeeded: which kind of message consumed it
  std::uint32_t device_error;
  std::uint32_t length;  // of receives that succeeded, like all that follows
  std::uint32_t network_immediate;
  std::uint32_t queue_pair, other_queue_pair;
  std::uint32_t flags;
  std::uint16_t partition, source;
  std::uint8_t service_level, path;

  static constexpr std::uint32_t kByRdmaWrite = 129, kWithImmediate = 2;
  bool by_rdma_write() const { return operation == kByRdmaWrite; }
  bool has_immediate() const { return (flags & kWithImmediate) != 0; }
  std::uint32_t immediate() const { return be32toh(network_immediate); }
};

class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  // Takes up to `most`, which `to` has room for; the number taken, or negative: an error. (As
  // ibv_poll_cq() does, which is all there is behind it.)
  virtual int poll(int most, Completion* to) = 0;
  // One event for the next completion. To miss none: arm, then poll again, then wait.
  virtual bool arm() = 0;
  // How many completions it holds at least.
  virtual std::size_t capacity() const = 0;
  virtual bool resize(std::size_t capacity) = 0;
};

// Registered memory.
class Region {
 public:
  virtual ~Region() = default;
  virtual std::uint32_t local_key() const = 0;
  virtual std::uint32_t remote_key() const = 0;  // 0 if nobody else may use it
};

// What the other side may do.
struct Rights {
  bool write = false;
  bool read = false;

  bool operator==(const Rights&) const = default;
};

struct ConnectionPlan {
  QueuePairAddress remote;
  std::uint32_t psn = 0;           // of our first packet: what the other side was told
  std::uint8_t reads_asked = 0;    // RDMA reads at a time, of ours...
  std::uint8_t reads_served = 0;   // ... and of theirs
  std::uint8_t traffic_class = 0;  // of our packets, in their IP headers
};

// States as in the InfiniBand specification, 10.3.1.
class QueuePair {
 public:
  virtual ~QueuePair() = default;
  virtual QueuePairAddress address() const = 0;  // psn: a new random one at each call
  // Reset -> Init: receives may be posted.
  virtual bool prepare(Rights rights) = 0;
  // Init -> Ready to Send.
  virtual bool connect(const ConnectionPlan& plan) = 0;
  // Any -> Error: what is posted completes as flushed.
  virtual bool fail() = 0;
  // Whether it is in that state.
  virtual bool has_failed() = 0;
  // Any -> Reset: what is posted is gone, and no completion appears from now on.
  virtual bool reset() = 0;

  // 0; otherwise it is not posted, an errno says why. Never blocks, allocates nothing.
  virtual int post_send(const SendWork& work) = 0;
  virtual int post_receive(const ReceiveWork& work) = 0;
};

struct QueuePairPlan {
  CompletionQueue* send_completions = nullptr;
  CompletionQueue* receive_completions = nullptr;
  std::uint32_t sends = 0, receives = 0;  // posted and not completed
  std::uint32_t segments = 0;             // of one of them
  // Or else what does not arrive, or meets no receive, is dropped: work is done when it is sent.
  bool reliable = true;
  void* owner = nullptr;  // returned in events
};

// A protection domain: queue pairs use regions of their own domain only, from near and from afar.
class Domain {
 public:
  virtual ~Domain() = default;
  // nullptr: the device or the operating system has no room or refuses.
  virtual std::unique_ptr<Region> register_memory(void* address, std::size_t bytes,
                                                  Rights rights) = 0;
  virtual std::unique_ptr<QueuePair> create_queue_pair(const QueuePairPlan& plan) = 0;
};

// Something the device has to say that belongs to no completion.
struct AsyncEvent {
  enum class Kind : std::uint8_t {
    queue_pair_error,        // owner: of the queue pair
    remote_access,           // likewise; the other side has done what it must not, and hears of it
    completion_queue_error,  // owner: of the completion queue
    device_error,
    other,
  };
  Kind kind = Kind::other;
  void* owner = nullptr;
};

struct Limits {
  std::uint32_t queue_depth = 0;
  std::uint32_t segments = 0;       // of one work
  std::uint32_t read_segments = 0;  // of one that is an RDMA read
  std::uint32_t completion_queues = 0;
  std::uint32_t completions = 0;  // of one completion queue
  std::uint32_t queue_pairs = 0;
  std::uint32_t regions = 0;
  std::uint32_t domains = 0;
  std::uint64_t region_bytes = 0;
  std::uint32_t message_bytes = 0;
  std::uint32_t mtu = 0;
  std::uint8_t reads_asked = 0;   // RDMA reads at a time, of a queue pair...
  std::uint8_t reads_served = 0;  // ... and that it answers; 0: none
  std::uint32_t hardware_version = 0;
  bool unreliable = false;  // there are queue pairs that are not reliable
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const Limits& limits() const = 0;
  virtual std::unique_ptr<Domain> create_domain() = 0;
  // `owner` is returned in events. nullptr: no room.
  virtual std::unique_ptr<CompletionQueue> create_completion_queue(std::size_t capacity,
                                                                   void* owner) = 0;
  // Readable when there are events to take: of armed completion queues (their owners)...
  virtual int completion_fd() const = 0;
  virtual void* next_completion_event() = 0;  // nullptr: no more
  // ... and others.
  virtual int async_fd() const = 0;
  virtual std::optional<AsyncEvent> next_async_event() = 0;
};

// An IPv4 address of a port, as its queue pairs use it.
struct PortAddress {
  std::array<std::uint8_t, 4> ip{};
  std::uint8_t gid_index = 0;
  std::string interface;
};

// A device of this host and the one port of it that is used.
struct DeviceInfo {
  std::string name;                  // "rxe1", "mlx5_0"
  std::string interface;             // its network interface, "eth1"; empty: none is known
  std::array<std::uint8_t, 4> ip{};  // the address whose GID is used: the first, or see use()
  bool usable = false;               // there is such an address, and the port is up
  std::string problem;               // why not, and the remedy: one sentence
  std::uint8_t port = 1;
  std::uint8_t gid_index = 0;
  std::vector<PortAddress> addresses;  // all there are

  void use(const PortAddress& address) {
    ip = address.ip;
    gid_index = address.gid_index;
    interface = address.interface;
  }
};

class Provider {
 public:
  virtual ~Provider() = default;
  // All there are, in the order of their names.
  virtual std::vector<DeviceInfo> devices() = 0;
  // Throws SetupError.
  virtual std::unique_ptr<Device> open(const DeviceInfo& device) = 0;
};

}  // namespace viaduct::vi
