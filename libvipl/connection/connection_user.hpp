// A Virtual Interface as the connection manager sees it, and what one tells the other.
#pragma once

#include <cstdint>

#include <vipl.h>

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::vipl {

// What the two ends of a connection tell each other about themselves while it is made.
struct Card {
  vi::QueuePairAddress queue_pair;
  std::uint64_t max_transfer_size = 0;
  VIP_RELIABILITY_LEVEL reliability = 0;
  bool has_qos = false;           // VIP_QOS is opaque: only none and some can be compared
  bool rdma_write = false;        // EnableRdmaWrite: what the other may do here
  bool rdma_read = false;         // EnableRdmaRead
  std::uint8_t reads_served = 0;  // RDMA reads of the other side that are served at a time
};

// Messages of a connection, as one side has counted them: sends, and RDMA writes with immediate
// data.
struct Tally {
  std::uint64_t received = 0;  // receives that they have completed
  std::uint64_t sent = 0;      // as far as the device has said

  bool operator==(const Tally&) const = default;
};

// How a connection ended that the program here did not end. The first two are found by the manager,
// the others are what the other side says, because verbs do not tell the target of a failed
// operation.
enum class Loss : std::uint8_t {
  disconnected = 0,  // VipDisconnect, or the process is dead
  host_silent = 1,   // nothing more is heard of the other host
  receive_queue_empty = 2,
  message_too_long = 3,  // for the receive descriptor it met
  rdma_write_protection = 4,
  rdma_read_protection = 5,
  transport = 6,
};
inline constexpr std::uint8_t kLastLoss = 6;

// All functions are called by the manager with its lock held, mostly on the event thread: they may
// take locks of their own, must not block, and must not call the manager.
//
//   attempt:  card(), then either establish() or abandoned(); abandoned() may also follow a
//             successful establish() when the other side did not finish.
//   life:     alias() any time after card(), delivered() and lost() at most once after establish();
//             tally() when the connection ends here.
//   Manager::disconnect() ends either; nothing is called after it has returned.
class ConnectionUser {
 public:
  // For a new attempt: a new packet sequence number.
  virtual Card card() = 0;
  // Connects the queue pair: ready to receive and to send. The VI is connected now. False: the
  // device refused; abandoned() follows.
  virtual bool establish(const Card& remote) = 0;
  // The attempt has failed: the VI is idle again, or still connect pending if the manager goes on
  // trying with a new card(). Receives posted before stay posted.
  virtual void abandoned(bool tries_again) = 0;
  // Of the connection that ends or has ended.
  virtual Tally tally() = 0;
  // The other side's: so many messages were delivered, even if the device here has not heard of it.
  // lost() follows.
  virtual void delivered(const Tally& other) = 0;
  // The VI is in the error state now; no abandoned() follows.
  virtual void lost(Loss loss) = 0;
  // The other side's memory handle `name` stands for the remote key `key` from now on; 0: it
  // stands for itself again.
  virtual void alias(std::uint32_t name, std::uint32_t key) = 0;

 protected:
  ~ConnectionUser() = default;
};

}  // namespace viaduct::vipl
