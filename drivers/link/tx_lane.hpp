// The sending half of one lane to one peer: what waits, what is in flight, what was lost. Does no
// input or output; Link does.
//
// What a lane with frames that wait for credit does about it:
//
//               a message                 frames in flight: what acknowledges them tells of credit
//   nothing   ------------>   blocked,  ---------------------------------------------------------.
//   waits     without credit             nothing in flight                                        |
//     ^                         |   ^                                                             |
//     | frames leave            |   '---- the last one is acknowledged, without credit -----------'
//     |                         v                         |
//   credit   <----------   probing: a credit probe is under way and its timer runs
//     |    credit comes         ^
//     '-------------------------'
//       its lease runs out before the frames have left
//
// No lane stays blocked with nothing in flight and no probe: Link::probe_for_credit sees to it, and
// Link::check_invariants holds it to that.
#pragma once

#include <algorithm>
#include <bit>
#include <utility>

#include "drivers/link/frame_list.hpp"
#include "drivers/link/packet_device.hpp"
#include "drivers/link/rtt.hpp"
#include "drivers/link/wire_format.hpp"

namespace viaduct::link {

// A selective acknowledgement as it came in: bit i says that frame ack + 1 + i has arrived.
struct Acknowledgement {
  std::uint32_t ack;
  std::uint32_t limit;  // the first frame that may not be sent
  std::span<const std::uint64_t> bitmap;

  bool has(std::uint32_t sequence) const {
    const std::uint32_t i = sequence - ack - 1;
    return i < bitmap.size() * 64 && (bitmap[i / 64] >> (i % 64) & 1) != 0;
  }
};

// What a data frame says of the other direction.
inline Acknowledgement acknowledgement_in(const FrameHeader& header) {
  return {header.ack, header.ack + header.credit, {}};
}

template <PacketDevice Device>
class TxLane {
 public:
  using Frame = typename Device::Frame;
  using List = FrameList<Device, &FrameMeta<Frame>::tx>;

  void start(std::uint32_t sequence) { first_ = next_ = limit_ = sequence; }
  // What the handshake tells the peer, also when it is told again after frames have gone.
  std::uint32_t first_sequence() const { return first_; }
  // The peer's handshake: `window` frames may always be sent.
  void grant(std::uint32_t window) {
    base_window_ = window;
    limit_ = next_ + window;
  }

  // --- frames that wait ---------------------------------------------------------------------
  std::uint32_t backlog() const { return backlog_.size(); }
  void wait(Frame* f) {
    Device::meta(f).tx.transmissions = 0;
    backlog_.push_back(f);
  }
  template <class Visit>
  void for_each_waiting(Visit visit) {
    for (Frame* f = backlog_.front(); f; f = List::next(f)) visit(f);
  }
  // The youngest waiting frame, if messages of that order may be added to it.
  Frame* open_frame(Order order) const {
    Frame* f = backlog_.back();
    return f && Device::meta(f).tx.order == static_cast<std::uint8_t>(order) ? f : nullptr;
  }

  // --- transmission ---------------------------------------------------------------------------
  bool has_credit() const { return sequence_before(next_, limit_); }
  std::uint32_t credit() const { return has_credit() ? limit_ - next_ : 0; }
  bool blocked() const { return !backlog_.empty() && !has_credit(); }
  bool ready() const { return !backlog_.empty() && has_credit(); }
  Frame* oldest_waiting() const { return backlog_.front(); }
  std::uint32_t next_sequence() const { return next_; }
  Frame* take_waiting() { return backlog_.pop_front(); }
  void transmitted(Frame* f, Time now) {  // as number next_sequence()
    auto& meta = Device::meta(f).tx;
    meta.sequence = next_++;
    meta.sent_at = now;
    meta.transmissions = 1;
    in_flight_.push_back(f);
    last_active_ = std::max(last_active_, now);
  }
  void retransmitted(Frame* f, Time now) {
    auto& meta = Device::meta(f).tx;
    meta.sent_at = now;
    last_active_ = std::max(last_active_, now);
    if (meta.transmissions < UINT16_MAX) ++meta.transmissions;
  }
  // Credit beyond the base window is on loan: after this long without traffic it is gone. The
  // receiver waits longer (RxLane) before it lends the same memory to somebody else. The lease
  // begins when the credit was last heard of, however much later that frame is looked at.
  void expire_credit(Time now) {
    if (!in_flight_.empty() || now - last_active_ < kCreditLease) return;
    if (credit() > base_window_) limit_ = next_ + base_window_;
  }

