// The sending half of one lane to one peer: the frames that wait (backlog), the frames in flight,
// the credit, and which frames are lost. Part of Peer, which Link owns. The lane does no input or
// output and sets no timers; Link does both (impl/transmit.hpp, impl/loss_recovery.hpp). The lane
// holds one reference of each frame in its two lists. One owner thread, that of the link.
#pragma once

#include <algorithm>
#include <bit>
#include <utility>

#include "drivers/link/frame_list.hpp"
#include "drivers/link/packet_device.hpp"
#include "drivers/link/rtt.hpp"
#include "drivers/link/wire_format.hpp"

namespace viaduct::link {

// An acknowledgement of one lane as the peer sent it: cumulative up to `ack`, selective behind
// that. Bit i of the bitmap says that frame ack + 1 + i has arrived.
struct Acknowledgement {
  std::uint32_t ack;    // every frame before this number has arrived
  std::uint32_t limit;  // the first frame that may not be sent
  std::span<const std::uint64_t> bitmap;

  bool has(std::uint32_t sequence) const {
    const std::uint32_t i = sequence - ack - 1;
    return i < bitmap.size() * 64 && (bitmap[i / 64] >> (i % 64) & 1) != 0;
  }
};

// The acknowledgement that a data frame carries. Only ack frames have a bitmap.
inline Acknowledgement acknowledgement_in(const FrameHeader& header) {
  return {header.ack, header.ack + header.credit, {}};
}

// The sequence numbers of a lane, in the order of sending:
//
//      acknowledged  |   in flight, some of them      |   may be sent    |  beyond the
//      and freed     |   acknowledged by bitmap       |   (credit())     |  credit
//   -----------------+--------------------------------+------------------+------------->
//                    front of in_flight_              next_              limit_
//
// What one frame goes through:
//
//   backlog           --- on_transmitted() --->   in flight         ---- acknowledge() --->   freed
//   (transmissions 0)      takes next_            (transmissions 1, 2, ...)
//                                                    |      ^
//                                                    '------'   on_retransmitted(): lost() is true,
//                                                               or the retransmission timer ran out
//
// What the lane does about credit (backlog, credit, in flight and probing_ together are the state):
//
//                 a frame waits, credit left
//   idle  --------------------------------------------->  sending
//   (backlog      <--- the last waiting frame leaves ---  (ready(): frames wait, credit left)
//   empty)                                                 |    ^
//     |                              the credit is used up |    | more credit
//     | a frame waits, no credit                           v    |
//     +--- frames are in flight ------------------------> blocked
//     |                                                    |
//     |          the last frame in flight is acknowledged, |
//     |          and no new credit has come                v
//     '--- nothing is in flight ------------------------> probing ---- more credit ---> sending
//                                                          ^  (the timer repeats the probe)
//                                                          |
//     sending, nothing in flight, no base window, and   ---'
//     the lease of the credit runs out before a frame
//     leaves (expire_credit)
//
// No lane stays blocked with nothing in flight and no probe: Link::probe_for_credit begins the
// probe, and Link::check_invariants asserts it.
template <PacketDevice Device>
class TxLane {
 public:
  using Frame = typename Device::Frame;
  using List = FrameList<Device, &FrameMeta<Frame>::tx>;

  // Called once, when the peer is made. Without credit, until the handshake grants some.
  void start(std::uint32_t sequence) { first_ = next_ = limit_ = sequence; }
  // The number that our handshake tells the peer. A repeated handshake after the first frames have
  // gone must say the same, hence not next_.
  std::uint32_t first_sequence() const { return first_; }
  // From the peer's handshake: the base window, in frames. That much credit never expires.
  void grant(std::uint32_t window) {
    base_window_ = window;
    limit_ = next_ + window;
  }

  // --- frames that wait ---------------------------------------------------------------------
  std::uint32_t backlog() const { return backlog_.size(); }
  void enqueue(Frame* f) {
    Device::meta(f).tx.transmissions = 0;
    backlog_.push_back(f);
  }
  template <class Visit>
  void for_each_waiting(Visit visit) {
    for (Frame* f = backlog_.front(); f; f = List::next(f)) visit(f);
  }
  // The youngest waiting frame, if messages of that order may join that frame; else nullptr. A
  // frame is ordered or unordered as a whole.
  Frame* open_frame(Order order) const {
    Frame* f = backlog_.back();
    return f && Device::meta(f).tx.order == static_cast<std::uint8_t>(order) ? f : nullptr;
  }

