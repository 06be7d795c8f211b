// Link: acknowledgements, lost frames, timers. docs/link.md tells the reasons.
#pragma once

#include "drivers/link/link.hpp"

namespace viaduct::link {

template <PacketDevice D>
void Link<D>::poll(Time now) {
  if (delivered_count_ != 0) settle_delivered();
  receive(now);
  if (stalled_.front()) offer_stalled(now);
  if (wanting_.front()) serve_wanting(now);
  if (acking_.front()) send_due_acks(now);
  // No timer may see frames in flight whose acknowledgement lies here unsettled.
  if (timers_.due(delivered_count_ == 0 ? now : now - kTimerSlack)) {
    settle_delivered();
    run_timers(now);
  }
  if (pumping_.front()) pump(now);
  if (staged_count_ != 0) flush();
  check_invariants(now);
}

template <PacketDevice D>
Time Link<D>::next_work() const {
  if (delivered_count_ != 0 || staged_count_ != 0 || stalled_.front() || wanting_.front() ||
      pumping_.front())
    return Time::min();
  const Peer* const acking = acking_.front();
  return std::min(timers_.next(), acking ? acking->ack_at : Time::max());
}

template <PacketDevice D>
void Link<D>::acknowledge(Peer* p, Lane lane, const Acknowledgement& ack, Time now) {
  Send& flow = p->send[static_cast<std::size_t>(lane)];
  if (!flow.plausible(ack)) return count(p, Counter::drop_ack);
  const bool backed_off = flow.timeouts() != 0;
  const auto result = flow.acknowledge(ack, now, p->rtt);
  // It can send, or has to ask whether it may.
  if (flow.backlog() != 0 && (result.more_credit || flow.in_flight().empty())) pumping_.add(p);
  if (result.freed == 0) return;
  frames_sending_ -= result.freed;
  if (result.rtt != Duration{0}) p->rtt.sample(result.rtt);
  if (backed_off) timers_.set_no_later(p, next_deadline(p));  // it may stand far off
  if (flow.has_gap() && !config_.fixed_timeout) resend_lost(p, lane, now);
}

template <PacketDevice D>
void Link<D>::receive_ack(Peer* p, std::span<const std::byte> payload, Time now) {
  while (!payload.empty()) {
    AckBlock block;
    if (payload.size() < sizeof(block)) return count(p, Counter::drop_length);
    std::memcpy(&block, payload.data(), sizeof(block));
    const std::size_t bytes = block.words * sizeof(std::uint64_t);
    const std::size_t index = block.lane_flags & kLaneMask;
    if (index >= kLanes || (block.lane_flags & ~(kLaneMask | kFlagWant)) != 0 ||
        block.words > kBitmapWords || payload.size() < sizeof(block) + bytes)
      return count(p, Counter::drop_ack);
    std::uint64_t bitmap[kBitmapWords];
    std::memcpy(bitmap, payload.data() + sizeof(block), bytes);
    const auto lane = static_cast<Lane>(index);
    acknowledge(p, lane, {block.ack, block.ack + block.credit, {bitmap, block.words}}, now);
    if ((block.lane_flags & kFlagWant) != 0) want_credit(p, lane, now);
    payload = payload.subspan(sizeof(block) + bytes);
  }
}

template <PacketDevice D>
void Link<D>::resend(Peer* p, Lane lane, Frame* f, Time now) {
  if (!stage(f)) return;  // the device is full: the timer or the next acknowledgement tries again
  p->send[static_cast<std::size_t>(lane)].retransmitted(f, now);
  count(p, Counter::retransmits);
}

template <PacketDevice D>
void Link<D>::resend_lost(Peer* p, Lane lane, Time now) {
  Send& flow = p->send[static_cast<std::size_t>(lane)];
  for (Frame* f = flow.in_flight().front(); f && flow.behind_settled(f); f = Send::List::next(f)) {
    if (!flow.lost(f, p->rtt.reordering())) continue;
    count(p, Counter::fast_retransmits);
    resend(p, lane, f, now);
  }
}

// --- acknowledging ------------------------------------------------------------------------------

// Frames that go the other way carry acknowledgements; only when none does in time is there a frame
// for them alone. Peers whose time has come stand in front.
template <PacketDevice D>
void Link<D>::ack_later(Peer* p, const Receive& flow, Time now) {
  if (flow.ack_due()) {
    acking_.remove(p);
    acking_.add_front(p);
    p->ack_at = now;
  } else if (!p->ack_hook.linked) {
    acking_.add(p);
    p->ack_at = now + ack_delay(p);
  }
}

// A quarter of the round trip, so that waiting for company never dominates what the peer measures.
template <PacketDevice D>
Duration Link<D>::ack_delay(const Peer* p) const {
  return std::clamp(p->rtt.smoothed() / 4, std::min(kLeastAckDelay, config_.ack_delay),
                    config_.ack_delay);
}

template <PacketDevice D>
void Link<D>::send_due_acks(Time now) {
  while (Peer* p = acking_.front()) {
    if (p->ack_at > now) return;
    bool due = false;
    Time since = Time::max();
    for (const Receive& r : p->receive) {
      due = due || r.ack_due();
      if (r.ack_pending()) since = std::min(since, r.unacknowledged_since());
    }
    acking_.remove(p);
    if (since == Time::max() && !due) continue;  // other frames have carried it
    if (!due && since + ack_delay(p) > now) {    // and this has arrived after them
      p->ack_at = since + ack_delay(p);
      acking_.add(p);
      return;
    }
    if (!send_ack(p, 0, now)) {  // no frame, or the device is full: next poll
      p->ack_at = now;
      acking_.add_front(p);
      return;
    }
  }
}

// False: not now, and nothing counts as told.
template <PacketDevice D>
bool Link<D>::send_ack(Peer* p, std::uint8_t flags, Time now) {
  if (staged_count_ == kBurst) flush();
  if (staged_count_ == kBurst) return false;
  Frame* f = new_control_frame();
  if (!f) return false;
  std::byte* const payload = D::bytes(f) + kFrameHeader;
  std::byte* to = payload;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    Receive& r = p->receive[lane];
    const bool blocked = p->send[lane].blocked();
    if (flags == 0 && !blocked && !r.ack_pending() && !r.has_gap()) continue;
    std::uint64_t bitmap[kBitmapWords];
    AckBlock block{};
    block.lane_flags = static_cast<std::uint8_t>(lane | (blocked ? kFlagWant : 0));
    block.words = r.bitmap(bitmap);
    block.credit = r.credit();
    block.ack = r.expected();
    std::memcpy(to, &block, sizeof(block));
    std::memcpy(to + sizeof(block), bitmap, block.words * sizeof(std::uint64_t));
    to += sizeof(block) + block.words * sizeof(std::uint64_t);
    r.acknowledged_fully(now);
  }
  const auto length = static_cast<std::size_t>(to - payload);
  D::set_length(f, kFrameHeader + length);
  write_header(D::bytes(f), p->outgoing,
               {FrameType::ack, flags, static_cast<std::uint16_t>(length)},
               base::crc32c(payload, length, p->outgoing_sum));
  staged_[staged_count_++] = f;
  counters_.add(Counter::acks_sent);
  return true;
}

