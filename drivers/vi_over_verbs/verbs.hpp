// What a Virtual Interface needs of an RDMA device: the verbs (InfiniBand specification, volume 1,
// chapter 11) for connected queue pairs, in the few forms in which libvipl uses them. libvipl knows
// these classes only. ibverbs.cpp implements them with libibverbs; another kind of device would be
// another Provider.
//
// Ownership: Provider -> Device -> Domain -> Region, QueuePair, and Device -> CompletionQueue. What
// a function returns as a unique_ptr is the caller's, who destroys it before the object that made
// it, and a completion queue after the queue pairs that use it.
//
// Thread rule: that of libibverbs. Any thread may call any function at any time. Only the
// destruction of an object must wait until no other thread uses that object.
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

// The address of a queue pair, which the other side needs to connect. It travels in
// connection requests and their answers (libvipl/connection).
struct QueuePairAddress {
  std::array<std::uint8_t, 16> gid{};  // of the port: for RoCE v2 an IPv4-mapped IPv6 address
  std::uint32_t number = 0;            // of the queue pair, 24 bits
  std::uint32_t psn = 0;  // packet sequence number of the first packet that it sends, 24 bits
  std::uint32_t mtu = 0;  // bytes a packet can carry
};

// ---- work and its completion ----
//
// These structures have the layout and the numbers of libibverbs (ibv_sge, ibv_recv_wr,
// ibv_send_wr, ibv_wc), so that a work request needs no conversion on its way; static_asserts in
// ibverbs.cpp make sure of that. Their fields have no initializers, because one is made for each
// descriptor and clearing it would cost time.

// A range of local memory: one entry of a scatter or gather list.
struct Segment {
  std::uint64_t address;
  std::uint32_t length;
  std::uint32_t key;  // Region::local_key()
};

// A receive work request.
struct ReceiveWork {
  std::uint64_t id;  // returned in the completion
  const void* next;  // nullptr
  const Segment* segments;
  std::uint32_t count;  // of segments

  std::span<const Segment> list() const { return {segments, count}; }
};

// Operations of a send work request.
enum class Operation : std::uint32_t {
  rdma_write = 0,
  rdma_write_with_immediate = 1,
  send = 2,
  send_with_immediate = 3,
  rdma_read = 4,
};

// Operation and flags of a send work request.
struct Verb {
  static constexpr std::uint32_t kFence = 1;     // begins when earlier RDMA reads are complete
  static constexpr std::uint32_t kSignaled = 2;  // a success makes a completion, too

  Operation operation;
  std::uint32_t flags;
};

// A send work request: a send, an RDMA write or an RDMA read.
struct SendWork {
  std::uint64_t id;  // returned in the completion
  const void* next;  // nullptr
  const Segment* segments;
  std::uint32_t count;  // of segments
  Verb verb;
  std::uint32_t network_immediate;  // immediate data, big endian
  std::uint64_t remote_address;     // of RDMA operations, like all that follows
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

// The status of a completion, with the numbers of ibv_wc_status. Values that are not listed here
// are failures, too.
enum class Outcome : std::uint32_t {
  success = 0,
  local_length = 1,            // more than the device can send, or than the receive has room for
  local_operation = 2,         // the device could not do the work
  local_protection = 4,        // a local segment outside its region, or an invalid key
  flushed = 5,                 // the queue pair went into the error state before
  local_access = 8,            // an RDMA write of the other side broke a rule here
  remote_invalid_request = 9,  // the other side refused: too long, or an operation it forbids
  remote_access = 10,          // ... or there is no such key, range or right
  remote_operation = 11,       // ... or it failed there
  unanswered = 12,             // retry count exceeded: no acknowledgement came
  receiver_not_ready = 13,     // RNR retry count exceeded: no receive was posted there
};

// A work completion. After a failure only id, outcome, device_error and queue_pair are set.
struct Completion {
  std::uint64_t id;  // of the work request
  Outcome outcome;
  std::uint32_t operation;          // of receives that succeeded: which kind of message consumed it
  std::uint32_t device_error;       // the vendor's number for a failure
  std::uint32_t length;             // of receives that succeeded, like all that follows
  std::uint32_t network_immediate;  // big endian
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
  // Takes up to `most` completions into `to`, which has room for them. The number taken; negative:
  // an error. (These are the terms of ibv_poll_cq(), which is called directly.)
  virtual int poll(int most, Completion* to) = 0;
  // Asks for one event on Device::completion_fd() when the next completion comes. A completion that
  // came before the arming makes no event. So: arm, then poll again, then wait. False: an error.
  virtual bool arm() = 0;
  // The number of completions that the queue has room for.
  virtual std::size_t capacity() const = 0;
  // Completions in the queue stay. False: the device cannot do it; nothing has changed.
  virtual bool resize(std::size_t capacity) = 0;
};

// Registered memory (a memory region); deregistered by its destruction. The memory is the caller's.
class Region {
 public:
  virtual ~Region() = default;
  virtual std::uint32_t local_key() const = 0;
  virtual std::uint32_t remote_key() const = 0;  // 0: the other side has no right to the memory
};

// What the other side may do by RDMA, with a region or through a queue pair. It needs the right of
// both.
struct Rights {
  bool write = false;
  bool read = false;

