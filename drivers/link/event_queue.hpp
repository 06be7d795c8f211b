// Connections that came up and went down, kept until the user asks: a driver fills the queue from
// on_peer_up and on_peer_down, and offers it as next_event(). One owner thread; allocates at
// construction only.
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
  // Room for every peer to come and go once between two calls of next().
  explicit EventQueue(std::size_t max_peers) : events_(std::bit_ceil(2 * max_peers)) {}

  // Moves the oldest event into `event`. False: the queue is empty, `event` is unchanged.
  bool next(Event& event) {
    const Event* oldest = events_.front();
    if (oldest == nullptr) return false;
    event = *oldest;
    events_.pop();
    return true;
  }
  // Appends an event. False: the queue was full and dropped its oldest event. The queue never
  // grows, so a program that never asks loses events, not memory.
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
