// The receiving half of one lane from one peer: which frames have arrived, which of them are held
// (for a gap to close, or for a busy receive handler), how much credit the peer has, and what must
// be acknowledged. Part of Peer, which Link owns; Link does the input and output (impl/receive.hpp,
// impl/credit.hpp, impl/ack.hpp). The lane holds one reference of each held frame. One owner
// thread.
#pragma once

#include <algorithm>
#include <array>

#include "drivers/link/frame_list.hpp"
#include "drivers/link/packet_device.hpp"
#include "drivers/link/wire_format.hpp"

namespace viaduct::link {

// The sequence numbers of a lane:
//
//     all arrived     | gap, with frames that arrived   | not arrived,      | beyond the
//                     | out of order (bits_)            | within the credit | credit: dropped
//   ------------------+---------------------------------+-------------------+------------->
//                     expected_                         highest_            limit_
//
// consumed_ counts the frames whose messages the handlers have taken. limit_ is consumed_ + window_
// (the frames that the receiver has memory for), but at most kMaxWindow beyond expected_ (the bits
// of bits_).
//
// The window, in frames (impl/credit.hpp decides; base_window_ is granted for good, the rest is a
// lease):
//
//                 grow(): the peer wants credit
//                 and the lane's memory has some
//   base window  ------------------------------->  lease: window_ > base_window_  ---.
//   window_ ==                                           |   |            ^           |  grow()
//   base_window_ <-- reclaim(): 10 ms without traffic ---'   |            '-----------'
//        ^                                                   |
//        '---- consume(): a frame at a time, while ----------'
//              others wait for credit (contention)
//
// A peer that wants credit when there is none stands in line (`wants_credit`) and goes on with the
// window that it has.
template <PacketDevice Device>
class RxLane {
 public:
  using Frame = typename Device::Frame;
  using List = FrameList<Device, &FrameMeta<Frame>::rx>;

  // `sequence`: number of the peer's first frame, from its handshake. `window`: the base window.
  void start(std::uint32_t sequence, std::uint32_t window) {
    expected_ = highest_ = consumed_ = sequence;
    base_window_ = window_ = window;
    limit_ = advertised_ = sequence + window;
  }

  // --- arrival --------------------------------------------------------------------------------
  // in_order: the frame that is expected next. out_of_order: a gap lies before the frame.
  enum class Arrival : std::uint8_t { in_order, out_of_order, duplicate, beyond_credit };
  Arrival classify(std::uint32_t sequence) const {
    if (sequence_before(sequence, expected_)) return Arrival::duplicate;
    if (!sequence_before(sequence, limit_)) return Arrival::beyond_credit;
    if (sequence == expected_) return Arrival::in_order;
    return has(sequence) ? Arrival::duplicate : Arrival::out_of_order;
  }
  // The fast path's test: classify() would say in_order, there is no gap, and no handler is busy.
  bool is_next_in_order(std::uint32_t sequence) const {
    return sequence == expected_ && expected_ == highest_ && expected_ != limit_ && !stalled;
  }
  // Notes the arrival of a frame for which is_next_in_order() holds.
  void arrived_in_order(Time now) {
    last_active_ = now;
    if (unacknowledged_++ == 0) unacknowledged_since_ = now;
    highest_ = ++expected_;
  }
  // Notes the arrival of any frame that classify() calls in_order or out_of_order.
  void arrived(std::uint32_t sequence, Time now) {
    last_active_ = now;
    if (unacknowledged_++ == 0) unacknowledged_since_ = now;
    if (sequence != expected_) {
      set(sequence);
      if (sequence_before(highest_, sequence + 1)) highest_ = sequence + 1;
      return;
    }
    ++expected_;
    if (!sequence_before(expected_, highest_)) {
      highest_ = expected_;
      return;
    }
    // The frame has closed a gap, or its first part. Passed bits are reset because the ring of bits
    // is used again kMaxWindow frames later.
    for (; expected_ != highest_ && has(expected_); ++expected_) reset(expected_);
  }
  bool has_gap() const { return expected_ != highest_; }
  std::uint32_t expected() const { return expected_; }

  // --- frames not yet delivered ---------------------------------------------------------------
  // Sorted by sequence number.
  List& held() { return held_; }
  const List& held() const { return held_; }
  // Takes over a reference of the frame.
  void hold(Frame* f, std::uint32_t sequence) {
    Device::meta(f).rx.sequence = sequence;
    // Nearly every frame is the youngest. Otherwise find its place from the front.
    if (held_.empty() || sequence_before(Device::meta(held_.back()).rx.sequence, sequence)) {
      held_.push_back(f);
      return;
    }
    Frame* before = nullptr;
    for (Frame* g = held_.front(); sequence_before(Device::meta(g).rx.sequence, sequence);
         g = List::next(g))
      before = g;
    held_.insert_after(before, f);
  }
  bool stalled = false;       // a handler was busy; Link offers the messages again (offer_stalled)
  bool wants_credit = false;  // the peer stands in line for credit of this lane (credit waiters)

