// The control port: accepts TCP connections, reads one connection request from each and hands it to
// the rendezvous socket where it is awaited, in whichever process that is. All processes of a user
// that have the NIC open listen at once (SO_REUSEPORT), so there is no first one that must stay.
// The peer may be anybody: its bytes are checked, nothing waits for longer than a second, and only
// so many connections at a time.
#pragma once

#include <list>

#include "libvipl/connection/rendezvous_socket.hpp"

namespace viaduct::vipl {

class Acceptor {
 public:
  // std::runtime_error: nobody can listen there, now or later. When somebody else does, that is
  // said on standard error and tried again.
  Acceptor(Loop& loop, const NicAddress& self, RequestRouter& router, ClosingConnections& closing);

  bool listening() const { return static_cast<bool>(listener_); }
  void close();

 private:
  // A connection on which the request has not yet arrived whole.
  struct UnknownPeer {
    Descriptor connection;
    Loop::Watch watch;
    Loop::Timer timer;
    RequestBytes bytes{};
    std::size_t size = 0;
  };
  using UnknownPeers = std::list<UnknownPeer>;

  bool listen();
  void listen_later();
  void accept();
  void receive(UnknownPeers::iterator peer);
  void understand(UnknownPeers::iterator peer);

  Loop& loop_;
  const NicAddress self_;
  RequestRouter& router_;
  ClosingConnections& closing_;
  Descriptor listener_;
  Loop::Watch watch_;  // ends before listener_ does
  Loop::Timer again_;
  UnknownPeers unknown_peers_;
};

}  // namespace viaduct::vipl
