// Connections that came and went, kept until the user asks: what drivers offer as next_event().
#pragma once

#include "drivers/base/ring_buffer.hpp"
#include "drivers/link/message.hpp"

namespace viaduct::link {

struct Event {
  enum class Kind : std::uint8_t { peer_up, peer_down } kind;
  PeerId peer;
  Address address;
  DownReason reason;  // peer_down only
};

class EventQueue {
 public:
  // Room for every peer to come and go once between two looks.
  explicit EventQueue(std::size_t max_peers) : events_(std::bit_ceil(2 * max_peers)) {}

  // The oldest event, taken out; false when there is none.
  bool next(Event& event) {
    const Event* oldest = events_.front();
    if (oldest == nullptr) return false;
    event = *oldest;
    events_.pop();
    return true;
  }
  // False: the oldest one was lost to make room. A user who never asks loses events, not memory.
  bool remember(const Event& event) {
    const bool full = events_.full();
    if (full) events_.pop();
    *events_.back() = event;
    events_.push();
    return !full;
  }

 private:
  base::RingBuffer<Event> events_;
};

}  // namespace viaduct::link
