// What the manager has of one ConnectionUser: an attempt to connect it, and then the connection.
//
//             REQ sent            REP received, RTU sent
//   client    requesting -----------------------------> connected ---> over
//             REP sent             RTU received
//   server    accepting  -----------------------------> connected ---> over
//   peer      either way, and from accepting back to requesting if the other side dies half way
//
// (REQ, REP and RTU are the connection request, reply and ready-to-use of InfiniBand's connection
// manager; wire.hpp calls them the request, `accepted` and `ready`.) Each state may end in over.
//
// Both peers ask. When the two requests cross, the side with the higher (NIC address, nonce) keeps
// the other's request until it knows what became of its own; the lower side answers at once and
// forgets its own. So exactly one of the two makes the connection, whatever is lost or dies.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "libvipl/connection/incoming.hpp"
#include "libvipl/connection/rendezvous_socket.hpp"
#include "libvipl/connection/wakeups.hpp"

namespace viaduct::vipl {

// Everything is called with the manager's lock held.
class Session final : public StreamOwner, public std::enable_shared_from_this<Session> {
 public:
  enum class Role { client, server, peer };

  Session(ConnectionTable& table, ConnectionUser& user, Role role);

  void ask(const Discriminator& local, const Endpoint& remote, Deadline deadline);
  // A request that still waits, and goes on waiting when nothing comes of it here
  // (VIP_INVALID_...).
  void answer(const std::shared_ptr<Incoming>& incoming);
  // Ends it without a word to the ConnectionUser. `outcome` is for the thread that still waits.
  void leave(VIP_RETURN outcome);
  // The same, and the other side learns why.
  void fail(Loss loss);
  void announce(std::uint32_t name, std::uint32_t key);

  // Blocks until there is one.
  VIP_RETURN wait(std::unique_lock<std::mutex>& lock);
  std::optional<VIP_RETURN> outcome() const { return outcome_; }
  const Card& remote_card() const { return remote_card_; }
  Role role() const { return role_; }
  // Whether the program knows the outcome.
  bool told() const { return told_; }
  void set_told() { told_ = true; }
  // What nobody needs to remember.
  bool finished() const { return state_ == State::over && (role_ != Role::peer || told_); }
  bool all_known() const {
    return unknown_ == 0 || stream_ == nullptr || state_ == State::requesting;
  }

 private:
  enum class State { requesting, accepting, connected, over };

  // active_open.cpp: our request on its way.
  void on_connected(Stream& stream, int error) override;
  void try_now();
  void try_later(Clock::duration delay);
  void send_request();
  void on_connect_error(int error);
  void on_refused(Refusal refusal);
  void on_accepted(const Card& card);
  void on_no_answer();
  void no_request_out(Clock::duration retry);

  // peer.cpp: the other's request.
  void open_rendezvous();
  void on_pending_request(PendingRequest pending);
  bool is_for_us(const Request& request) const;
  bool stays_active(const Request& other) const;
  void start_over();
  void renew();

  // session.cpp: what both lead to.
  void on_message(Stream& stream, const Message& message) override;
  void on_end(Stream& stream, Loss loss) override;
  void on_alias(const Message& message);
  void on_ended(const Message& message);
  void on_unexpected();
  void on_answer_lost();
  void on_lost(Loss loss);
  void establish_aliases();
  void send_aliases();
  void connected();
  void finish(VIP_RETURN outcome);
  void leave_because(Loss loss, VIP_RETURN outcome);
  void set_outcome(VIP_RETURN outcome);
  void let_go();
  void drop_stream();
  bool is_unreliable() const { return card_.reliability == VIP_SERVICE_UNRELIABLE; }

  ConnectionTable& table_;
  ConnectionUser& user_;
  const Role role_;
  State state_;
  Endpoint local_, remote_;
  std::uint64_t nonce_ = 0, other_nonce_ = 0;
  Card card_, remote_card_;
  std::shared_ptr<Stream> stream_;  // to the other side; nullptr while there is nothing
  Aliases aliases_;                 // of the other side
  std::size_t unknown_ = 0;         // announced and not acknowledged
  bool request_sent_ = false;
  std::uint8_t silent_ = 0;   // requests that were sent and then nothing came
  bool unreachable_ = false;  // what the network said last
  Clock::duration delay_{};
  std::unique_ptr<RendezvousSocket> rendezvous_;  // peer
  std::shared_ptr<Incoming> crossing_;            // the other's request, until ours is decided
  Loop::Timer deadline_, retry_, silence_;
  std::optional<VIP_RETURN> outcome_;
  bool told_ = false;
  const Wakeup changed_ = make_wakeup();
};

// How two cards differ in what must be equal; nullopt: they match.
std::optional<Refusal> mismatch(const Card& one, const Card& other);

}  // namespace viaduct::vipl
