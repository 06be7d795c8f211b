// RendezvousSocket and RequestRouter: how a connection request finds the process that listens for
// it, among all processes of the host that share a NIC address.
//
// The listener's name is the name of an abstract unix datagram socket. Whichever process accepted
// the TCP connection sends the request and the connection (SCM_RIGHTS) to that name. Nothing ever
// has to be cleaned up: the kernel removes names, and connections under way, with the processes
// that had them.
//
// Several processes may listen for the same. So each name ends in a number, the socket's place (0
// to 15), and a router tries the places in order.
//
// Both are parts of a ConnectionTable; all functions need the manager's lock.
#pragma once

#include <functional>
#include <list>

#include "libvipl/connection/closing_connections.hpp"
#include "libvipl/connection/socket/loop.hpp"
#include "libvipl/connection/socket/socket.hpp"
#include "libvipl/connection/wire.hpp"

namespace viaduct::vipl {

// A connection request on its way to its listener. It owns the TCP connection.
struct PendingRequest {
  RequestBytes bytes{};  // as received; passed on unchanged
  Request request;       // the same, parsed
  UniqueFd connection;
};

// The name without the place. Client/server: of the listeners of `callee`. Peers: of the peer at
// `callee` that has itself asked for `caller`.
std::string rendezvous_name(Model model, const Endpoint& callee, const Endpoint& caller);
// The same of the listener for peers whose discriminators at `nic` begin with `prefix`
// (peer_listeners.hpp). It has place 0.
std::string listener_name(const NicAddress& nic, const Discriminator& prefix);

// The listening end of a name.
class RendezvousSocket {
 public:
  using Handler = std::function<void(PendingRequest pending)>;

  // Takes the first free place of the name. Calls `handler` for each request that arrives. Not
  // open() afterwards: all places are taken, or no file descriptors are left.
  RendezvousSocket(Loop& loop, const std::string& name, Handler handler);
  RendezvousSocket(const RendezvousSocket&) = delete;
  RendezvousSocket& operator=(const RendezvousSocket&) = delete;

  bool open() const { return static_cast<bool>(socket_); }
  unsigned place() const { return place_; }
  void close();
  // A request that has arrived and for which the handler was not called yet.
  std::optional<PendingRequest> next();

 private:
  UniqueFd socket_;
  Loop::Watch watch_;  // ends before socket_ does
  unsigned place_ = 0;
};

// The sending end: routes requests to rendezvous sockets of any process of this host, and refuses
// those for which no process listens.
class RequestRouter {
 public:
  // std::runtime_error: no file descriptors are left.
  RequestRouter(Loop& loop,
                ClosingConnections& closing);  // std::runtime_error: no descriptors left

  // Routes a request that came from the network. The rendezvous socket of a stopped process accepts
  // a request, but the process does nothing with it. So for a caller that got no answer the first
  // time, the places are tried in the opposite order every second time.
  void route_new(PendingRequest pending);
  // Hands the request to the first socket at `from_place` or behind it. A socket that is full is
  // tried again for a second. False: no process listens there, and `pending` still has the
  // connection.
  bool route(PendingRequest& pending, unsigned from_place, bool backwards = false);
  // The same, and refuses (no match) if no process listens.
  void route_or_refuse(PendingRequest pending, unsigned from_place);
  void clear() { delayed_.clear(); }

  // Called with each request that came from the network; true: it is taken. Processes whose
  // listeners have all requests need not send them through the kernel to themselves.
  void try_first(std::function<bool(PendingRequest&)> taker) { taker_ = std::move(taker); }
  // This process has a listener with a prefix of `bytes`. Others of the same job most likely have
  // the same, so their names are tried before those of single peers, of which there may be 16.
  void expect_listeners(std::size_t bytes) { expected_ |= 1u << bytes; }

 private:
  // A request whose rendezvous socket was full.
  struct Delayed {
    PendingRequest pending;
    unsigned place;           // the first one that was full
    Clock::time_point until;  // then the request is refused
  };

  // Hands the request to the listener of the longest prefix, of those lengths that `lengths` has a
  // bit for.
  HandOverResult hand_to_listener(PendingRequest& pending, std::uint32_t lengths);
  void refuse(PendingRequest pending);
  void try_again();

  Loop& loop_;
  ClosingConnections& closing_;
  UniqueFd sender_;
  std::function<bool(PendingRequest&)> taker_;
  std::uint32_t expected_ = 0;  // a bit for each length of a prefix
  std::list<Delayed> delayed_;  // in the order of arrival
  Loop::Timer timer_;
};

}  // namespace viaduct::vipl
