// Layers mbcf-write and mbcf-signal: writes into a segment of the other side's memory. The two
// differ in how the receiver learns of a message: it polls a word of its own memory, or the handler
// of a signal is called.
//
// A message that is polled for brings a counter in its own last bytes. A message that does not fit
// a frame arrives in pieces, so its counter is a flag behind the data, which the chained operation
// sets when all of the data are there. Streams go into a ring of slots; a slot is written again
// only when what it held is known to have arrived.
#include <atomic>

#include "tools/pingpong/layers/mbcf.hpp"
#include "tools/pingpong/layers/transport.hpp"

namespace viaduct::pingpong {

namespace {

enum class Notice : std::uint8_t { memory, signal };

template <Notice kNotice>
class MbcfWrite {
 public:
  static constexpr bool kLossy = false;

  explicit MbcfWrite(const TurnConfig& config)
      : side_(config),
        streaming_(config.point.measure == Measure::bandwidth),
        size_(config.point.bytes),
        word_(size_ < kWide ? kNarrow : kWide),
        start_((word_ - size_ % word_) % word_),
        out_(size_, std::byte{0x5a}) {
    stride_ = (size_ + kWide - 1) / kWide * kWide;
    slots_ = streaming_ ? window(stride_) : 1;
    mbcf::Key segment, signal;
    if (!(streaming_ && config.client)) {  // else it receives nothing
      memory_.resize(slots_ * stride_ + kWide);
      segment = side_.engine().export_segment(memory_, mbcf::Rights::write);
    }
    if (kNotice == Notice::signal)
      signal = side_.engine().create_signal([this](std::uint64_t n) { arrived_ += n; });
    side_.publish_keys(segment, signal);
  }

  bool ready() const { return side_.ready(); }
  bool drained() const { return side_.drained() && confirmed_ == awaited_; }
  std::string_view failure() const { return side_.failure(); }

  void begin(const Point&) {
    constexpr std::size_t kHead =
        sizeof(mbcf::TargetHead) + (kNotice == Notice::signal ? sizeof(mbcf::ThenHead) : 0);
    short_ = size_ <= side_.max_payload_in_frame(kHead);
    to_ = {side_.peer(), side_.key(), start_};
    if (kNotice == Notice::memory && !streaming_)
      seen_ = memory_.data() + (short_ ? start_ + size_ - word_ : stride_);
  }

  void poll() {
    now_ = port::now();
    side_.poll(now_);
    if (streaming_)
      take_completions();
    else
      side_.poll_failures();
    if (kNotice == Notice::memory && seen_ != nullptr) arrived_ = count_in_memory();
  }

  // Uses the time of the poll that brought the message which this answers: reading the clock once
  // more would delay the answer.
  bool try_send() {
    if (!side_.accepted(write_next())) return false;
    ++sent_;
    return true;
  }

  std::uint64_t stream(std::uint64_t max_messages) {
    now_ = port::now();
    std::uint64_t issued = 0;
    while (issued < kBurst && issued < max_messages && stream_one()) ++issued;
    side_.poll(now_);
    take_completions();
    return issued;
  }

  bool try_finish() { return side_.try_finish(streaming_ ? sent_ * size_ : sent_, port::now()); }

  std::uint64_t arrived() const { return arrived_; }
  std::uint64_t bytes() const { return side_.count(mbcf::Counter::bytes_written); }
  bool finished() const { return side_.finished(streaming_ ? bytes() : arrived_); }

 private:
  static constexpr std::size_t kNarrow = 4, kWide = 8;  // bytes of a counter
  static constexpr std::uint64_t kBurst = 32;

  // Reads the counter like another thread of this task would: the engine writes it within poll(),
  // and the compiler must not keep it in a register.
  std::uint64_t count_in_memory() const {
    const auto load = [this]<class Word>(Word*) -> std::uint64_t {
      return std::atomic_ref(*reinterpret_cast<Word*>(seen_)).load(std::memory_order_acquire);
    };
    return short_ && word_ == kNarrow ? load(static_cast<std::uint32_t*>(nullptr))
                                      : load(static_cast<std::uint64_t*>(nullptr));
  }

  // Issues the write of the next message of a latency point.
  mbcf::Issued write_next() {
    if constexpr (kNotice == Notice::signal) {
      return side_.engine().write(to_, out_, mbcf::Then::raise(side_.signal()), kUnsignaledNow,
                                  now_);
    } else {
      const std::uint64_t count = sent_ + 1;
      if (!short_) {
        const auto flag = mbcf::Then::set(to_.key, stride_, count, mbcf::Width::eight);
        return side_.engine().write(to_, out_, flag, kUnsignaledNow, now_);
      }
      std::byte* const at = out_.data() + size_ - word_;
      if (word_ == kWide)
        std::memcpy(at, &count, kWide);
      else
        std::memcpy(at, &count, kNarrow);
      return side_.engine().write(to_, out_, kUnsignaledNow, now_);
    }
  }

  // Issues the next write of a stream. Short messages are silent; a fence behind every half of the
  // ring tells that they have arrived. Long messages each have a completion. Both put the number of
  // messages that are confirmed by them into `context`.
  bool stream_one() {
    if (short_ && sent_ - awaited_ >= slots_ / 2 &&
        side_.accepted(side_.engine().fence(side_.peer(), batch(sent_), now_)))
      awaited_ = sent_;
    if (sent_ - confirmed_ == slots_) return false;
    to_.offset = slot_ * stride_;
    const mbcf::Options options = short_ ? kUnsignaledBatch : batch(sent_ + 1);
    const mbcf::Issued issued =
        kNotice == Notice::signal
            ? side_.engine().write(to_, out_, mbcf::Then::raise(side_.signal()), options, now_)
            : side_.engine().write(to_, out_, options, now_);
    if (!side_.accepted(issued)) return false;
    ++sent_;
    if (++slot_ == slots_) slot_ = 0;
    if (!short_) awaited_ = sent_;
    return true;
  }

  void take_completions() {
    side_.take_completions([this](const mbcf::Completion& done) { confirmed_ = done.context; });
  }

  MbcfSide side_;
  const bool streaming_;
  const std::size_t size_;
  const std::size_t word_;   // bytes of the counter in a short message...
  const std::size_t start_;  // ... and where the message begins, so that the counter is aligned
  std::vector<std::byte> out_, memory_;
  std::size_t stride_ = 0, slots_ = 0;  // bytes from slot to slot; slots of the ring
  bool short_ = false;                  // a message fits a frame
  std::byte* seen_ = nullptr;           // latency: the counter in this side's memory
  mbcf::Remote to_{};
  link::Time now_{};  // of the last poll
  std::uint64_t sent_ = 0, arrived_ = 0;
  std::uint64_t awaited_ = 0,
                confirmed_ = 0;  // messages before a completion that is due, that came
  std::size_t slot_ = 0;         // the next one to be written
};

const RegisterLayer<MbcfWrite<Notice::memory>> register_mbcf_write{
    50, {"mbcf-write", "MBCF write: the receiver sees the message in its own memory"}};
const RegisterLayer<MbcfWrite<Notice::signal>> register_mbcf_signal{
    60, {"mbcf-signal", "MBCF write with a signal: the receiver's handler is called"}};

}  // namespace

}  // namespace viaduct::pingpong