  bool operator==(const Rights&) const = default;
};

// Everything that connecting a queue pair needs.
struct ConnectAttributes {
  QueuePairAddress remote;
  std::uint32_t psn = 0;           // of our first packet: the number that the other side was told
  std::uint8_t reads_asked = 0;    // RDMA reads under way at a time as initiator...
  std::uint8_t reads_served = 0;   // ... and as target
  std::uint8_t traffic_class = 0;  // of our packets, in their IP headers (DSCP in the upper 6 bits)
};

// A queue pair: reliable connection (RC) or unreliable connection (UC). Its states are those of the
// InfiniBand specification, volume 1, 10.3.1; send queue drained and send queue error are not used.
// libvipl/core/vi.cpp drives the queue pair of a Virtual Interface through them:
//
//   state of the VI                        state of its queue pair
//
//   Idle                                   none, or Init after an attempt that failed
//     | VipConnect...Request,                | create_queue_pair() makes it: Reset
//     | VipConnectAccept                     | prepare(): Reset -> Init
//     v                                      v
//   Connect Pending                        Init              receives are posted here
//     |      | attempt fails or times out    | reset(), prepare(): Init again; then the VI is Idle,
//     |      '-------> Idle                  |   or Connect Pending again if it tries again
//     | both sides have the                  | connect(): Init -> Ready to Receive
//     | other's address                      |                 -> Ready to Send
//     v                                      v
//   Connected                              Ready to Send     sends are posted here
//     |      |                               |
//     |      | unreliable VI, queue pair     | the device: Ready to Send -> Error; then
//     |      | fails: stays Connected        |   reset(), prepare(), connect() again
//     |      |                               |
//     | reliable VI: a completion or an      | fail(): Ready to Send -> Error, unless the
//     | event says so; any VI: the other     |   device has done so already
//     | side or the device has ended         |
//     v                                      v
//   Error                                  Error             what is posted completes flushed
//     | VipDisconnect, also from             | reset(): any -> Reset, then destroyed
//     v Connected and Connect Pending        v
//   Idle                                   none
class QueuePair {
 public:
  virtual ~QueuePair() = default;
  // With a new random packet sequence number at each call; the caller keeps it for connect(). Late
  // packets of an earlier connection then most likely have numbers that the device drops.
  virtual QueuePairAddress address() const = 0;
  // prepare(), connect(), fail() and reset() change the state. False: the device refused.
  // Reset -> Init: receives may be posted.
  virtual bool prepare(Rights rights) = 0;
  // Init -> Ready to Receive -> Ready to Send. After a failure the state is Init or
  // Ready to Receive.
  virtual bool connect(const ConnectAttributes& plan) = 0;
  // Any -> Error: what is posted completes as flushed.
  virtual bool fail() = 0;
  // Whether the queue pair is in the error state, or cannot be asked.
  virtual bool has_failed() = 0;
  // Any -> Reset: what is posted is gone, and no completion appears from now on.
  virtual bool reset() = 0;

