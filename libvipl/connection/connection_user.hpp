// ConnectionUser: a Virtual Interface as the connection manager sees it; and what the two sides of
// a connection tell each other (EndpointInfo, Tally, CloseReason).
//
// core/vi.hpp implements ConnectionUser; tests have their own. The types are independent of the
// wire: wire.hpp encodes them.
#pragma once

#include <cstdint>

#include <vipl.h>

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::vipl {

// The endpoint address and attributes that each side sends to the other while a connection is made.
struct EndpointInfo {
  vi::QueuePairAddress queue_pair;      // GID, queue pair number, first packet sequence number, MTU
  std::uint64_t max_transfer_size = 0;  // bytes; both sides must have the same
  // One VIP_SERVICE_... bit; both sides must have the same.
  VIP_RELIABILITY_LEVEL reliability = 0;
  bool has_qos = false;     // VIP_QOS is opaque, so only NULL and not NULL are compared
  bool rdma_write = false;  // EnableRdmaWrite: the other side may write here
  bool rdma_read = false;   // EnableRdmaRead: the other side may read here
  // RDMA reads of the other side that this device serves at a time.
  std::uint8_t reads_served = 0;
};

// How many messages of a connection one side has counted. Messages are sends, and RDMA writes with
// immediate data.
struct Tally {
  std::uint64_t received = 0;  // messages that have completed a receive descriptor here
  std::uint64_t sent = 0;      // messages whose send descriptor has completed here

  bool operator==(const Tally&) const = default;
};

// Why a connection ended that the program here did not end. The values are those of the wire
// (`ended`). The manager can notice the first two itself. The others come from the other side's
// library: verbs do not tell the target of an operation that it failed.
enum class CloseReason : std::uint8_t {
  disconnected = 0,           // VipDisconnect on the other side, or its process is dead
  host_silent = 1,            // the other host no longer answers
  receive_queue_empty = 2,    // a message met no posted receive descriptor
  message_too_long = 3,       // a message was longer than the receive descriptor that it met
  rdma_write_protection = 4,  // an RDMA write was not allowed
  rdma_read_protection = 5,   // an RDMA read was not allowed
  transport = 6,              // any other failure of the other side's queue pair
};
inline constexpr std::uint8_t kLastCloseReason = 6;

// What the manager calls to make and to end the connection of a VI.
//
// The manager calls all functions with its lock held, mostly on the NIC's event thread. They may
// take locks of their own, must not block, and must not call the manager (fail() excepted). The
// manager does not own its users; Manager::disconnect() must be called before a user is destroyed.
//
// The order of the calls:
//
//          make_ready(), card()      establish()
//   attempt ----------> requesting --------------> connected ---> on_connection_lost()
//                        ^     |                       |
//                        |     | on_attempt_           | on_attempt_failed(false): the other
//                        |     v failed(false)         v   side did not finish
//                        |    end of the attempt    end of the attempt
//                        |
//                        +---- on_attempt_failed(true), then card() again: a peer goes on trying;
//                              may also follow establish()
//
// alias() may come any time after establish(). delivered() comes before on_connection_lost();
// each at most once. tally() comes when the connection ends. Manager::disconnect() ends everything:
// nothing is called after it has returned.
class ConnectionUser {
 public:
  // The handle that the program has for the VI.
  virtual VIP_VI_HANDLE name() const { return nullptr; }
  // Makes what the attempt needs of the device and was put off until now (Manager::peer_request()).
  // False: the device has none left; on_attempt_failed() follows.
  virtual bool make_ready() { return true; }
  // The card of a new attempt, with a new packet sequence number.
  virtual EndpointInfo card() = 0;
  // Connects the queue pair to that of `remote`, so that it is ready to receive and to send. The VI
  // is in the state Connected afterwards. False: the device refused; on_attempt_failed() follows.
  virtual bool establish(const EndpointInfo& remote) = 0;
  // The attempt has failed. The VI becomes Idle, or stays Connect Pending if `tries_again`: the
  // manager goes on with a new card(). Posted receive descriptors stay posted.
  virtual void on_attempt_failed(bool tries_again) = 0;
  // The messages of the connection that ends now or has ended.
  virtual Tally tally() = 0;
  // The other side's tally. Its `received` says how many sends were delivered, even if the device
  // here has no acknowledgement of the last ones. on_connection_lost() follows.
  virtual void delivered(const Tally& other) = 0;
  // The connection is gone: the VI goes to the state Error. No on_attempt_failed() follows.
  virtual void on_connection_lost(CloseReason reason) = 0;
  // From now on the other side's memory handle `name` stands for the remote key `key`. 0: the
  // handle is itself the remote key again.
  virtual void alias(std::uint32_t name, std::uint32_t key) = 0;

 protected:
  ~ConnectionUser() = default;
};

}  // namespace viaduct::vipl