  // --- acknowledgement ------------------------------------------------------------------------
  const List& in_flight() const { return in_flight_; }
  // False: it acknowledges what was never sent, or gives credit beyond any window.
  bool plausible(const Acknowledgement& a) const {
    if (sequence_before(next_, a.ack) || a.limit - a.ack > kMaxWindow) return false;
    if (a.bitmap.empty()) return true;
    const std::uint64_t last = a.bitmap.back();
    const auto highest = static_cast<std::uint32_t>(a.bitmap.size() * 64) -
                         static_cast<std::uint32_t>(std::countl_zero(last));
    return last != 0 && sequence_before(a.ack + highest, next_);
  }
  struct Result {
    std::uint32_t freed = 0;
    bool more_credit = false;
    Duration rtt{0};  // of the youngest frame acknowledged that was sent only once; 0: none
  };
  Result acknowledge(const Acknowledgement& a, Time now, const RttEstimator& rtt) {
    Result result;
    if (sequence_before(limit_, a.limit)) {
      if (probing_) timeouts_ = 0;  // they were probes for credit
      probing_ = false;
      limit_ = a.limit;
      result.more_credit = true;
    }
    if (a.limit == limit_) last_active_ = std::max(last_active_, now);  // told anew, lent anew
    while (!in_flight_.empty() &&
           sequence_before(Device::meta(in_flight_.front()).tx.sequence, a.ack))
      settle(in_flight_.pop_front(), now, rtt, result);
    if (!a.bitmap.empty()) settle_selected(a, now, rtt, result);
    if (result.freed != 0) last_active_ = std::max(last_active_, now);
    // Karn's other half: until a frame that was sent once is answered, the estimate may be too low.
    if (result.rtt != Duration{0}) timeouts_ = 0;
    return result;
  }

  // --- loss -----------------------------------------------------------------------------------
  // Overdue: three frames numbered later have arrived, or one that was sent clearly later.
  bool lost(Frame* f, Duration reordering) const {
    const auto& meta = Device::meta(f).tx;
    if (!behind_settled(f)) return false;
    if (meta.transmissions == 1 && highest_settled_ - meta.sequence > 3) return true;
    return newest_settled_sent_ > meta.sent_at + reordering;
  }
  // A later frame has been acknowledged.
  bool behind_settled(Frame* f) const {
    return any_settled_ && sequence_before(Device::meta(f).tx.sequence, highest_settled_);
  }
  bool has_gap() const { return !in_flight_.empty() && behind_settled(in_flight_.front()); }
  std::uint32_t timeouts() const { return timeouts_; }
  // What was sent at `sent`, a frame or a probe, has gone unanswered for a timeout. If that was
  // before the last timeout, it is part of the same loss and no reason to wait longer.
  void timed_out(Time sent, Time now) {
    if (sent >= probed_at_) ++timeouts_;
    probed_at_ = now;
  }

  // --- waiting for credit ---------------------------------------------------------------------
  // Frames had to wait: the next one to leave asks for a larger window.
  void note_credit_shortage() { short_of_credit_ = true; }
  // Whether the frame about to go should ask for a larger window: more is waiting behind it than
  // the credit allows, or was since the last one went.
  bool wants_credit() {
    return std::exchange(short_of_credit_, false) || backlog_.size() >= credit();
  }
  // Nothing that is in flight will bring news of credit.
  bool must_probe() const { return blocked() && in_flight_.empty(); }
  bool probing() const { return probing_; }
  void start_probing(Time now) {
    probing_ = true;
    probed_at_ = now;
  }
  // When the last probe for credit was sent, or a frame or probe was found to have timed out.
  Time probed_at() const { return probed_at_; }
  // The latest time at which anything was sent, acknowledged or granted in this lane.
  Time last_active() const { return std::max(last_active_, probed_at_); }

  template <class Release>
  void clear(Release release) {
    while (!backlog_.empty()) release(backlog_.pop_front());
    while (!in_flight_.empty()) release(in_flight_.pop_front());
  }
  bool empty() const { return backlog_.empty() && in_flight_.empty(); }

 private:
  static constexpr Duration kCreditLease = std::chrono::milliseconds{2};

  void settle(Frame* f, Time now, const RttEstimator& rtt, Result& result) {
    const auto& meta = Device::meta(f).tx;
    const Duration age = now - meta.sent_at;
    // An answer quicker than any round trip belongs to an earlier transmission.
    if (meta.transmissions == 1 || age >= rtt.least())
      newest_settled_sent_ = std::max(newest_settled_sent_, meta.sent_at);
    if (meta.transmissions == 1) result.rtt = age;
    const std::uint32_t after = meta.sequence + 1;
    if (!any_settled_ || sequence_before(highest_settled_, after)) highest_settled_ = after;
    any_settled_ = true;
    ++result.freed;
    Device::release(f);
  }
  void settle_selected(const Acknowledgement& a, Time now, const RttEstimator& rtt,
                       Result& result) {
    Frame* before = nullptr;
    for (Frame* f = in_flight_.front(); f;) {
      Frame* next = List::next(f);
      if (a.has(Device::meta(f).tx.sequence))
        settle(in_flight_.remove_after(before), now, rtt, result);
      else
        before = f;
      f = next;
    }
  }

  List backlog_, in_flight_;
  std::uint32_t first_ = 0, next_ = 0, limit_ = 0, base_window_ = 0;
  std::uint32_t highest_settled_ = 0;  // one past the highest number acknowledged
  std::uint32_t timeouts_ = 0;         // since the last sample of the round trip or new credit
  bool any_settled_ = false, short_of_credit_ = false, probing_ = false;
  Time newest_settled_sent_{}, last_active_{}, probed_at_{};
};

}  // namespace viaduct::link
