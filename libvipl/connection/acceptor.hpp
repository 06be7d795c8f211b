// Acceptor: the listening TCP socket of a NIC address (the control port). It accepts connections,
// reads one connection request from each, and hands the request to the RequestRouter, which finds
// the process that waits for it.
//
// All processes of a user that have the NIC open listen at the same time (SO_REUSEPORT). So no
// process is special, and any of them may end. The caller may be anybody on the network: its bytes
// are checked, its connection is dropped after a second without a whole request, and the number of
// such connections is limited.
//
// Part of a ConnectionTable; all functions need the manager's lock, and work is done in
// Loop::run().
#pragma once

#include <list>

#include "libvipl/connection/rendezvous_socket.hpp"

namespace viaduct::vipl {

class Acceptor {
 public:
  // Begins to listen at `self`. std::runtime_error: the address is not this host's or may not be
  // used. If the port is in use by others, a line on standard error says so, and the acceptor tries
  // again every second.
  Acceptor(Loop& loop, const NicAddress& self, RequestRouter& router, ClosingConnections& closing);

  bool listening() const { return static_cast<bool>(listener_); }
  // Stops listening and drops all connections whose request has not arrived.
  void close();

 private:
  // An accepted connection whose request has not arrived whole.
  struct UnknownPeer {
    UniqueFd connection;
    Loop::Watch watch;
    Loop::Timer timer;  // the peer's time is up
    RequestBytes bytes{};
    std::size_t size = 0;
  };
  using UnknownPeers = std::list<UnknownPeer>;

  // False: errno says why.
  bool listen();
  void listen_later();
  void accept();
  void receive(UnknownPeers::iterator peer);
  void handle_request(UnknownPeers::iterator peer);

  Loop& loop_;
  const NicAddress self_;
  RequestRouter& router_;
  ClosingConnections& closing_;
  UniqueFd listener_;
  Loop::Watch watch_;  // ends before listener_ does
  Loop::Timer again_;  // to listen, or to accept, again
  UnknownPeers unknown_peers_;
};

}  // namespace viaduct::vipl
