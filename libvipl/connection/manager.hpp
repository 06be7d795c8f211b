// Connections of one NIC handle: who waits, who asks, who is connected. docs/wire.md has the
// protocol; the names of the functions are those of VIPL.
//
// The manager has no thread. Whoever runs the NIC's event thread adds fd() to what he polls (it is
// level triggered) and calls progress() when it is readable; everything advances there. The other
// functions may be called by any thread, and block only where it is said.
//
// Lock order: the manager's lock, then what a ConnectionUser takes. So whoever calls the manager
// holds no lock that a ConnectionUser takes; fail() is the exception and may be called with any
// lock held.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "libvipl/connection/address.hpp"
#include "libvipl/connection/connection_user.hpp"
#include "libvipl/connection/deadline.hpp"

namespace viaduct::vipl {

class ConnectionTable;  // the state behind it, in connection_table.hpp
class Incoming;         // a request that a wait returned: what a VIP_CONN_HANDLE stands for

// What is known of a request before it is accepted.
struct Caller {
  Endpoint endpoint;
  Card card;
};

// What becomes of the VI itself in a function about it, and whether it still is the one that the
// program means: asked with the manager's lock held, so that no other function about the VI comes
// between this and what the manager does. Anything but VIP_SUCCESS is the function's result, and
// nothing has happened. Empty: there is nothing to ask.
using Step = std::function<VIP_RETURN()>;

class Manager {
 public:
  // Throws std::runtime_error (one sentence and its remedy) when there are no descriptors left or
  // the address is none of this host's. That the control port is taken is no error: see
  // listening().
  explicit Manager(const NicAddress& self);
  // After shutdown(), when nobody is inside a function of it.
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  const NicAddress& self() const;
  int fd() const;
  void progress();
  // Every blocked call returns VIP_ERROR_RESOURCE, now and later; returns when all have left.
  // Connections end as in disconnect().
  // `patience`: for what other sides count.
  void shutdown(Clock::duration patience = {});
  // After that: what is known of messages on unreliable VIs.
  std::string drops() const;
  // Whether this process takes requests at the control port. Not while it belongs to another user
  // (whose processes then take our requests to us) or to another program; tried again every second.
  bool listening() const;

  // Client/server. wait() blocks; a deadline in the past takes what has come since the last poll.
  VIP_RETURN wait(const Discriminator& local, Deadline deadline,
                  std::shared_ptr<Incoming>& request);
  static const Caller& caller(const Incoming& request);
  // Blocks until the other end is connected as well. The request stays usable after VIP_INVALID_*;
  // afterwards it is spent. VIP_TIMEOUT: the client no longer waits.
  static VIP_RETURN accept(const std::shared_ptr<Incoming>& request, ConnectionUser& user,
                           const Step& begin = {});
  static VIP_RETURN reject(const std::shared_ptr<Incoming>& request);
  bool is_from_here(const Incoming& request) const;
  // Blocks.
  VIP_RETURN request(ConnectionUser& user, const Discriminator& local, const Endpoint& remote,
                     Deadline deadline, Card& remote_card, const Step& begin = {});

  // Peer to peer. peer_wait() blocks. Both forget the attempt when they return anything but
  // VIP_NOT_DONE; VIP_INVALID_STATE: there is none.
  VIP_RETURN peer_request(ConnectionUser& user, const Discriminator& local, const Endpoint& remote,
                          Deadline deadline, const Step& begin = {});
  VIP_RETURN peer_done(ConnectionUser& user, Card& remote_card, const Step& check = {});
  VIP_RETURN peer_wait(ConnectionUser& user, Card& remote_card, const Step& check = {});

  // Ends the connection or the attempt, if there is any, and tells the other side; a blocked call
  // for this user returns VIP_INVALID_STATE. After `end` the user calls fail() no more, and after
  // the function it may be destroyed.
  VIP_RETURN disconnect(ConnectionUser& user, const Step& end = {});
  // The VI is in the error state because of this: the other side is told and its ConnectionUser
  // gets lost(loss). For the user here the connection is over, nothing is called. Any lock may be
  // held; never blocks.
  void fail(ConnectionUser& user, Loss loss);
  // Every connected VI of the other sides learns that the memory handle `name` stands for `key`
  // (0: for itself again), and those connected later. Blocks until all have said that they know.
  void announce(std::uint32_t name, std::uint32_t key);

 private:
  std::shared_ptr<ConnectionTable> table_;
};

}  // namespace viaduct::vipl
