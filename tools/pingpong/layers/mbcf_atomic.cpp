// Layer mbcf-atomic: fetch_add on a word of the other side's memory. One fetch_add is a round trip
// by itself: the server's engine answers while it polls, which is all that the server does. A
// message is one fetch_add of 8 bytes for every 8 bytes begun, or one of 4 bytes if it is smaller.
// Checks itself: each result must be the number of additions before it.
#include "tools/pingpong/layers/mbcf.hpp"
#include "tools/pingpong/layers/transport.hpp"

namespace viaduct::pingpong {

namespace {

class MbcfAtomic {
 public:
  static constexpr bool kLossy = false;

  explicit MbcfAtomic(const TurnConfig& config)
      : side_(config),
        client_(config.client),
        size_(config.point.bytes),
        parts_((size_ + sizeof(word_) - 1) / sizeof(word_)),
        width_(size_ < sizeof(word_) ? mbcf::Width::four : mbcf::Width::eight) {
    side_.publish_keys(
        client_ ? mbcf::Key{}
                : side_.engine().export_segment(std::as_writable_bytes(std::span(&word_, 1)),
                                                mbcf::Rights::atomic));
  }

  bool ready() const { return side_.ready(); }
  bool drained() const { return side_.drained() && completed_ == issued_; }
  std::string_view failure() const { return side_.failure(); }

  void begin(const Point&) { at_ = {side_.peer(), side_.key(), 0}; }

  void poll() {
    now_ = port::now();
    progress();
  }

  // Uses the time of the last poll: reading the clock once more would delay the next request. The
  // server has nothing to send: its engine has answered.
  bool try_send() {
    if (!client_) return true;
    while (next_ < parts_)
      if (!issue_add(parts_ == 1 ? link::Urgency::now : link::Urgency::batch)) return false;
    next_ = 0;
    return true;
  }

  std::uint64_t stream(std::uint64_t max_messages) {
    now_ = port::now();
    std::uint64_t messages = 0;
    for (int i = 0; i < kBurst && messages < max_messages && issue_add(link::Urgency::batch); ++i) {
      if (next_ != parts_) continue;
      next_ = 0;
      ++messages;
    }
    progress();
    return messages;
  }

  bool try_finish() {
    while (next_ % parts_ != 0)  // the rest of a message that the end of the time has cut
      if (!issue_add(link::Urgency::batch)) return false;
    next_ = 0;
    return side_.try_finish(issued_, port::now());
  }

  std::uint64_t arrived() const { return (client_ ? completed_ : executed()) / parts_; }
  std::uint64_t bytes() const { return arrived() * size_; }
  bool finished() const { return side_.finished(executed()); }

 private:
  static constexpr int kBurst = 32;

  std::uint64_t executed() const { return side_.count(mbcf::Counter::atomics_served); }

  void progress() {
    side_.poll(now_);
    if (!client_) return;
    side_.take_completions([this](const mbcf::Completion& done) {
      // The word held how many additions had been executed before this one; a word of 4 bytes
      // wraps.
      const std::uint64_t mask = width_ == mbcf::Width::four ? UINT32_MAX : UINT64_MAX;
      if (done.value != (completed_++ & mask)) side_.fail("a fetch_add was lost or doubled");
    });
  }

  bool issue_add(link::Urgency urgency) {
    if (!side_.accepted(side_.engine().fetch_add(at_, width_, 1, {.urgency = urgency}, now_)))
      return false;
    ++next_;
    ++issued_;
    return true;
  }

  MbcfSide side_;
  const bool client_;
  const std::size_t size_;
  std::uint64_t word_ = 0;   // the server's: what is added to
  const std::size_t parts_;  // fetch_adds of a message
  const mbcf::Width width_;
  mbcf::Remote at_{};
  link::Time now_{};                          // of the last poll
  std::size_t next_ = 0;                      // part of the current message to be sent next
  std::uint64_t issued_ = 0, completed_ = 0;  // fetch_adds issued, and answered
};

const RegisterLayer<MbcfAtomic> register_mbcf_atomic{
    90, {"mbcf-atomic", "MBCF fetch_add on a word of the other side, one for each 8 bytes"}};

}  // namespace

}  // namespace viaduct::pingpong
