// Session: an attempt to connect one ConnectionUser (a VI), and then its connection.
//
// Sessions are shared: the ConnectionTable has the current one of each user, and a blocked thread
// keeps the one that it waits for. A session must end (close(), fail(), or by itself) before its
// user is destroyed.
//
// Peers: both sides send a request. When the two requests cross, the side with the higher (NIC
// address, nonce) keeps the other's request until the outcome of its own is known; the other side
// answers at once and drops its own. So exactly one of the two requests makes the connection,
// whatever is lost and whichever process dies. (VI/TCP, draft-dicecco-vitcp-01, has the same rule
// for addresses.)
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "libvipl/connection/received_request.hpp"
#include "libvipl/connection/rendezvous_socket.hpp"
#include "libvipl/connection/socket/wakeups.hpp"

namespace viaduct::vipl {

class Session;

// A queue of peer sessions. Each session has a node that moves between the queues of the table and
// itself: that takes the same time however many there are, and allocates nothing.
using Sessions = std::list<Session*>;

// All functions need the manager's lock, and so do the callbacks, which come from Loop::run().
class Session final : public StreamOwner, public std::enable_shared_from_this<Session> {
 public:
  enum class Role { client, server, peer };

  Session(ConnectionTable& table, ConnectionUser& user, Role role);
  ~Session();

  // Active open, for clients and peers: sends a connection request, and again whenever there is no
  // answer, until the deadline. Never blocks; the outcome may be there already.
  void open_active(const Discriminator& local, const Endpoint& remote, Deadline deadline);
  // The same for peers, but only enters the session in the table's `put_off`.
  void open_later(const Discriminator& local, const Endpoint& remote, Deadline deadline);
  // Does what open_later() has put off.
  void begin_put_off();
  // Passive open, for servers and peers: connects to the caller of `incoming`, which must still
  // wait. A server's request stays unanswered, and can be accepted again, if the attributes do not
  // match (VIP_INVALID_...) or the device refuses (VIP_ERROR_RESOURCE).
  void open_passive(const std::shared_ptr<ReceivedRequest>& incoming);
  // Peers: whether this request is the other peer's, and the attempt has no outcome yet.
  bool wants(const Request& request) const;
  // False: what open_later() has put off is still to be done. It finds the request that waits.
  bool has_begun() const;
  // Takes the other peer's request, which wants() has found to be for this session, which has
  // begun.
  void take_request(PendingRequest pending);
  // Peers: a listener may have been closed that had this session's discriminator.
  void on_listener_closed();
  // VipDisconnect: tells the other side if the two are connected. No callback follows. `outcome` is
  // what a thread that still waits returns.
  void close(VIP_RETURN outcome);
  // The VI here has failed because of `reason`: tells the other side the reason. No callback
  // follows.
  void fail(CloseReason reason);
  // Sends an alias, if the other side is to know of it already; others are sent with the request or
  // with the answer.
  void announce(std::uint32_t name, std::uint32_t key);

  // Blocks until there is an outcome. Gives up `lock`, the manager's, meanwhile.
  VIP_RETURN wait(std::unique_lock<std::mutex>& lock);
  // What became of the attempt; nullopt: not yet known. It stays VIP_SUCCESS when the connection
  // ends.
  std::optional<VIP_RETURN> outcome() const { return outcome_; }
  const EndpointInfo& remote_card() const { return remote_card_; }
  Role role() const { return role_; }
  // Peers: whether VipConnectPeerDone or -Wait, or an event, has returned the outcome.
  bool outcome_reported() const { return outcome_reported_; }
  void set_outcome_reported();
  ConnectionUser& user() const { return user_; }
  const Endpoint& local() const { return local_; }
  const Endpoint& remote() const { return remote_; }
  // Over, and no call can still ask for the outcome: the table may drop it.
  bool finished() const {
    return state_ == State::over && (role_ != Role::peer || outcome_reported_);
  }
  // Whether the other side has acknowledged every alias, or there is none that could.
  bool all_acked() const {
    return unacked_aliases_ == 0 || stream_ == nullptr || state_ == State::requesting;
  }