  // Posts one work request (rings the doorbell). 0, or an errno: then nothing is posted. Never
  // blocks, allocates nothing. The device reads the request and its segment list before the call
  // returns, but the memory in the segments until the completion.
  virtual int post_send(const SendWork& work) = 0;
  virtual int post_receive(const ReceiveWork& work) = 0;
};

// What a queue pair is made with. The completion queues stay the caller's and outlive it.
struct QueuePairAttributes {
  CompletionQueue* send_completions = nullptr;
  CompletionQueue* receive_completions = nullptr;
  std::uint32_t sends = 0, receives = 0;  // most that are posted and not completed
  std::uint32_t segments = 0;             // of one work request, at most
  // RC. False, UC: a message that is lost, or meets no receive, is dropped; a send completes when
  // it has left.
  bool reliable = true;
  void* owner = nullptr;  // returned in asynchronous events
};

// A protection domain: a queue pair can use only regions of its own domain, for its own work as for
// RDMA of the other side. VIA's protection tags are made of these.
class Domain {
 public:
  virtual ~Domain() = default;
  // Both return nullptr when the device or the operating system has no room or refuses.
  virtual std::unique_ptr<Region> register_memory(void* address, std::size_t bytes,
                                                  Rights rights) = 0;
  virtual std::unique_ptr<QueuePair> create_queue_pair(const QueuePairAttributes& plan) = 0;
};

// An asynchronous event of the device, which belongs to no completion.
struct AsyncEvent {
  enum class Kind : std::uint8_t {
    queue_pair_error,        // owner: of the queue pair
    remote_access,           // likewise; the other side broke a rule, and its device tells it
    completion_queue_error,  // owner: of the completion queue
    device_error,
    other,
  };
  Kind kind = Kind::other;
  void* owner = nullptr;
};

// Limits of the device and of its port.
struct Limits {
  std::uint32_t queue_depth = 0;    // work requests in a send or receive queue
  std::uint32_t segments = 0;       // of one work request
  std::uint32_t read_segments = 0;  // of one that is an RDMA read
  std::uint32_t completion_queues = 0;
  std::uint32_t completions = 0;  // of one completion queue
  std::uint32_t queue_pairs = 0;
  std::uint32_t regions = 0;
  std::uint32_t domains = 0;
  std::uint64_t region_bytes = 0;
  std::uint32_t message_bytes = 0;
  std::uint32_t mtu = 0;          // payload bytes of one packet
  std::uint8_t reads_asked = 0;   // RDMA reads at a time that a queue pair initiates...
  std::uint8_t reads_served = 0;  // ... and that it answers as target; 0: none
  std::uint32_t hardware_version = 0;
  bool unreliable = false;  // the device can make unreliable (UC) queue pairs
};

// An open device and its one port. All completion queues of a device share one descriptor for
// events.
class Device {
 public:
  virtual ~Device() = default;
  virtual const Limits& limits() const = 0;
  virtual std::unique_ptr<Domain> create_domain() = 0;
  // `owner` is returned in events. The queue may get more room than `capacity`. nullptr: no room.
  virtual std::unique_ptr<CompletionQueue> create_completion_queue(std::size_t capacity,
                                                                   void* owner) = 0;
  // Both descriptors are the device's, non-blocking, and readable when there are events to take.
  // Here are those of armed completion queues: the next function returns the owner of such a queue.
  virtual int completion_fd() const = 0;
  virtual void* next_completion_event() = 0;  // nullptr: no more
  // Here are all other events.
  virtual int async_fd() const = 0;
  virtual std::optional<AsyncEvent> next_async_event() = 0;
};

// An IPv4 address of a port, and the entry of the port's GID table that stands for it.
struct PortAddress {
  std::array<std::uint8_t, 4> ip{};
  std::uint8_t gid_index = 0;
  std::string interface;  // that has the address; a VLAN has one of its own
};

// One port of a device of this host; a device with two ports is listed twice.
struct DeviceInfo {
  std::string name;                  // "rxe1", "mlx5_0"
  std::string interface;             // its network interface, "eth1"; empty: none is known
  std::array<std::uint8_t, 4> ip{};  // the address whose GID is used: the first, or see use()
  bool usable = false;               // the port has such an address, and is up
  std::string problem;               // why it is not usable, and the remedy: one sentence
  std::uint8_t port = 1;
  std::uint8_t gid_index = 0;
  std::vector<PortAddress> addresses;  // all IPv4 addresses of the port

  // Chooses another address than the first for open().
  void use(const PortAddress& address) {
    ip = address.ip;
    gid_index = address.gid_index;
    interface = address.interface;
  }
};

// A source of devices. One object serves the whole process.
class Provider {
 public:
  virtual ~Provider() = default;
  // All ports of all devices, in the order of their names, also those that are not usable.
  virtual std::vector<DeviceInfo> devices() = 0;
  // Opens the device with its chosen port and address. Throws SetupError with the remedy.
  virtual std::unique_ptr<Device> open(const DeviceInfo& device) = 0;
};

}  // namespace viaduct::vi
