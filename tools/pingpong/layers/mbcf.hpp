// What the MBCF layers have in common: an engine on the port for one turn, and the keys of the
// other side, which come before anything is measured.
#pragma once

#include <algorithm>
#include <vector>

#include "drivers/mbcf/engine.hpp"
#include "tools/pingpong/layers/link_side.hpp"

namespace viaduct::pingpong {

// A request that leaves at once, without a completion: the user sees the effect.
inline constexpr mbcf::Options kUnsignaledNow{.urgency = link::Urgency::now, .silent = true};
// A request without a completion that shares frames with others.
inline constexpr mbcf::Options kUnsignaledBatch{.urgency = link::Urgency::batch, .silent = true};
// A request that shares frames; its completion gives `context` back.
constexpr mbcf::Options batch(std::uint64_t context) {
  return {.urgency = link::Urgency::batch, .silent = false, .context = context};
}

// How many messages of that size may be under way at once when each needs memory of its own: 512
// KiB in all, enough to keep a wire busy and little enough to stay in a cache. Long ones take two,
// so that one is sent while the completion of another is on its way.
inline std::size_t window(std::size_t bytes) {
  constexpr std::size_t kMemory = 512u << 10, kMax = 1024;
  return std::clamp<std::size_t>(kMemory / bytes, 2, kMax);
}

// Owns the link and the engine. One thread uses it.
class MbcfSide : public LinkSide {
 public:
  using Engine = mbcf::Engine<port::Port>;

  explicit MbcfSide(const TurnConfig& config)
      : LinkSide(config), engine_(link(), mbcf::EngineConfig{}) {}

  // What the other side may use of this side's memory, if anything; to be called before the first
  // poll, which may send it. key() and signal() are what the other side has published, once
  // ready().
  void publish_keys(mbcf::Key key, mbcf::Key signal = {}) { own_keys_ = {key.value, signal.value}; }
  bool ready() const { return keys_exchanged(); }
  mbcf::Key key() const { return {remote_keys()[0]}; }
  mbcf::Key signal() const { return {remote_keys()[1]}; }

  Engine& engine() { return engine_; }
  const Engine& engine() const { return engine_; }
  std::uint64_t count(mbcf::Counter counter) const { return engine_.counters()[counter]; }
  // The largest payload of a request whose own header has `head` bytes and that fits one frame.
  std::size_t max_payload_in_frame(std::size_t head) { return link().max_message(peer()) - head; }

  void poll(link::Time now) {
    engine_.poll(now);
    if (!ready()) [[unlikely]]
      exchange_keys(own_keys_, now);
  }

  // Whether a request was issued. If not, there is no room now, or the turn has failed.
  bool accepted(const mbcf::Issued& issued) {
    if (issued.status == mbcf::Status::ok) [[likely]]
      return true;
    if (issued.status != mbcf::Status::no_room) fail(mbcf::text(issued.status));
    return false;
  }
  // Calls take(completion) for each request that has been executed.
  template <class Take>
  void take_completions(Take take) {
    mbcf::Completion completion;
    while (engine_.next_completion(completion)) {
      if (completion.status == mbcf::Status::ok) [[likely]]
        take(completion);
      else
        fail(mbcf::text(completion.status));
    }
  }
  // For requests that are silent, where only failures complete. Those are looked for at every 256th
  // call.
  void poll_failures() {
    if ((++polls_ & 0xff) == 0) [[unlikely]]
      take_completions([](const mbcf::Completion&) {});
  }

 private:
  Engine engine_;
  Keys own_keys_{};
  std::uint32_t polls_ = 0;
};

}  // namespace viaduct::pingpong
