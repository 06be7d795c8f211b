// The timed loops, written once for all layers. Transport is what a layer brings; LayerOf makes a
// Layer of it. The compiler sees through everything inside a loop: no virtual call is measured.
#pragma once

#include <algorithm>
#include <concepts>
#include <string>

#include "tools/pingpong/layer.hpp"
#include "tools/pingpong/watch.hpp"

namespace viaduct::pingpong {

// Non-blocking halves of message passing. A message is `Point::bytes` long; a transport with
// smaller packets sends several of them for one message.
template <class T>
concept Transport = std::constructible_from<T, const Wire&> &&
    requires(T t, const T constant, const Point& point, std::uint64_t most) {
  // Messages may get lost: a ping is then given up after a while.
  { T::kLossy } -> std::convertible_to<bool>;
  // The two sides can reach each other; poll() is called until then.
  { constant.ready() } -> std::same_as<bool>;
  // Called once, after ready(): counters start at zero.
  t.begin(point);
  // All progress: receives, and sends what had to wait.
  t.poll();
  // Latency: hands one message to the wire; false: call again after poll().
  { t.try_send() } -> std::same_as<bool>;
  // Latency: messages that have arrived, whole and expected.
  { constant.arrived() } -> std::same_as<std::uint64_t>;
  // Bandwidth: sends, batched as this layer does it best, and makes what
  // progress sending needs; at most `most` messages. How many were completed.
  { t.stream(most) } -> std::same_as<std::uint64_t>;
  // Bandwidth: payload bytes that have arrived.
  { constant.bytes() } -> std::same_as<std::uint64_t>;
  // Says that no more will come; false: call again after poll().
  { t.try_finish() } -> std::same_as<bool>;
  // The other side has said so, and everything it sent is here.
  { constant.finished() } -> std::same_as<bool>;
  // The other side has everything (lossy: there is no knowing, so true).
  { constant.drained() } -> std::same_as<bool>;
  // Empty, or why this cannot go on.
  { constant.failure() } -> std::convertible_to<std::string_view>;
};

inline constexpr std::chrono::seconds kPatience{8};             // without any progress
inline constexpr std::chrono::seconds kFirstPatience{2};        // for the first message of a turn
inline constexpr std::chrono::milliseconds kReplyPatience{20};  // on a lossy wire
// When a lossy turn has ended, though the word about it was lost. A client that gets nothing on the
// wire for so long concludes that its server did; what that has received will tell.
inline constexpr std::chrono::seconds kSilencePatience{1};
inline constexpr std::chrono::microseconds kLinger{300};  // until the last acknowledgement has left
inline constexpr std::uint64_t kMinMessages = 8;
inline constexpr std::uint64_t kMaxLostInARow = 5;
inline constexpr std::size_t kMaxSamples = 1u << 20;

// What the serving side does in one poll of a latency point...
template <Transport T>
class Echo {
 public:
  explicit Echo(T& t) : t_(t) {}
  void step() {
    t_.poll();
    if (t_.arrived() != answered_ && t_.try_send()) ++answered_;
  }
  std::uint64_t progress() const { return answered_; }

 private:
  T& t_;
  std::uint64_t answered_ = 0;
};

// ... and of a bandwidth point. The clock starts when the first bytes have arrived, which are
// therefore not counted.
template <Transport T>
class Meter {
 public:
  explicit Meter(T& t) : t_(t) {}
  void step() {
    t_.poll();
    const std::uint64_t bytes = t_.bytes();
    if (bytes == seen_) return;
    last_ = ticks();
    if (seen_ == 0) {
      first_ = last_;
      head_ = bytes;
    }
    seen_ = bytes;
  }
  std::uint64_t progress() const { return seen_; }
  Received result(std::size_t message) const {
    const std::uint64_t counted = seen_ - head_;
    return {counted / message, counted, to_nanoseconds(last_ - first_) / 1e9};
  }

