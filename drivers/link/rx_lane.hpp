// The receiving half of one lane from one peer: which frames have arrived, which wait for a gap to
// close or for a busy sink, how much credit the peer has, what must be acknowledged.
#pragma once

#include <algorithm>
#include <array>

#include "drivers/link/frame_list.hpp"
#include "drivers/link/packet_device.hpp"
#include "drivers/link/wire_format.hpp"

namespace viaduct::link {

template <PacketDevice Device>
class RxLane {
 public:
  using Frame = typename Device::Frame;
  using List = FrameList<Device, &FrameMeta<Frame>::rx>;

  void start(std::uint32_t sequence, std::uint32_t window) {
    expected_ = highest_ = consumed_ = sequence;
    base_window_ = window_ = window;
    limit_ = advertised_ = sequence + window;
  }

  // --- arrival --------------------------------------------------------------------------------
  enum class Arrival : std::uint8_t { in_order, out_of_order, duplicate, beyond_credit };
  Arrival classify(std::uint32_t sequence) const {
    if (sequence_before(sequence, expected_)) return Arrival::duplicate;
    if (!sequence_before(sequence, limit_)) return Arrival::beyond_credit;
    if (sequence == expected_) return Arrival::in_order;
    return has(sequence) ? Arrival::duplicate : Arrival::out_of_order;
  }
  // Just what classify() calls in_order, with nothing held back.
  bool next_in_line(std::uint32_t sequence) const {
    return sequence == expected_ && expected_ == highest_ && expected_ != limit_ && !stalled;
  }
  void arrived_in_line(Time now) {
    last_active_ = now;
    if (unacknowledged_++ == 0) unacknowledged_since_ = now;
    highest_ = ++expected_;
  }
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
    for (; expected_ != highest_ && has(expected_); ++expected_) reset(expected_);
  }
  bool has_gap() const { return expected_ != highest_; }
  std::uint32_t expected() const { return expected_; }

  // --- frames not yet delivered ---------------------------------------------------------------
  List& held() { return held_; }
  const List& held() const { return held_; }
  void hold(Frame* f, std::uint32_t sequence) {
    Device::meta(f).rx.sequence = sequence;
    // Nearly always the youngest; otherwise find the place from the front.
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
  bool stalled = false;  // a sink was busy; Link offers the messages again
  bool wants = false;    // stands in line for credit

  // --- credit ---------------------------------------------------------------------------------
  std::uint32_t window() const { return window_; }
  std::uint32_t base_window() const { return base_window_; }
  bool borrows() const { return window_ > base_window_; }
  std::uint32_t limit() const { return limit_; }
  // From expected() on, as the peer is told. None, where credit was reclaimed and a gap has closed
  // since in front of what a busy sink makes wait.
  std::uint16_t credit() const {
    return sequence_before(expected_, limit_) ? static_cast<std::uint16_t>(limit_ - expected_) : 0;
  }
  // A frame was wholly delivered. `share` is what the lane's window should come down to when others
  // wait for credit (kMaxWindow: nobody does). Returns what the window shrank by.
  std::uint32_t consume(std::uint32_t share) {
    ++consumed_;
    std::uint32_t shrunk = 0;
    if (window_ > share && window_ > base_window_) [[unlikely]] {
      --window_;
      shrunk = 1;
    }
    extend();
    return shrunk;
  }
  void grow(std::uint32_t by, Time now) {
    last_active_ = now;
    window_ += by;
    extend();
  }
  // Takes back the credit lent beyond the base window if the peer has let its lease run out.
  // Returns what became free.
  std::uint32_t reclaim(Time now) {
    if (!borrows() || !held_.empty() || now - last_active_ < kReclaimAfter) return 0;
    const std::uint32_t freed = window_ - base_window_;
    window_ = base_window_;
    limit_ = advertised_ = reach();
    return freed;
  }

  // --- acknowledgement ------------------------------------------------------------------------
  bool ack_at_once = false;
  Time unacknowledged_since() const { return unacknowledged_since_; }
  // Frames that may arrive before an acknowledgement is due without delay.
  std::uint32_t ack_every() const { return std::clamp(window_ / 4, 2u, 32u); }
  bool ack_due() const { return ack_at_once || unacknowledged_ >= ack_every(); }
  bool ack_pending() const { return ack_at_once || unacknowledged_ != 0; }
  // After a stall the peer may be waiting for credit that it has not heard of.
  bool credit_due() const { return limit_ - advertised_ >= std::max(window_ / 2, 1u); }
  void acknowledged(Time now) {  // by whatever frame just carried expected() and limit()
    unacknowledged_ = 0;
    advertised_ = limit_;
    last_active_ = now;  // what credit it told of is good for a whole lease
    // A gap can only be described by an ack frame: see Link::send_ack.
    if (!has_gap()) ack_at_once = false;
  }
  void acknowledged_fully(Time now) {
    acknowledged(now);
    ack_at_once = false;
  }
  // Fills words with what has arrived beyond expected(); returns how many are in use.
  std::uint8_t bitmap(std::uint64_t* words) const {
    if (!has_gap()) return 0;
    const std::uint32_t bits = highest_ - expected_ - 1;
    const auto n = static_cast<std::uint8_t>((bits + 63) / 64);
    for (std::uint32_t w = 0; w < n; ++w) words[w] = bits_from(expected_ + 1 + w * 64);
    return n;
  }

  template <class Release>
  void clear(Release release) {
    while (!held_.empty()) release(held_.pop_front());
  }

 private:
  static constexpr Duration kReclaimAfter = std::chrono::milliseconds{10};

  bool has(std::uint32_t s) const { return (bits_[s % kMaxWindow / 64] >> (s % 64) & 1) != 0; }
  void set(std::uint32_t s) { bits_[s % kMaxWindow / 64] |= std::uint64_t{1} << (s % 64); }
  void reset(std::uint32_t s) { bits_[s % kMaxWindow / 64] &= ~(std::uint64_t{1} << (s % 64)); }
  // 64 bits that start at sequence s, which need not be a multiple of 64.
  std::uint64_t bits_from(std::uint32_t s) const {
    const std::uint64_t low = bits_[s % kMaxWindow / 64] >> (s % 64);
    if (s % 64 == 0) return low;
    return low | bits_[(s + 64) % kMaxWindow / 64] << (64 - s % 64);
  }
  // Memory bounds what is not consumed; the bitmap bounds how far ahead of a gap a frame may be.
  std::uint32_t reach() const {
    const std::uint32_t limit = consumed_ + window_, furthest = expected_ + kMaxWindow;
    return sequence_before(furthest, limit) ? furthest : limit;
  }
  void extend() {
    const std::uint32_t limit = reach();
    if (sequence_before(limit_, limit)) limit_ = limit;
  }

  List held_;
  std::uint32_t expected_ = 0;  // the first frame that has not arrived
  std::uint32_t highest_ = 0;   // one past the highest that has
  std::uint32_t consumed_ = 0;  // first sequence + frames delivered
  std::uint32_t limit_ = 0, advertised_ = 0;
  std::uint32_t window_ = 0, base_window_ = 0;
  std::uint32_t unacknowledged_ = 0;
  Time last_active_{}, unacknowledged_since_{};
  std::array<std::uint64_t, kBitmapWords> bits_{};
};

}  // namespace viaduct::link
