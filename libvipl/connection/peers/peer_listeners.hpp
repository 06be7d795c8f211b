// PeerListeners: where a NIC that its program drives is told of peers that ask and have no VI here
// (VipPeerListen).
//
// A listener has all discriminators that begin with its prefix. Every peer request for one of them,
// whichever process accepted it, comes to take(), which finds it one of these places:
//
//   request for prefix...
//     | a session here has asked that peer: Session::take_request(), the tie-break of peers
//     | without the listener's key behind the prefix: unauthorized, refused and counted
//     v
//   waiting ----- answer(): VipConnectPeerRequest for the same two endpoints ----> its session
//     |   |   '-- refuse(): VipPeerRefuse, or close() -----------------> refused (rejected)
//     |   '------ after kLongestWait: refused (no match); the peer asks again a second later
//     '---------- the peer gives up or dies ----------------------------------> forgotten
//
// So a request is never lost while its peer wants it, and what is kept of others is bounded. Peer
// sessions whose discriminator a listener has need no rendezvous socket of their own.
//
// Part of a ConnectionTable; all functions need the manager's lock.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "libvipl/connection/manager.hpp"
#include "libvipl/connection/received_request.hpp"
#include "libvipl/connection/rendezvous_socket.hpp"

namespace viaduct::vipl {

class Session;

class PeerListeners {
 public:
  // How long a request waits for the program. Then its peer is told to ask again, so that requests
  // whose program has forgotten them do not fill the table.
  static constexpr auto kLongestWait = std::chrono::seconds(30);

  explicit PeerListeners(ConnectionTable& table, Clock::duration longest_wait = kLongestWait)
      : table_(table), longest_wait_(longest_wait) {}

  // Listens until close() or clear(). `key`: the bytes that a request's discriminator must have
  // behind the prefix. VIP_INVALID_PARAMETER: that is longer than a discriminator.
  // VIP_ERROR_RESOURCE: a listener of the NIC address has this prefix already, perhaps in another
  // process, or no file descriptors are left.
  VIP_RETURN open(const Discriminator& prefix, std::span<const std::uint8_t> key);
  // Ends the listener with exactly this prefix. Requests that wait for it are refused (rejected),
  // but not those that a session here has asked for as well: sessions go on without the listener.
  // False: there is none.
  bool close(const Discriminator& prefix);
  // Whether peer requests for `local` come to a listener here.
  bool has(const Discriminator& local);
  // False: no listener has the discriminator, and the request is as it was.
  bool take(PendingRequest& pending);
  // The request that waits for a peer request of this side. nullptr: there is none.
  std::shared_ptr<ReceivedRequest> answer(const Discriminator& local, const Endpoint& remote);
  // False: there is none.
  bool refuse(const Discriminator& local, const Endpoint& remote);
  // The oldest waiting request that was not returned yet. nullptr: there is none.
  std::shared_ptr<ReceivedRequest> next();
  bool has_next() const { return !unreported_.empty(); }
  // Of the listener with exactly this prefix. nullopt: there is none.
  std::optional<PeerCounts> counts(const Discriminator& prefix);
  void clear();

 private:
  struct Listener {
    std::unique_ptr<RendezvousSocket> rendezvous;
    Discriminator needed;  // prefix and key
    std::uint64_t unauthorized = 0;
  };
  // The two endpoints of a request, as this side's request would have them.
  using EndpointPair = std::pair<Discriminator, Endpoint>;
  using Unreported = std::list<EndpointPair>;
  struct Waiting {
    std::shared_ptr<ReceivedRequest> request;
    Loop::Timer timer;
    Unreported::iterator unreported;
    bool is_reported = false;
  };

  // The listener with the longest prefix of the discriminator.
  Listener* find(const Discriminator& local);
  // The session here that the request is meant for; it may be still to begin.
  std::shared_ptr<Session> session_for(const Request& request) const;
  void let_wait(PendingRequest pending);
  void forget(const EndpointPair& pair);

  ConnectionTable& table_;
  const Clock::duration longest_wait_;
  std::map<Discriminator, Listener> listeners_;  // by prefix
  std::map<EndpointPair, Waiting> waiting_;
  Unreported unreported_;  // of waiting requests, those that next() has not returned
};

}  // namespace viaduct::vipl