 private:
  T& t_;
  std::uint64_t seen_ = 0, head_ = 0, first_ = 0, last_ = 0;
};

template <Transport T>
class LayerOf final : public Layer {
 public:
  explicit LayerOf(const Wire& wire) : t_(wire) {}

  std::string card() const override {
    if constexpr (requires { t_.card(); })
      return t_.card();
    else
      return {};
  }

  bool connect(std::chrono::nanoseconds patience) override {
    return connect_with(
        patience, [] {}, [] { return true; });
  }
  RoundTrips ping(const Point& point) override {
    t_.begin(point);
    const RoundTrips result = ping_with(point, [] {});
    finish_with([] {}, [] { return true; });
    return result;
  }
  bool serve_ping(const Point& point) override {
    t_.begin(point);
    Echo<T> echo(t_);
    return serve(echo);
  }
  double send(const Point& point) override {
    t_.begin(point);
    const double seconds = send_with(point, [] {});
    finish_with([] {}, [] { return true; });
    return seconds;
  }
  Received receive(const Point& point) override {
    t_.begin(point);
    Meter<T> meter(t_);
    serve(meter);
    return meter.result(point.bytes);
  }

  bool connect_both(Layer& server, std::chrono::nanoseconds patience) override {
    T& other = static_cast<LayerOf&>(server).t_;
    return connect_with(
        patience, [&] { other.poll(); }, [&] { return other.ready(); });
  }
  RoundTrips ping_both(Layer& server, const Point& point) override {
    T& other = static_cast<LayerOf&>(server).t_;
    t_.begin(point);
    other.begin(point);
    Echo<T> echo(other);
    const RoundTrips result = ping_with(point, [&] { echo.step(); });
    finish_with([&] { echo.step(); }, [&] { return other.finished(); });
    return result;
  }
  Received stream_both(Layer& server, const Point& point) override {
    T& other = static_cast<LayerOf&>(server).t_;
    t_.begin(point);
    other.begin(point);
    Meter<T> meter(other);
    const double seconds = send_with(point, [&] { meter.step(); });
    finish_with([&] { meter.step(); }, [&] { return other.finished(); });
    return meter.result(point.bytes).over(seconds);
  }

 private:
  // In all of these `other` is what a ring bed's only thread does for the other side; elsewhere
  // nothing.

  template <class Other, class OtherReady>
  bool connect_with(std::chrono::nanoseconds patience, Other other, OtherReady other_ready) {
    Watch watch(patience);
    while (!(t_.ready() && other_ready())) {
      t_.poll();
      other();
      if (!may_go_on(watch)) return false;
    }
    return true;
  }

  template <class Other>
  RoundTrips ping_with(const Point& point, Other other) {
    Watch watch(T::kLossy ? std::chrono::nanoseconds{kReplyPatience} : kPatience);
    std::vector<std::uint32_t> samples;
    samples.reserve(kMaxSamples);
    std::uint64_t lost = 0, lost_in_a_row = 0, done = 0;
    const std::uint64_t end = ticks() + to_ticks(point.time);
    std::uint64_t now = 0;
    do {
      const std::uint64_t start = ticks();
      const bool answered = exchange(watch, other);
      now = ticks();
      watch.progress();
      if (answered) [[likely]] {
        samples.push_back(
            static_cast<std::uint32_t>(std::min<std::uint64_t>(now - start, UINT32_MAX)));
        lost_in_a_row = 0;
      } else {
        ++lost;
        if (++lost_in_a_row == kMaxLostInARow) break;  // none will come through
      }
      ++done;
    } while ((point.messages ? done < point.messages : now < end || done < kMinMessages) &&
             samples.size() < kMaxSamples);
    if (!point.messages) {  // the first ones found cold caches and a cold branch predictor
      const auto warm_up = static_cast<std::ptrdiff_t>(samples.size() / 10);
      samples.erase(samples.begin(), samples.begin() + warm_up);
    }
    return summarize(samples, lost, nanoseconds_per_tick());
  }