 private:
  // REQ, REP and RTU are the connection request, reply and ready-to-use of InfiniBand's connection
  // manager; wire.hpp calls them Request, `accepted` and `ready`.
  //
  //               open_active(), open_later()       open_passive(), servers at once
  //                     |                                          |
  //                     v        peer: the other's REQ is          v
  //    no answer:  +------------+   answered, ours is dropped +-----------+
  //    REQ again   |            | --------------------------> |           |
  //        +-------| requesting |        REP sent             | accepting |
  //        +------>|            | <-------------------------- |           |
  //                +------------+   peer: no RTU in 10 s, or  +-----------+
  //                   |   |         the other side is gone,      |    |
  //                   |   |         or asks again                |    |
  //                   |   |                                      |    | no RTU in 10 s, or the
  //                   |   | REP received, RTU sent  RTU received |    | client is gone: TIMEOUT
  //                   |   |         +-----------+                |    |
  //                   |   +-------->| connected |<---------------+    |
  //                   |             +-----------+                     |
  //                   |                  | `ended` or FIN received;   |
  //        refused,   |                  | close(), fail()            |
  //        deadline,  |                  v                            |
  //        mismatch   |              +------+                         |
  //                   +------------->| over |<------------------------+
  //                                  +------+
  //
  // close() leads from every state to over, and so does a device that refuses to connect; a peer's
  // deadline also ends accepting. A client's request ends, too, with an error of the network or of
  // this host (on_connect_error()). Attributes that do not match lead from open_passive() to over
  // at once. fail() in accepting counts as in connected: the other side is connected.
  enum class State { requesting, accepting, connected, over };

  // active_open.cpp: this side's request.
  void on_connected(Stream& stream, int error) override;
  void open(const Discriminator& local, const Endpoint& remote, Deadline deadline);
  void begin();
  void try_now();
  void try_later(Clock::duration delay);
  void send_request();
  void on_connect_error(int error);
  void on_refused(Refusal refusal);
  void on_accepted(const EndpointInfo& card);
  void on_no_answer();
  void no_request_out(Clock::duration retry);

  // peer.cpp: the other peer's request.
  bool open_rendezvous();
  void on_pending_request(PendingRequest pending);
  bool is_for_us(const Request& request) const;
  bool wins_tie_break(const Request& other) const;
  void start_over();
  void renew();

  // session.cpp: what both lead to.
  void on_message(Stream& stream, const Message& message) override;
  void on_end(Stream& stream, CloseReason reason) override;
  void on_alias(const Message& message);
  void on_ended(const Message& message);
  void on_unexpected();
  void on_answer_lost();
  void on_lost(CloseReason reason);
  void establish_aliases();
  void send_aliases();
  void connected();
  void finish(VIP_RETURN outcome);
  void close_with(CloseReason reason, VIP_RETURN outcome);
  void set_outcome(VIP_RETURN outcome);
  void move_to(Sessions& queue);
  void release();
  void drop_stream();
  bool is_unreliable() const { return card_.reliability == VIP_SERVICE_UNRELIABLE; }

  ConnectionTable& table_;
  ConnectionUser& user_;
  const Role role_;
  State state_;
  Endpoint local_, remote_;
  // Of this side's request, and of the request that is being answered.
  std::uint64_t nonce_ = 0, other_nonce_ = 0;
  EndpointInfo card_, remote_card_;       // this side's, and the other's once it is known
  std::shared_ptr<Stream> stream_;        // to the other side; nullptr while there is nothing
  Aliases aliases_;                       // of the other side
  std::size_t unacked_aliases_ = 0;       // aliases announced and not yet acknowledged
  bool request_sent_ = false;             // on stream_
  std::uint8_t unanswered_requests_ = 0;  // requests of this attempt that got no answer, modulo 256
  bool later_ = false;                    // by open_later()
  VIP_RETURN at_deadline_ = VIP_TIMEOUT;  // the outcome then, by the network's last word
  Clock::duration delay_{};  // until the next request, if this one gets no answer; doubles
  // Peers: where the other's request arrives, unless a listener has the discriminator.
  std::unique_ptr<RendezvousSocket> rendezvous_;
  // The other peer's request, kept until the outcome of this side's is known.
  std::shared_ptr<ReceivedRequest> crossing_;
  // The end of the attempt; the next request; no sign of life from the other side.
  Loop::Timer deadline_, retry_, response_timer_;
  std::optional<VIP_RETURN> outcome_;
  bool outcome_reported_ = false;
  Sessions node_;             // peers: one node, unless a list of the table has it
  Sessions* where_ = &node_;  // the list that has it
  Sessions::iterator place_;  // in that list
  const Wakeup changed_ = make_wakeup();
};

// The first of the attributes that must be equal and is not (VIPL: reliability level,
// MaxTransferSize, QoS). nullopt: all are equal.
std::optional<Refusal> mismatch(const EndpointInfo& one, const EndpointInfo& other);

}  // namespace viaduct::vipl
