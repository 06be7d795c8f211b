// Manager: makes, watches and ends the connections of one NIC handle. It is the connection manager
// (CM) of InfiniBand verbs, over TCP instead of management datagrams; docs/wire.md has the
// protocol, and the names of the functions are those of VIPL 1.0.
//
// A client and a server connect, in VIPL calls and in messages (peers: session.hpp):
//
//   client's host                                   server's host
//   -------------                                   -------------
//                                                   VipConnectWait: rendezvous socket, blocks
//   VipConnectRequest
//     |-- TCP, request (REQ), aliases ------------> Acceptor of any process of the host
//     |                                               |  RequestRouter: SCM_RIGHTS to the socket
//     |                                               |  no listener:
//     |<- refused (no match) -------------------------|    VIP_NO_MATCH
//     |                                               v
//     |<- held -------------------------------------- ReceivedRequest; VipConnectWait returns it
//     |
//     |                                             VipConnectReject:
//     |<- refused (rejected) ----------------------   VIP_REJECT for the client
//     |
//     |                                             VipConnectAccept:
//     |                                               queue pair ready to receive and send
//     |<- aliases, accepted (REP) -----------------   blocks for `ready`, 10 s at most
//     |   queue pair ready to receive and send
//     |-- ready (RTU) ----------------------------> VipConnectAccept returns VIP_SUCCESS
//   VipConnectRequest returns VIP_SUCCESS
//
//     |<-- aliases (VipSetMemAttributes), both directions -->|
//
//   VipDisconnect
//     |-- ended (DREQ), FIN ----------------------> VI goes to Error; a reliable
//                                                   one reports VIP_ERROR_CONN_LOST
//     or the process dies:
//     |-- FIN or reset ---------------------------> the same
//     or the host dies: nothing comes; TCP's keepalive notices after 19 s
//
// Threads: the manager has none. The NIC's event thread, or the program that drives the NIC itself,
// polls fd(), which is level triggered, and calls progress() when it is readable; everything
// advances there. All other functions may be called by any thread at any time, and block only where
// that is said.
//
// Lock order: the manager's lock, then what a ConnectionUser takes. So the caller of a function
// here must not hold a lock that a ConnectionUser takes. fail() is the exception.
//
// Ownership: the manager owns sockets and protocol state; it does not own ConnectionUsers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "libvipl/connection/address.hpp"
#include "libvipl/connection/connection_user.hpp"
#include "libvipl/connection/socket/deadline.hpp"

namespace viaduct::vipl {

class ConnectionTable;  // the state behind it, in connection_table.hpp
class ReceivedRequest;  // a request that a wait returned: what a VIP_CONN_HANDLE stands for

// What the server learns of a client before it accepts the request.
struct Caller {
  Endpoint endpoint;
  EndpointInfo card;
};

// What the program is told by VipConnectEvent.
struct ConnectEvent {
  bool is_outcome = true;  // of a peer request of this side; else a peer asks and has no VI here
  VIP_VI_HANDLE vi = nullptr;  // outcome: of the request
  VIP_RETURN outcome = VIP_SUCCESS;
  EndpointInfo card;       // the other side's, if it is known
  Endpoint local, remote;  // as in the request of this side
};

// Of a listener for peers.
struct PeerCounts {
  std::uint64_t waiting = 0;       // requests that wait for the program, now
  std::uint64_t unauthorized = 0;  // requests without the key, so far
};

// The VI's part of a function here, e.g. its change of state. The manager calls it with its lock
// held, so no other function about the same VI comes between the step and what the manager does
// then. The step also checks that the VI is still that of the program's handle. Anything but
// VIP_SUCCESS is the result of the whole function, and nothing has happened. Empty: no step.
using Step = std::function<VIP_RETURN()>;

class Manager {
 public:
  // Listens at `self`. Throws std::runtime_error (one sentence with its remedy) when no file
  // descriptors are left or `self` is no address of this host. A control port that is in use is no
  // error, see listening().
  explicit Manager(const NicAddress& self);
  // Calls shutdown(). No thread may be inside any other function.
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  const NicAddress& self() const;
  // Readable when progress() has work to do. Owned by the manager.
  int fd() const;
  // Does all that is ready and due. Never blocks. For the event thread.
  void progress();
  // Whether the manager keeps nothing for the program, and shutdown() has not begun.
  bool is_unused() const;
  // From now on no thread calls progress() by itself: functions that block call `drive`, which
  // does; peer requests return at once, and their outcomes are events, too. `own_port`: listens at
  // a port of its own from now on, which self() has. The manager must be unused, and no thread
  // inside it; fd() is another one afterwards. Throws as the constructor does.
  void drive_by(Drive drive, bool own_port);
  // Ends everything: connections as in disconnect(); blocked calls return VIP_ERROR_RESOURCE, now
  // and later. Returns when all blocked calls have left. `tally_timeout`: how long to wait for the
  // other sides' tallies (VIADUCT_VIPL_STATS).
  void shutdown(Clock::duration tally_timeout = {});
  // After shutdown(): the statistics of messages on unreliable VIs, as a sentence.
  std::string drops() const;
  // Whether this process accepts requests at the control port. It does not while the port belongs
  // to another program, or to another user, whose VIPL processes then route this process's requests
  // to it. The manager tries again every second.
  bool listening() const;