  // One message there and back. False: lost.
  template <class Other>
  bool exchange(Watch& watch, Other& other) {
    const std::uint64_t before = t_.arrived();
    while (!t_.try_send()) {
      t_.poll();
      other();
      if (!may_go_on(watch)) return unanswered();
    }
    for (;;) {
      t_.poll();
      other();
      if (t_.arrived() != before) return true;
      if (!may_go_on(watch)) return unanswered();
    }
  }

  bool unanswered() const {
    if (!T::kLossy) give_up("no reply within 8 s");
    return false;
  }

  // Seconds from the first message to the last.
  template <class Other>
  double send_with(const Point& point, Other other) {
    Watch watch(turn_patience());
    const std::uint64_t start = ticks(), end = start + to_ticks(point.time);
    for (std::uint64_t sent = 0;;) {
      const std::uint64_t n = t_.stream(point.messages ? point.messages - sent : UINT64_MAX);
      other();
      sent += n;
      if (n != 0)
        watch.progress();
      else if (!may_go_on(watch))
        return nothing_taken(start);
      if (point.messages ? sent >= point.messages : sent >= kMinMessages && ticks() >= end)
        return to_nanoseconds(ticks() - start) / 1e9;
    }
  }

  static std::chrono::nanoseconds turn_patience() {
    return T::kLossy ? kSilencePatience : kPatience;
  }

  double nothing_taken(std::uint64_t start) const {
    if (!T::kLossy) give_up("the other side has taken nothing for 8 s");
    const std::chrono::duration<double> waited = kSilencePatience;
    return to_nanoseconds(ticks() - start) / 1e9 - waited.count();
  }

  // Once the end is on its way, the other side may leave at any moment: no error any more.
  template <class Other, class OtherFinished>
  void finish_with(Other other, OtherFinished other_finished) {
    Watch watch(turn_patience());
    for (int repeat = 0; repeat < (T::kLossy ? 3 : 1); ++repeat) {
      while (!t_.try_finish()) {
        t_.poll();
        other();
        if (may_go_on(watch)) continue;
        if (T::kLossy) return;
        give_up("the other side has taken nothing for 8 s");
      }
    }
    watch.progress();
    while (!(t_.drained() && other_finished())) {
      t_.poll();
      other();
      if (watch.due() && (!t_.failure().empty() || !watch.look())) return;
    }
  }

  // False: nothing came at all.
  template <class Part>
  bool serve(Part& part) {
    Watch first(kFirstPatience);
    while (part.progress() == 0 && !t_.finished()) {
      part.step();
      if (!may_go_on(first)) return false;
    }
    Watch watch(turn_patience());
    for (std::uint64_t seen = 0; !t_.finished();) {
      part.step();
      if (part.progress() != seen) {
        seen = part.progress();
        watch.progress();
      } else if (!may_go_on(watch)) {
        if (T::kLossy) return true;
        give_up("the other side has been silent for 8 s");
      }
    }
    for (const std::uint64_t end = ticks() + to_ticks(kLinger); ticks() < end;) t_.poll();
    return true;
  }

  // Called in every turn of a loop that makes no progress. False: patience has run out.
  bool may_go_on(Watch& watch) {
    // The loop would run ahead of the loads it waits for, and what it has begun by then would have
    // to be undone when one of them brings something.
    __builtin_ia32_pause();
    if (!watch.due()) [[likely]]
      return true;
    if (!t_.failure().empty()) give_up("the connection broke");
    return watch.look();
  }

  [[noreturn]] void give_up(const char* what) const {
    const std::string_view why = t_.failure();
    throw Failure(what + (why.empty() ? std::string() : " (" + std::string(why) + ")"));
  }

  T t_;
};

// One object of this at namespace scope is all it takes to add a layer to the program.
template <Transport T>
struct RegisterLayer {
  RegisterLayer(int order, const LayerInfo& info) {
    detail::add_layer_kind({info, order, [](const Wire& wire) -> std::unique_ptr<Layer> {
                              return std::make_unique<LayerOf<T>>(wire);
                            }});
  }
};

}  // namespace viaduct::pingpong
