// Works around: DPDK's memif driver (seen with 22.11).
// Safe with another version: the two drivers agree on the protocol by themselves; a message of
// another length than protocol 2.0's ends the connection, and so does a handshake that the relay
// does not see the end of. Costs: a look at the control socket every 8192 empty polls (port.cpp).
//
// Stands between the driver and its peer on the control socket.
//
// DPDK's memif driver alone cannot be used by a program that must survive its peer: a client cannot
// be started before its server and never connects again; the socket of a dead server stays in the
// way of the next one; and when the peer goes, DPDK's interrupt thread unmaps the shared memory
// while the owner thread may be in the middle of a burst in it, which is a crash. So the driver is
// given a private socket, and this class passes the control messages (memif protocol 2.0, 128 bytes
// each, some with a file descriptor) between that and the real one. The driver never sees its peer
// go: it is stopped and started by the owner thread, between bursts.
#pragma once

#include <string>

#include "drivers/base/unique_fd.hpp"
#include "drivers/link/types.hpp"
#include "drivers/port/quirks/memif_rings.hpp"

namespace viaduct::port {

class MemifControl {
 public:
  // Role and socket are taken from the user's devargs. SetupError when the socket cannot be had.
  MemifControl(const std::string& requested, const std::string& devargs);
  ~MemifControl();
  MemifControl(const MemifControl&) = delete;
  MemifControl& operator=(const MemifControl&) = delete;

  // What the driver is given instead.
  const std::string& driver_devargs() const { return driver_devargs_; }
  // Once the ethdev is there.
  void attach(std::uint16_t port) { port_ = port; }

  // All that is to be done, without waiting. The owner thread calls it outside of bursts.
  void progress(base::Time now);
  bool connected() const { return state_ == State::connected; }
  // To be asked for when connected() has changed: the rings, and unknown ones when they are gone,
  // and the interrupt of the incoming one.
  MemifRing outgoing() const {
    return rings_.ring(server_ ? MemifRings::kServer : MemifRings::kClient);
  }
  MemifRing incoming() const {
    return rings_.ring(server_ ? MemifRings::kClient : MemifRings::kServer);
  }
  MemifInterrupt interrupt() const {
    return rings_.interrupt(server_ ? MemifRings::kClient : MemifRings::kServer);
  }

 private:
  enum class State : std::uint8_t { disconnected, connecting, connected, disconnecting };
  enum class ForwardResult : std::uint8_t { nothing, message, end };

  void listen_for_peers(const std::string& requested);
  void connect_peer();
  void relay_handshake(base::Time now);
  void watch_peer(base::Time now);
  void disconnect(base::Time now);
  void restart_driver(base::Time now);
  ForwardResult forward(const base::UniqueFd& from, const base::UniqueFd& to, std::uint16_t& type);
  bool driver_is_up() const;

  const bool server_;
  bool abstract_ = true;
  std::string path_, driver_path_, driver_devargs_;
  std::uint16_t port_ = 0;
  base::UniqueFd peer_listener_, driver_listener_;  // a server's, a client's
  base::UniqueFd peer_, driver_;
  State state_ = State::disconnected;
  int unanswered_ = 0;  // messages the driver has not answered: it is at work on one
  // The peer's `connected` went to a client, which does not answer it.
  bool connected_forwarded_ = false;
  base::Time next_try_{}, since_{};
  MemifRings rings_;
};

}  // namespace viaduct::port
