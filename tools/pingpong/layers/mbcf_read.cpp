// Layer mbcf-read: reads from a segment of the other side's memory. One read is a round trip by
// itself: the client asks, and the server's engine answers while it polls, which is all that the
// server does. A stream moves data to the server as in any other layer, so there the server is the
// one that reads: it pulls the bytes from the client's memory, with several reads under way, until
// the client says that it is enough.
#include "tools/pingpong/layers/mbcf.hpp"
#include "tools/pingpong/layers/transport.hpp"

namespace viaduct::pingpong {

namespace {

class MbcfRead {
 public:
  static constexpr bool kLossy = false;

  explicit MbcfRead(const TurnConfig& config)
      : side_(config),
        streaming_(config.point.measure == Measure::bandwidth),
        is_reader_(config.client != streaming_),
        size_(config.point.bytes),
        slots_(streaming_ ? window(size_) : 1),
        max_reads_(config.point.messages != 0 ? config.point.messages : UINT64_MAX),
        memory_(is_reader_ ? slots_ * size_ : size_, std::byte{0x5a}) {
    side_.publish_keys(is_reader_ ? mbcf::Key{}
                                  : side_.engine().export_segment(memory_, mbcf::Rights::read));
  }

  bool ready() const { return side_.ready(); }
  // A client that is read from stays until the server has got all it asked for and has said so.
  bool drained() const { return side_.drained() && (!streaming_ || side_.finished(0)); }
  std::string_view failure() const { return side_.failure(); }

  void begin(const Point&) {
    from_ = {side_.peer(), side_.key(), 0};
    pulling_ = streaming_ && is_reader_;
  }

  void poll() {
    now_ = port::now();
    if (pulling_) pull();
    side_.poll(now_);
    if (!is_reader_) return;
    side_.take_completions([this](const mbcf::Completion&) { ++completed_; });
  }

  // Uses the time of the last poll: reading the clock once more would delay the next request. The
  // server has nothing to send: its engine has answered.
  bool try_send() {
    if (!is_reader_) return true;
    return issue_read({.urgency = link::Urgency::now});
  }

  // The client of a stream only polls: it counts the messages that have been read from its memory.
  std::uint64_t stream(std::uint64_t max_messages) {
    poll();
    const std::uint64_t more = std::min(answered() - reported_, max_messages);
    reported_ += more;
    return more;
  }

  bool try_finish() { return side_.try_finish(streaming_ ? 0 : issued_, port::now()); }

  std::uint64_t arrived() const { return is_reader_ ? completed_ : answered(); }
  std::uint64_t bytes() const { return completed_ * size_; }
  bool finished() const {
    return streaming_ ? side_.finished(0) && completed_ == issued_ : side_.finished(answered());
  }

 private:
  static constexpr int kBurst = 32;

  std::uint64_t answered() const { return side_.count(mbcf::Counter::reads_served); }

  bool issue_read(const mbcf::Options& options) {
    const std::span<std::byte> into(memory_.data() + slot_ * size_, size_);
    if (!side_.accepted(side_.engine().read(from_, into, options, now_))) return false;
    ++issued_;
    if (++slot_ == slots_) slot_ = 0;
    return true;
  }

  // Issues reads until the client has ended the turn, then waits for those under way and says so.
  // Reads of one size are answered in the order in which they were issued, so slots come free in
  // turn.
  void pull() {
    if (!side_.finished(0)) {
      const std::uint64_t until = std::min<std::uint64_t>(completed_ + slots_, max_reads_);
      for (int i = 0; i < kBurst && issued_ < until && issue_read(batch(0)); ++i) {
      }
    } else if (completed_ == issued_ && side_.try_finish(0, now_)) {
      pulling_ = false;
    }
  }

  MbcfSide side_;
  const bool streaming_;
  const bool is_reader_;  // this side reads
  const std::size_t size_;
  const std::size_t slots_;        // reads under way at once
  const std::uint64_t max_reads_;  // reads in all
  std::vector<std::byte> memory_;  // that is read from, or into
  bool pulling_ = false;
  mbcf::Remote from_{};
  link::Time now_{};                          // of the last poll
  std::size_t slot_ = 0;                      // of memory_, for the next read
  std::uint64_t issued_ = 0, completed_ = 0;  // reads issued, and answered
  std::uint64_t reported_ = 0;                // answered reads that stream() has told of
};

const RegisterLayer<MbcfRead> register_mbcf_read{
    80, {"mbcf-read", "MBCF read: a round trip is one read; in a stream the receiver reads"}};

}  // namespace

}  // namespace viaduct::pingpong
