// The timed loops, written once for all layers. Transport is what a layer brings: the non-blocking
// halves of message passing. LayerOf makes a Layer (layer.hpp) of it: pings, streams, echoes,
// patience, statistics. The transport is a template argument, so the compiler sees through
// everything inside a loop and no virtual call is measured.
//
// One turn of a Transport, on each side:
//
//     constructor --> poll() until ready() --> begin() --> client: try_send()/stream(), poll() ...
//                                                          server: poll(), try_send() ...
//     client: try_finish() --> poll() until drained();     server: poll() until finished()
//
// The client sends the end of the turn; the server echoes nothing for it, but polls for kLinger
// more, so that its last acknowledgements leave.
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
concept Transport = std::constructible_from<T, const TurnConfig&> &&
    requires(T t, const T constant, const Point& point, std::uint64_t max_messages) {
  // Whether messages may get lost: a ping without an answer is then given up after a while.
  { T::kLossy } -> std::convertible_to<bool>;
  // Whether the two sides can reach each other; poll() is called until then.
  { constant.ready() } -> std::same_as<bool>;
  // Called once, after ready(): the counters start at zero.
  t.begin(point);
  // All progress: receives, and sends what had to wait.
  t.poll();
  // Latency: hands one message to the wire. False: there is no room, call again after poll().
  { t.try_send() } -> std::same_as<bool>;
  // Latency: how many messages have arrived, whole and expected.
  { constant.arrived() } -> std::same_as<std::uint64_t>;
  // Bandwidth: sends up to `max_messages` messages, batched as this layer does it best, and makes
  // the progress that sending needs. Returns how many were completed.
  { t.stream(max_messages) } -> std::same_as<std::uint64_t>;
  // Bandwidth: how many payload bytes have arrived.
  { constant.bytes() } -> std::same_as<std::uint64_t>;
  // Tells the other side that no more will come. False: call again after poll().
  { t.try_finish() } -> std::same_as<bool>;
  // Whether the other side has said so, and everything it sent is here.
  { constant.finished() } -> std::same_as<bool>;
  // Whether the other side has everything. An unreliable layer cannot know, and says true.
  { constant.drained() } -> std::same_as<bool>;
  // Empty, or why this turn cannot go on.
  { constant.failure() } -> std::convertible_to<std::string_view>;
};

// How long the loops wait. kFirstPatience: the server, for the first message of a turn.
// kReplyPatience: an unreliable layer takes a round trip that lasts longer for lost. kLinger: the
// server, until its last acknowledgement has left.
inline constexpr std::chrono::seconds kPatience{8};  // of a reliable layer, without any progress
inline constexpr std::chrono::seconds kFirstPatience{2};
inline constexpr std::chrono::milliseconds kReplyPatience{20};  // on an unreliable layer
// An unreliable layer: the word that ends a turn may be lost. A client that can send nothing for so
// long concludes that the server has ended its turn; the server's result tells what it received.
inline constexpr std::chrono::seconds kSilencePatience{1};
inline constexpr std::chrono::microseconds kLinger{300};
inline constexpr std::uint64_t kMinMessages = 8;      // however short the time is
inline constexpr std::uint64_t kMaxLostInARow = 5;    // round trips; then the point is given up
inline constexpr std::size_t kMaxSamples = 1u << 20;  // round trips of a point: 4 MiB of samples

// The serving side of a latency point: step() polls once, and answers if a message has arrived.
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

// The serving side of a bandwidth point: step() polls once, and notes when bytes arrived. The clock
// starts when the first bytes have arrived, so those are not counted.
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
  // Bytes that have arrived, and those of them that were there first; ticks when the first and the
  // last came.
  std::uint64_t seen_ = 0, head_ = 0, first_ = 0, last_ = 0;
};

// The Layer that a Transport makes: the functions of one side, and the ..._both functions, in which
// the only thread of the testbed ring steps the server's Echo or Meter in every turn of the
// client's loops.
template <Transport T>
class LayerOf final : public Layer {
 public:
  explicit LayerOf(const TurnConfig& config) : t_(config) {}

  std::string endpoint_address() const override {
    if constexpr (requires { t_.endpoint_address(); })
      return t_.endpoint_address();
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
    return meter.result(point.bytes).at_least_as_long_as(seconds);
  }

 private:
  // In the functions below `other` is what the only thread of the testbed ring does for the other
  // side in each turn; elsewhere it does nothing.

  // False when patience runs out.
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

  // Round trips, one at a time, for Point::time or as many as Point::messages.
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

  // One message there and back. False: lost, which is an error on a reliable layer.
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
    if (!T::kLossy) throw_failure("no reply within 8 s");
    return false;
  }

  // Streams for Point::time or as many as Point::messages. Returns the seconds from the first
  // message to the last.
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

  // An unreliable layer that could send nothing for kSilencePatience: the time until then counts.
  double nothing_taken(std::uint64_t start) const {
    if (!T::kLossy) throw_failure("the other side has taken nothing for 8 s");
    const std::chrono::duration<double> waited = kSilencePatience;
    return to_nanoseconds(ticks() - start) / 1e9 - waited.count();
  }

  // Tells the other side that the turn is over, and waits until it has everything. Once the end is
  // on its way, the other side may leave at any moment, so a broken connection is no error any
  // more. An unreliable layer says it three times, as the word may be lost.
  template <class Other, class OtherFinished>
  void finish_with(Other other, OtherFinished other_finished) {
    Watch watch(turn_patience());
    for (int repeat = 0; repeat < (T::kLossy ? 3 : 1); ++repeat) {
      while (!t_.try_finish()) {
        t_.poll();
        other();
        if (may_go_on(watch)) continue;
        if (T::kLossy) return;
        throw_failure("the other side has taken nothing for 8 s");
      }
    }
    watch.progress();
    while (!(t_.drained() && other_finished())) {
      t_.poll();
      other();
      if (watch.due() && (!t_.failure().empty() || !watch.look())) return;
    }
  }

  // The serving side's loop. False: nothing came at all. Returns when the client has finished, or,
  // on an unreliable layer, when it has been silent for kSilencePatience.
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
        throw_failure("the other side has been silent for 8 s");
      }
    }
    for (const std::uint64_t end = ticks() + to_ticks(kLinger); ticks() < end;) t_.poll();
    return true;
  }

  // Called in every turn of a loop that makes no progress. False: patience has run out. Throws
  // Failure if the transport has failed.
  bool may_go_on(Watch& watch) {
    // PAUSE. Without it the processor runs ahead of the loads that the loop waits for, and has to
    // throw away what it has begun when one of them brings something new.
    __builtin_ia32_pause();
    if (!watch.due()) [[likely]]
      return true;
    if (!t_.failure().empty()) throw_failure("the connection broke");
    return watch.look();
  }

  [[noreturn]] void throw_failure(const char* what) const {
    const std::string_view why = t_.failure();
    throw Failure(what + (why.empty() ? std::string() : " (" + std::string(why) + ")"));
  }

  T t_;
};

// One object of this at namespace scope is all it takes to add a layer to the program. `order` says
// where in --help.
template <Transport T>
struct RegisterLayer {
  RegisterLayer(int order, const LayerInfo& info) {
    detail::add_layer_kind({info, order, [](const TurnConfig& config) -> std::unique_ptr<Layer> {
                              return std::make_unique<LayerOf<T>>(config);
                            }});
  }
};

}  // namespace viaduct::pingpong
