// How a request finds whoever waits for it among all processes of the host that share a NIC
// address. What is waited for is the name of an abstract unix datagram socket, and whichever
// process accepted the TCP connection sends it there. Nothing ever has to be cleaned up: names, and
// connections on their way, go with the processes that had them.
//
// Several may wait for the same: the name ends in a number, the socket's place, and requests try
// the places in order.
#pragma once

#include <functional>
#include <list>

#include "libvipl/connection/closing_connections.hpp"
#include "libvipl/connection/loop.hpp"
#include "libvipl/connection/socket.hpp"
#include "libvipl/connection/wire.hpp"

namespace viaduct::vipl {

// A request and the connection it came on.
struct PendingRequest {
  RequestBytes bytes{};
  Request request;  // the bytes, taken apart
  Descriptor connection;
};

// The name without the place: of a program that waits, or of a peer that has asked for this caller
// itself.
std::string rendezvous_name(Model model, const Endpoint& callee, const Endpoint& caller);

class RendezvousSocket {
 public:
  using Handler = std::function<void(PendingRequest pending)>;

  // Not open if all places are taken or there are no descriptors left.
  RendezvousSocket(Loop& loop, const std::string& name, Handler handler);
  RendezvousSocket(const RendezvousSocket&) = delete;
  RendezvousSocket& operator=(const RendezvousSocket&) = delete;

  bool open() const { return static_cast<bool>(socket_); }
  unsigned place() const { return place_; }
  void close();
  // Someone who has come and for whom the handler was not called yet; nullopt: nobody.
  std::optional<PendingRequest> next();

 private:
  Descriptor socket_;
  Loop::Watch watch_;  // ends before socket_ does
  unsigned place_ = 0;
};

// Takes requests to rendezvous sockets, and refuses those that nobody waits for.
class RequestRouter {
 public:
  RequestRouter(Loop& loop,
                ClosingConnections& closing);  // std::runtime_error: no descriptors left

  // A request from the network. The rendezvous socket of a stopped process takes it and does
  // nothing: so a caller that had no answer begins at the other end every second time.
  void welcome(PendingRequest pending);
  // From this place on. False: nobody waits there, and the request is still here.
  bool take_on(PendingRequest& pending, unsigned from_place, bool backwards = false);
  void take_on_or_refuse(PendingRequest pending, unsigned from_place);
  void clear() { delayed_.clear(); }

 private:
  struct Delayed {
    PendingRequest pending;
    unsigned place;
    Clock::time_point until;
  };

  void refuse(PendingRequest pending);
  void try_again();

  Loop& loop_;
  ClosingConnections& closing_;
  Descriptor sender_;
  std::list<Delayed> delayed_;  // the rendezvous socket was full
  Loop::Timer timer_;
};

}  // namespace viaduct::vipl