  // --- credit ---------------------------------------------------------------------------------
  std::uint32_t window() const { return window_; }
  std::uint32_t base_window() const { return base_window_; }
  bool has_lease() const { return window_ > base_window_; }
  std::uint32_t limit() const { return limit_; }
  // The credit that the next frame to the peer tells, in frames from expected() on. expected_ can
  // have passed limit_: credit was reclaimed while there was a gap, and the gap has closed since
  // while a busy handler makes a frame wait. The credit is then 0.
  std::uint16_t credit() const {
    return sequence_before(expected_, limit_) ? static_cast<std::uint16_t>(limit_ - expected_) : 0;
  }
  // A frame was wholly delivered. `share`: what the window should come down to because others wait
  // for credit (kMaxWindow: no peer waits). Returns by how many frames the window shrank: 0 or 1. A
  // shrinking window never takes back credit that the peer has been told of, since limit_ stays.
  std::uint32_t consume(std::uint32_t share) {
    ++consumed_;
    std::uint32_t shrunk = 0;
    if (window_ > share && window_ > base_window_) [[unlikely]] {
      --window_;
      shrunk = 1;
    }
    raise_limit();
    return shrunk;
  }
  // Grants `by` more frames of credit.
  void grow(std::uint32_t by, Time now) {
    last_active_ = now;
    window_ += by;
    raise_limit();
  }
  // Takes back the credit beyond the base window if the peer has let its lease run out: the peer
  // drops that credit after 2 ms (TxLane::expire_credit), the receiver only after kReclaimAfter.
  // Returns how many frames of credit became free.
  std::uint32_t reclaim(Time now) {
    if (!has_lease() || !held_.empty() || now - last_active_ < kReclaimAfter) return 0;
    const std::uint32_t freed = window_ - base_window_;
    window_ = base_window_;
    limit_ = advertised_ = max_limit();
    return freed;
  }

  // --- acknowledgement ------------------------------------------------------------------------
  bool ack_at_once = false;  // the next frame must acknowledge, without delay
  // When the oldest frame that is not acknowledged arrived; valid while there is such a frame.
  Time unacknowledged_since() const { return unacknowledged_since_; }
  // After so many frames an acknowledgement is due without delay: a quarter of the window, so that
  // a streaming sender hears of new credit before the old is used up.
  std::uint32_t ack_every() const { return std::clamp(window_ / 4, 2u, 32u); }
  bool ack_due() const { return ack_at_once || unacknowledged_ >= ack_every(); }
  bool ack_pending() const { return ack_at_once || unacknowledged_ != 0; }
  // Half a window of new credit has not been told to the peer. After a stall the peer may be
  // waiting for that credit with nothing in flight.
  bool credit_due() const { return limit_ - advertised_ >= std::max(window_ / 2, 1u); }
  // A frame has just told the peer expected() and credit().
  void on_ack_sent(Time now) {
    unacknowledged_ = 0;
    advertised_ = limit_;
    last_active_ = now;  // the credit that the frame tells of is good for a whole lease
    // Only an ack frame can describe a gap (bitmap), so with a gap an ack frame stays due.
    if (!has_gap()) ack_at_once = false;
  }
  // The same for an ack frame, which describes every gap.
  void on_ack_frame_sent(Time now) {
    on_ack_sent(now);
    ack_at_once = false;
  }
  // Fills `words` (room for kBitmapWords) with the selective acknowledgement: bit i says that frame
  // expected() + 1 + i has arrived. Returns how many words are in use; the last one is not 0.
  std::uint8_t bitmap(std::uint64_t* words) const {
    if (!has_gap()) return 0;
    const std::uint32_t bits = highest_ - expected_ - 1;
    const auto n = static_cast<std::uint8_t>((bits + 63) / 64);
    for (std::uint32_t w = 0; w < n; ++w) words[w] = bits_from(expected_ + 1 + w * 64);
    return n;
  }

  // Gives up every held frame: calls `release` for each.
  template <class Release>
  void clear(Release release) {
    while (!held_.empty()) release(held_.pop_front());
  }

 private:
  static constexpr Duration kReclaimAfter = std::chrono::milliseconds{10};

  // bits_ is a ring: frame s has bit s modulo kMaxWindow. limit_ keeps frames that have arrived
  // within kMaxWindow of expected_, so no two of them share a bit.
  bool has(std::uint32_t s) const { return (bits_[s % kMaxWindow / 64] >> (s % 64) & 1) != 0; }
  void set(std::uint32_t s) { bits_[s % kMaxWindow / 64] |= std::uint64_t{1} << (s % 64); }
  void reset(std::uint32_t s) { bits_[s % kMaxWindow / 64] &= ~(std::uint64_t{1} << (s % 64)); }
  // 64 bits that start at sequence s, which need not be a multiple of 64.
  std::uint64_t bits_from(std::uint32_t s) const {
    const std::uint64_t low = bits_[s % kMaxWindow / 64] >> (s % 64);
    if (s % 64 == 0) return low;
    return low | bits_[(s + 64) % kMaxWindow / 64] << (64 - s % 64);
  }
  // The limit that window and bitmap allow: memory bounds the frames that are not consumed; the
  // bitmap bounds how far ahead of a gap a frame may be.
  std::uint32_t max_limit() const {
    const std::uint32_t limit = consumed_ + window_, furthest = expected_ + kMaxWindow;
    return sequence_before(furthest, limit) ? furthest : limit;
  }
  // Never moves limit_ back: the peer may already have used that credit.
  void raise_limit() {
    const std::uint32_t limit = max_limit();
    if (sequence_before(limit_, limit)) limit_ = limit;
  }

  List held_;
  std::uint32_t expected_ = 0;  // the first frame that has not arrived
  std::uint32_t highest_ = 0;   // one past the highest frame that has
  std::uint32_t consumed_ = 0;  // first sequence + frames delivered
  // The first frame that the peer may not send; and the same as the peer was last told.
  std::uint32_t limit_ = 0, advertised_ = 0;
  std::uint32_t window_ = 0, base_window_ = 0;
  std::uint32_t unacknowledged_ = 0;  // frames arrived since the last acknowledgement
  Time last_active_{}, unacknowledged_since_{};
  std::array<std::uint64_t, kBitmapWords> bits_{};
};

}  // namespace viaduct::link