  // --- transmission ---------------------------------------------------------------------------
  bool has_credit() const { return sequence_before(next_, limit_); }
  // Frames that may leave now.
  std::uint32_t credit() const { return has_credit() ? limit_ - next_ : 0; }
  bool blocked() const { return !backlog_.empty() && !has_credit(); }
  bool ready() const { return !backlog_.empty() && has_credit(); }
  // The backlog must not be empty for these two.
  Frame* oldest_waiting() const { return backlog_.front(); }
  std::uint32_t next_sequence() const { return next_; }
  Frame* take_waiting() { return backlog_.pop_front(); }
  // The frame has gone to the device for the first time, as number next_sequence().
  void on_transmitted(Frame* f, Time now) {
    auto& meta = Device::meta(f).tx;
    meta.sequence = next_++;
    meta.sent_at = now;
    meta.transmissions = 1;
    in_flight_.push_back(f);
    last_active_ = std::max(last_active_, now);
  }
  void on_retransmitted(Frame* f, Time now) {
    auto& meta = Device::meta(f).tx;
    meta.sent_at = now;
    last_active_ = std::max(last_active_, now);
    if (meta.transmissions < UINT16_MAX) ++meta.transmissions;
  }
  // Credit beyond the base window is a lease: after kCreditLease without traffic the sender drops
  // that credit. The receiver waits longer (RxLane::reclaim) before it lends the same memory to
  // another peer, so no message is needed. The lease counts from the poll in which the sender last
  // heard of the credit. With frames in flight, the receiver's memory is in use, and nothing
  // expires.
  void expire_credit(Time now) {
    if (!in_flight_.empty() || now - last_active_ < kCreditLease) return;
    if (credit() > base_window_) limit_ = next_ + base_window_;
  }

  // --- acknowledgement ------------------------------------------------------------------------
  const List& in_flight() const { return in_flight_; }
  // False: `a` acknowledges frames that were never sent, or gives credit beyond any window, or its
  // bitmap ends in a word of zeros, which no receiver sends.
  bool plausible(const Acknowledgement& a) const {
    if (sequence_before(next_, a.ack) || a.limit - a.ack > kMaxWindow) return false;
    if (a.bitmap.empty()) return true;
    const std::uint64_t last = a.bitmap.back();
    const auto highest = static_cast<std::uint32_t>(a.bitmap.size() * 64) -
                         static_cast<std::uint32_t>(std::countl_zero(last));
    return last != 0 && sequence_before(a.ack + highest, next_);
  }
  struct Result {
    std::uint32_t freed = 0;   // frames acknowledged and released
    bool more_credit = false;  // limit_ has moved on
    Duration rtt{0};  // of the youngest frame acknowledged that was sent only once; 0: none
  };
  // Applies an acknowledgement that is plausible(): releases each acknowledged frame, whatever its
  // place, and takes the credit. An outdated acknowledgement does no harm: the limit only grows
  // here, and the frames that such an acknowledgement names have arrived, whenever that was.
  Result acknowledge(const Acknowledgement& a, Time now, const RttEstimator& rtt) {
    Result result;
    if (sequence_before(limit_, a.limit)) {
      if (probing_) timeouts_ = 0;  // those timeouts were of probes for credit
      probing_ = false;
      limit_ = a.limit;
      result.more_credit = true;
    }
    // The receiver has confirmed the present credit, so the lease begins anew.
    if (a.limit == limit_) last_active_ = std::max(last_active_, now);
    while (!in_flight_.empty() &&
           sequence_before(Device::meta(in_flight_.front()).tx.sequence, a.ack))
      on_acked(in_flight_.pop_front(), now, rtt, result);
    if (!a.bitmap.empty()) apply_bitmap(a, now, rtt, result);
    if (result.freed != 0) last_active_ = std::max(last_active_, now);
    // The second half of Karn's algorithm: keep the backed-off timeout until a frame that was sent
    // once is acknowledged. Before that, the estimate of the round trip may be too low.
    if (result.rtt != Duration{0}) timeouts_ = 0;
    return result;
  }