// --- timers -------------------------------------------------------------------------------------

template <PacketDevice D>
Duration Link<D>::timeout(const Peer* p, const Send& flow) const {
  if (config_.fixed_timeout) return *config_.fixed_timeout;
  // A round trip during which one of both had no CPU may have been measured: the ceiling is for
  // all.
  const std::uint32_t doublings = std::min(flow.timeouts(), 20u);
  return std::min(p->rtt.timeout(config_.min_timeout) * (std::int64_t{1} << doublings),
                  config_.max_timeout);
}

// Silence is first asked about after a quarter of the time, then often: on a network that loses a
// third of the frames a few questions prove nothing.
template <PacketDevice D>
Time Link<D>::next_question(const Peer* p) const {
  return std::max(p->last_heard, p->asked_at) + config_.dead_after / (p->unanswered == 0 ? 4 : 32);
}

template <PacketDevice D>
Time Link<D>::next_deadline(const Peer* p) const {
  if (!p->up()) return p->handshake_at;
  Time deadline = next_question(p);
  for (const Send& flow : p->send) {
    if (!flow.in_flight().empty())
      deadline =
          std::min(deadline, D::meta(flow.in_flight().front()).tx.sent_at + timeout(p, flow));
    else if (flow.blocked())
      deadline = std::min(deadline, flow.probed_at() + timeout(p, flow));
  }
  return deadline;
}

template <PacketDevice D>
void Link<D>::run_timers(Time now) {
  while (timers_.due(now)) {
    Peer* p = timers_.pop();
    if (!peer_timer(p, now)) continue;
    timers_.set_no_later(p, std::max(next_deadline(p), now + Duration{1}));
  }
}

// False: the peer is no more.
template <PacketDevice D>
bool Link<D>::peer_timer(Peer* p, Time now) {
  const PeerId id = p->id;
  if (!p->up()) {
    handshake_timer(p, now);
    return find(id) != nullptr;
  }
  // Silence counts only while we have been asking: after a pause of our own the peer gets its say.
  if (now - p->last_heard >= config_.dead_after && p->unanswered >= kQuestions) {
    forget(p, DownReason::silent);
    return false;
  }
  for (Lane lane : {Lane::high, Lane::low, Lane::bulk}) lane_timer(p, lane, now);
  if (now >= next_question(p)) {
    if (question(p, now))
      count(p, Counter::keepalives);
    else
      asked(p, now);  // who cannot be sent to for so long cannot be reached, either
  }
  return true;
}

// Tail-loss probe and timeout in one: send the oldest frame again. Its acknowledgement tells which
// others are missing, and frees them to be sent at once.
template <PacketDevice D>
void Link<D>::lane_timer(Peer* p, Lane lane, Time now) {
  Send& flow = p->send[static_cast<std::size_t>(lane)];
  const Duration limit = timeout(p, flow);
  if (Frame* oldest = flow.in_flight().front()) {
    if (D::meta(oldest).tx.sent_at + limit > now) return;
    count(p, Counter::probes);
    flow.timed_out(D::meta(oldest).tx.sent_at, now);
    if (!config_.fixed_timeout) return resend(p, lane, oldest, now);
    for (Frame* f = oldest; f; f = Send::List::next(f))
      if (D::meta(f).tx.sent_at + limit <= now) resend(p, lane, f, now);
  } else if (flow.blocked() && flow.probed_at() + limit <= now && question(p, now)) {
    flow.timed_out(flow.probed_at(), now);
  }
}

// Asks for an answer, whatever it is; says which lanes wait for credit. False: not now.
template <PacketDevice D>
bool Link<D>::question(Peer* p, Time now) {
  if (!send_ack(p, kFlagAnswer, now)) return false;
  asked(p, now);
  return true;
}

template <PacketDevice D>
void Link<D>::asked(Peer* p, Time now) {
  p->asked_at = now;
  if (p->unanswered < UINT32_MAX) ++p->unanswered;
}

}  // namespace viaduct::link
