// Layer mbcf-fifo: entries appended to a FIFO in the other side's memory, which takes them in
// place. The FIFO has flow control of its own (credit for writers), so nothing is counted here but
// the messages.
#include "tools/pingpong/layers/mbcf.hpp"
#include "tools/pingpong/layers/transport.hpp"

namespace viaduct::pingpong {

namespace {

// Bytes of a FIFO, at least: a stream has many entries under way, each of at least a block.
constexpr std::size_t kMinToStream = 1u << 20, kMinToPing = 64u << 10;

class MbcfFifo {
 public:
  static constexpr bool kLossy = false;

  explicit MbcfFifo(const TurnConfig& config)
      : side_(config),
        streaming_(config.point.measure == Measure::bandwidth),
        writes_(!streaming_ || config.client),
        out_(config.point.bytes, std::byte{0x5a}) {
    if (streaming_ && config.client) return;  // receives nothing
    // Half of a FIFO is granted to a writer ahead of time, and a whole entry has to fit that half.
    const std::size_t least = streaming_ ? kMinToStream : kMinToPing;
    fifo_ = side_.engine().create_fifo(std::max(least, 2 * out_.size()));
    side_.publish_keys(fifo_->key());
  }

  // A writer is ready when it has credit for its first entry.
  bool ready() const {
    return side_.ready() && (!writes_ || side_.engine().capacity(writer_) != 0);
  }
  bool drained() const { return side_.drained() && confirmed_ == awaited_; }
  std::string_view failure() const { return side_.failure(); }

  void begin(const Point&) {
    short_ = out_.size() <= side_.max_payload_in_frame(sizeof(mbcf::TargetHead));
  }

  void poll() {
    now_ = port::now();
    side_.poll(now_);
    if (writes_ && !writer_ && side_.ready()) [[unlikely]]
      writer_ = side_.engine().open_writer(side_.peer(), side_.key(), now_);
    if (fifo_ != nullptr) take_entries();
    if (streaming_)
      take_completions();
    else
      side_.poll_failures();
  }

  // Uses the time of the poll that brought the message which this answers: reading the clock once
  // more would delay the answer.
  bool try_send() { return append(kUnsignaledNow); }

  // Long entries have completions, so that drained() can wait for them.
  std::uint64_t stream(std::uint64_t max_messages) {
    now_ = port::now();
    std::uint64_t appended = 0;
    while (appended < kBurst && appended < max_messages &&
           append(short_ ? kUnsignaledBatch : batch(sent_ + 1)))
      ++appended;
    if (!short_) awaited_ = sent_;
    side_.poll(now_);
    take_completions();
    return appended;
  }

  bool try_finish() { return side_.try_finish(sent_, port::now()); }

  std::uint64_t arrived() const { return arrived_; }
  std::uint64_t bytes() const { return bytes_; }
  bool finished() const { return side_.finished(arrived_); }

 private:
  static constexpr std::uint64_t kBurst = 32;

  bool append(const mbcf::Options& options) {
    if (!side_.accepted(side_.engine().append(writer_, {}, out_, options, now_))) return false;
    ++sent_;
    return true;
  }

  void take_entries() {
    while (const auto entry = fifo_->front()) {
      ++arrived_;
      bytes_ += entry->bytes.size();
      fifo_->pop();
    }
  }

  void take_completions() {
    side_.take_completions([this](const mbcf::Completion& done) { confirmed_ = done.context; });
  }

  MbcfSide side_;
  const bool streaming_, writes_;  // writes_: this side appends
  std::vector<std::byte> out_;
  mbcf::Fifo* fifo_ = nullptr;
  mbcf::WriterId writer_;
  bool short_ = false;  // an entry fits a frame
  link::Time now_{};    // of the last poll
  std::uint64_t sent_ = 0, arrived_ = 0, bytes_ = 0;
  std::uint64_t awaited_ = 0, confirmed_ = 0;  // long entries whose completion is due, that came
};

const RegisterLayer<MbcfFifo> register_mbcf_fifo{
    70, {"mbcf-fifo", "MBCF FIFO: entries appended in the receiver's memory, taken in place"}};

}  // namespace

}  // namespace viaduct::pingpong