  // --- loss -----------------------------------------------------------------------------------
  // Whether the frame is lost and should be sent again now. Either a frame numbered at least three
  // later is acknowledged (the duplicate threshold of RFC 5681; frames sent once only, because a
  // retransmission travels behind frames with higher numbers). Or a frame that was sent more than
  // `reordering` later is acknowledged (RFC 8985, RACK), which judges retransmissions, too.
  bool lost(Frame* f, Duration reordering) const {
    const auto& meta = Device::meta(f).tx;
    if (!behind_acked(f)) return false;
    if (meta.transmissions == 1 && highest_acked_ - meta.sequence > 3) return true;
    return newest_acked_sent_ > meta.sent_at + reordering;
  }
  // A frame with a higher number has been acknowledged.
  bool behind_acked(Frame* f) const {
    return any_acked_ && sequence_before(Device::meta(f).tx.sequence, highest_acked_);
  }
  // The peer has frames behind the oldest one in flight.
  bool has_gap() const { return !in_flight_.empty() && behind_acked(in_flight_.front()); }
  std::uint32_t timeouts() const { return timeouts_; }
  // A frame or probe that was sent at `sent` has gone unanswered for a timeout. Only what was sent
  // after the last timeout doubles the next timeout: anything earlier is part of the same loss.
  void on_timeout(Time sent, Time now) {
    if (sent >= last_probe_or_timeout_) ++timeouts_;
    last_probe_or_timeout_ = now;
  }

  // --- waiting for credit ---------------------------------------------------------------------
  // Frames had to wait for credit: the next frame to leave asks for a larger window.
  void note_credit_shortage() { short_of_credit_ = true; }
  // Whether the frame about to leave should set kFlagWant: more frames wait behind that frame than
  // will have credit (credit() still counts the frame itself), or frames had to wait since the last
  // frame left. Clears the note of the latter.
  bool wants_credit() {
    return std::exchange(short_of_credit_, false) || backlog_.size() >= credit();
  }
  // Blocked, and no frame is in flight whose acknowledgement would tell of new credit.
  bool must_probe() const { return blocked() && in_flight_.empty(); }
  bool probing() const { return probing_; }
  void start_probing(Time now) {
    probing_ = true;
    last_probe_or_timeout_ = now;
  }
  // The later of two times: when the lane began to probe for credit, and when a frame or probe was
  // last found to have timed out. The timer of a blocked lane counts from here.
  Time last_probe_or_timeout() const { return last_probe_or_timeout_; }
  // The latest time at which anything was sent, probed, acknowledged or granted in this lane.
  Time last_active() const { return std::max(last_active_, last_probe_or_timeout_); }

  // Gives up every frame: calls `release` for each.
  template <class Release>
  void clear(Release release) {
    while (!backlog_.empty()) release(backlog_.pop_front());
    while (!in_flight_.empty()) release(in_flight_.pop_front());
  }
  bool empty() const { return backlog_.empty() && in_flight_.empty(); }

 private:
  static constexpr Duration kCreditLease = std::chrono::milliseconds{2};

  // Frame `f`, already out of its list, is acknowledged: notes what that tells of losses and the
  // round trip, and releases the frame.
  void on_acked(Frame* f, Time now, const RttEstimator& rtt, Result& result) {
    const auto& meta = Device::meta(f).tx;
    const Duration age = now - meta.sent_at;
    // A retransmitted frame whose acknowledgement comes sooner than the least round trip: the
    // acknowledgement answers an earlier transmission, and says nothing of the last one's time.
    if (meta.transmissions == 1 || age >= rtt.minimum())
      newest_acked_sent_ = std::max(newest_acked_sent_, meta.sent_at);
    if (meta.transmissions == 1) result.rtt = age;
    const std::uint32_t after = meta.sequence + 1;
    if (!any_acked_ || sequence_before(highest_acked_, after)) highest_acked_ = after;
    any_acked_ = true;
    ++result.freed;
    Device::release(f);
  }
  // The frames that the bitmap names.
  void apply_bitmap(const Acknowledgement& a, Time now, const RttEstimator& rtt, Result& result) {
    Frame* before = nullptr;
    for (Frame* f = in_flight_.front(); f;) {
      Frame* next = List::next(f);
      if (a.has(Device::meta(f).tx.sequence))
        on_acked(in_flight_.remove_after(before), now, rtt, result);
      else
        before = f;
      f = next;
    }
  }

  List backlog_, in_flight_;  // in the order of sending; in_flight_ by sequence number
  std::uint32_t first_ = 0, next_ = 0, limit_ = 0, base_window_ = 0;
  std::uint32_t highest_acked_ = 0;  // one past the highest number acknowledged
  std::uint32_t timeouts_ = 0;       // since the last sample of the round trip or new credit
  bool any_acked_ = false, short_of_credit_ = false, probing_ = false;
  // The latest transmission known to have arrived; see last_active() and last_probe_or_timeout()
  // for the others.
  Time newest_acked_sent_{}, last_active_{}, last_probe_or_timeout_{};
};

}  // namespace viaduct::link