  // VipConnectWait. Blocks. A deadline that has passed takes only a request that is there already.
  VIP_RETURN wait(const Discriminator& local, Deadline deadline,
                  std::shared_ptr<ReceivedRequest>& request);
  static const Caller& caller(const ReceivedRequest& request);
  // VipConnectAccept. Blocks until the client is connected as well. After VIP_INVALID_..., and if
  // the device refused (VIP_ERROR_RESOURCE), the request can be accepted again or rejected; after
  // VIP_SUCCESS it is spent. VIP_TIMEOUT: the client no longer waits.
  static VIP_RETURN accept(const std::shared_ptr<ReceivedRequest>& request, ConnectionUser& user,
                           const Step& begin = {});
  // VipConnectReject: tells the client, and spends the request.
  static VIP_RETURN reject(const std::shared_ptr<ReceivedRequest>& request);
  // Whether a wait() of this manager returned the request.
  bool is_from_here(const ReceivedRequest& request) const;
  // VipConnectRequest. Blocks until the outcome or the deadline.
  VIP_RETURN request(ConnectionUser& user, const Discriminator& local, const Endpoint& remote,
                     Deadline deadline, EndpointInfo& remote_card, const Step& begin = {});

  // VipConnectPeerRequest, -Done, -Wait. Only peer_wait() blocks. The outcome is returned once:
  // after any result of the latter two but VIP_NOT_DONE the attempt is forgotten, and
  // VIP_INVALID_STATE says that there is none.
  VIP_RETURN peer_request(ConnectionUser& user, const Discriminator& local, const Endpoint& remote,
                          Deadline deadline, const Step& begin = {});
  // The next event of a manager that the program drives. VIP_NOT_DONE: there is none. An outcome
  // counts as returned.
  VIP_RETURN next_event(ConnectEvent& event);
  // VipPeerListen, -StopListening, -Refuse, -Query; see peer_listeners.hpp. For a manager that the
  // program drives.
  VIP_RETURN peer_listen(const Discriminator& prefix, std::span<const std::uint8_t> key);
  VIP_RETURN peer_stop_listening(const Discriminator& prefix);
  VIP_RETURN peer_refuse(const Discriminator& local, const Endpoint& remote);
  std::optional<PeerCounts> peer_counts(const Discriminator& prefix) const;
  bool has_events() const;
  // Whether there are events, or peer requests that are still to begin.
  bool is_busy() const;
  VIP_RETURN peer_done(ConnectionUser& user, EndpointInfo& remote_card, const Step& check = {});
  VIP_RETURN peer_wait(ConnectionUser& user, EndpointInfo& remote_card, const Step& check = {});

  // VipDisconnect. Ends the connection or the attempt, if there is one, and tells the other side. A
  // call that is blocked for this user returns VIP_INVALID_STATE. `end` must make sure that the
  // user does not call fail() any more; after this function has returned the user may be destroyed.
  VIP_RETURN disconnect(ConnectionUser& user, const Step& end = {});
  // The VI of `user` has gone to the state Error. The other side is told why, and its
  // ConnectionUser gets on_connection_lost(reason). On this side the connection is over and no
  // callback follows. May be called with any lock held, by any thread; never blocks and allocates
  // nothing.
  void fail(ConnectionUser& user, CloseReason reason);
  // Tells the other sides of all connections, and of later ones, that the memory handle `name`
  // stands for the remote key `key` (0: for itself again). Blocks until all have acknowledged, at
  // most 5 s.
  void announce(std::uint32_t name, std::uint32_t key);

 private:
  std::shared_ptr<ConnectionTable> table_;
};

}  // namespace viaduct::vipl
