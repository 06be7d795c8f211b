// The part of a session that active and passive open share: answering a request, messages, the end
// of a connection. active_open.cpp has the request of this side, peer.cpp the request of the other
// peer.
#include "libvipl/connection/session.hpp"

#include "libvipl/connection/connection_table.hpp"

namespace viaduct::vipl {
namespace {

// How long an accepting side waits for `ready`, which a caller sends at once.
constexpr auto kReadyTimeout = std::chrono::seconds(10);

}  // namespace

std::optional<Refusal> mismatch(const EndpointInfo& one, const EndpointInfo& other) {
  if (one.reliability != other.reliability) return Refusal::other_reliability;
  if (one.max_transfer_size != other.max_transfer_size) return Refusal::other_transfer_size;
  if (one.has_qos != other.has_qos) return Refusal::other_qos;
  return std::nullopt;
}

Session::Session(ConnectionTable& table, ConnectionUser& user, Role role)
    : table_(table), user_(user), role_(role), state_(State::requesting), card_(user.card()) {
  if (role == Role::peer) place_ = node_.insert(node_.end(), this);
}

Session::~Session() {
  move_to(node_);
}

// Others than peers are in no queue.
void Session::move_to(Sessions& queue) {
  if (role_ != Role::peer) return;
  queue.splice(queue.end(), *where_, place_);
  where_ = &queue;
}

void Session::set_outcome_reported() {
  outcome_reported_ = true;
  move_to(node_);
}

// The queue pair is made ready before `accepted` is sent, because the other side's first message
// may arrive right after. In the same way `ready` tells this side when it may send:
// VipConnectAccept does not return before.
void Session::open_passive(const std::shared_ptr<ReceivedRequest>& incoming) {
  drop_stream();
  crossing_ = nullptr;
  retry_.end();
  remote_card_ = incoming->caller().card;
  if (const auto refusal = mismatch(card_, remote_card_)) {
    // VIPL: a server may change its VI and accept again, so its client is told nothing yet. A peer
    // has no second chance.
    if (role_ == Role::peer) table_.closing.refuse(incoming->take_stream(), *refusal);
    return finish(result_of(*refusal));
  }
  if (!user_.establish(remote_card_)) return finish(VIP_ERROR_RESOURCE);
  state_ = State::accepting;
  other_nonce_ = incoming->request().nonce;
  stream_ = incoming->take_stream();
  stream_->set_owner(*this);
  aliases_ = incoming->aliases();
  establish_aliases();
  send_aliases();
  stream_->send({.type = MessageType::accepted, .card = card_});
  response_timer_ = Loop::Timer(table_.loop, kReadyTimeout, [this] {
    drop_stream();
    on_answer_lost();
  });
}

void Session::on_message(Stream&, const Message& message) {
  const auto self = shared_from_this();  // the table may drop it meanwhile
  const bool requesting = state_ == State::requesting;
  switch (message.type) {
    case MessageType::alias: return on_alias(message);
    case MessageType::known:
      if (unacked_aliases_ > 0 && --unacked_aliases_ == 0) table_.aliases_acked.notify_all();
      return;
    case MessageType::held:
      if (requesting) return response_timer_.end();
      break;
    case MessageType::refused:
      if (requesting) return on_refused(static_cast<Refusal>(message.code));
      break;
    case MessageType::accepted:
      if (requesting) return on_accepted(message.card);
      break;
    case MessageType::ready:
      if (state_ == State::accepting) return connected();
      break;
    case MessageType::ended:
      if (state_ == State::connected) return on_ended(message);
      break;
  }
  // Reached by a message that does not fit the state.
  on_unexpected();
}

// Before the connection is made the aliases are only collected; establish_aliases() passes them to
// the VI when it is connected.
void Session::on_alias(const Message& message) {
  if (!apply_alias(aliases_, message)) return on_unexpected();
  if (state_ != State::requesting) user_.alias(message.name, message.key);
  stream_->send({.type = MessageType::known});
}

// What was dropped on an unreliable connection follows only from both tallies together, so the
// other side gets this side's. On a reliable one the other side expects nothing more.
void Session::on_ended(const Message& message) {
  user_.delivered(message.tally);
  if (is_unreliable()) {
    const Tally mine = user_.tally();
    table_.drops.count(mine, message.tally);
    stream_->send({.type = MessageType::ended, .tally = mine});
    table_.closing.add(std::exchange(stream_, nullptr));
  }
  drop_stream();
  on_lost(static_cast<CloseReason>(message.code));
}

// The connection ends as if the other side had died.
void Session::on_unexpected() {
  const std::shared_ptr<Stream> stream = stream_;
  stream->abort();
  on_end(*stream, CloseReason::transport);
}

void Session::on_end(Stream&, CloseReason reason) {
  const auto self = shared_from_this();
  drop_stream();
  switch (state_) {
    case State::requesting: return on_no_answer();
    case State::accepting: return on_answer_lost();
    case State::connected:
      // The other side has died without sending its tally.
      if (is_unreliable()) table_.drops.count_unknown();
      return on_lost(reason);
    case State::over: return;
  }
}

// The caller has gone before it said `ready`. A peer goes on trying until its deadline.
void Session::on_answer_lost() {
  if (role_ == Role::peer) return start_over();
  finish(VIP_TIMEOUT);
}

void Session::on_lost(CloseReason reason) {
  release();
  state_ = State::over;
  user_.on_connection_lost(reason);
  table_.forget_if_finished(user_);
}

void Session::establish_aliases() {
  for (const auto& [name, key] : aliases_) user_.alias(name, key);
}

void Session::send_aliases() {
  for (const auto& [name, key] : table_.aliases) announce(name, key);
}

// Before the request or the answer is sent, send_aliases() has yet to come and includes this one.
void Session::announce(std::uint32_t name, std::uint32_t key) {
  const bool introduced = state_ == State::requesting ? request_sent_ : state_ != State::over;
  if (stream_ == nullptr || !introduced) return;
  ++unacked_aliases_;
  stream_->send({.type = MessageType::alias, .name = name, .key = key});
}

void Session::connected() {
  state_ = State::connected;
  deadline_.end();
  response_timer_.end();
  rendezvous_ = nullptr;
  crossing_ = nullptr;
  set_outcome(VIP_SUCCESS);
}

// The attempt has failed.
void Session::finish(VIP_RETURN outcome) {
  release();
  state_ = State::over;
  user_.on_attempt_failed(false);
  set_outcome(outcome);
}

void Session::close(VIP_RETURN outcome) {
  close_with(CloseReason::disconnected, outcome);
}

// The last message has this side's tally. With it the other side can complete sends whose
// acknowledgements are lost because the queue pairs end now.
void Session::close_with(CloseReason reason, VIP_RETURN outcome) {
  if (state_ == State::connected && stream_ != nullptr) {
    const Tally mine = user_.tally();
    stream_->send(
        {.type = MessageType::ended, .code = static_cast<std::uint8_t>(reason), .tally = mine});
    if (is_unreliable())
      table_.closing.add(std::exchange(stream_, nullptr), mine);
    else
      table_.closing.add(std::exchange(stream_, nullptr));
  }
  release();
  state_ = State::over;
  set_outcome(outcome);
}

// In accepting, too, the connection is there: only a caller whose queue pair is connected can have
// made this one fail. Its `ready` is still under way.
void Session::fail(CloseReason reason) {
  if (state_ != State::connected && state_ != State::accepting) return;
  state_ = State::connected;
  close_with(reason, VIP_SUCCESS);
}

// Ends every timer and connection of the attempt.
void Session::release() {
  deadline_.end();
  retry_.end();
  rendezvous_ = nullptr;
  crossing_ = nullptr;
  drop_stream();
}

// Resets the connection, if there is one, and forgets all that was said on it.
void Session::drop_stream() {
  response_timer_.end();
  if (stream_ != nullptr) stream_->abort();
  stream_ = nullptr;
  aliases_.clear();
  request_sent_ = false;
  unacked_aliases_ = 0;
  // unacked_aliases_ is 0 now: a thread in Manager::announce() need not wait for this session.
  table_.aliases_acked.notify_all();
}

void Session::set_outcome(VIP_RETURN outcome) {
  // The first outcome counts: that a connection ends does not change that it was made.
  if (!outcome_) {
    outcome_ = outcome;
    move_to(table_.drive != nullptr ? table_.outcomes : node_);
  }
  table_.wakeups.wake(changed_);
}

VIP_RETURN Session::wait(std::unique_lock<std::mutex>& lock) {
  table_.block(lock, *changed_, std::nullopt, [&] { return outcome_.has_value(); });
  return *outcome_;
}

}  // namespace viaduct::vipl
