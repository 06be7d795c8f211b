// Messages through work queues without flow control, as VIPL and bare verbs have them: a sender
// must know that a receive is posted at the other side (credit). Written once for both, so that
// they are measured doing the same thing. The layers verbs and vipl-send bring the queues
// (WorkQueues); vipl-rdma uses Window and PacketCursor only.
#pragma once

#include <algorithm>
#include <concepts>
#include <string>

#include "tools/pingpong/layers/transport.hpp"

namespace viaduct::pingpong {

// A message longer than this travels as several packets.
inline constexpr std::size_t kMaxPacketBytes = 1u << 20;

// How many packets may be under way at once, and their size: about 2 MiB in all, 4 to 64 packets.
struct Window {
  explicit Window(std::size_t message_bytes)
      : bytes(std::min(message_bytes, kMaxPacketBytes)),
        packets(static_cast<std::uint32_t>(std::clamp<std::size_t>(kMemory / bytes, 4, 64))) {}

  static constexpr std::size_t kMemory = 2u << 20;
  std::size_t bytes;      // of one packet at most
  std::uint32_t packets;  // of data
};

// Messages cut into packets: where sending and arriving have come to. All packets are of the
// largest size but the last of a message.
class PacketCursor {
 public:
  static constexpr std::uint32_t kBurst = 32;

  void begin(std::size_t message_bytes, const Window& window) {
    packets_ = static_cast<std::uint32_t>((message_bytes + window.bytes - 1) / window.bytes);
    packet_bytes_ = static_cast<std::uint32_t>(window.bytes);
    last_ = static_cast<std::uint32_t>(message_bytes - (packets_ - 1) * window.bytes);
  }

  // `send(bytes)` sends one packet, or returns false when there is no room. send_message() sends
  // the rest of the current message; true when all of it has been sent. send_burst() sends some
  // packets of a stream of at most `messages` messages and returns how many of them it completed.
  template <class Send>
  bool send_message(Send send) {
    for (; next_ < packets_; ++next_)
      if (!send(size(next_))) return false;
    next_ = 0;
    return true;
  }
  template <class Send>
  std::uint64_t send_burst(std::uint64_t messages, Send send) {
    std::uint64_t completed = 0;
    for (std::uint32_t i = 0; i < kBurst && completed < messages && send(size(next_)); ++i) {
      if (++next_ < packets_) continue;
      next_ = 0;
      ++completed;
    }
    return completed;
  }

  // A packet has come; true when it is the last of its message.
  bool arrived() {
    if (++parts_ < packets_) return false;
    parts_ = 0;
    return true;
  }
  std::uint32_t arriving_bytes() const { return size(parts_); }

 private:
  std::uint32_t size(std::uint32_t packet) const {
    return packet + 1 == packets_ ? last_ : packet_bytes_;
  }

  std::uint32_t packets_ = 1, packet_bytes_ = 0, last_ = 0;
  std::uint32_t next_ = 0;   // to be sent
  std::uint32_t parts_ = 0;  // of the message that is arriving
};

// Control words between the two sides, messages without data, use receives beside those of the
// window: at most two that give credit and one that ends the turn are under way at once, and one is
// spare.
inline constexpr std::uint32_t kMaxControlWords = 4;
enum class ControlWord : std::uint32_t { none = 0, credit = 1, finish = 2 };

// A completed receive.
struct Packet {
  std::uint32_t slot;   // the receive that it has used up
  std::uint32_t bytes;  // of data
  ControlWord word;     // none: data
};

// What a layer brings. Slots are numbered from 0; each send and each receive that is under way has
// one.
template <class Q>
concept WorkQueues = std::constructible_from<Q, const TurnConfig&, const Window&> &&
    requires(Q q, const Q constant, Packet packet, std::uint32_t number) {
  // Makes some progress connecting the two sides; true when they are connected.
  { q.connect() } -> std::same_as<bool>;
  // False, here and below: it did not work, failure() says why.
  { q.post_receive(number) } -> std::same_as<bool>;
  { q.post_send(number, number, ControlWord{}) } -> std::same_as<bool>;
  // The oldest completion, if there is one. False: there is none, or it failed.
  { q.next_received(packet) } -> std::same_as<bool>;
  { q.next_sent() } -> std::same_as<bool>;
  { constant.failure() } -> std::convertible_to<std::string_view>;
};

// The Transport over WorkQueues. Credit: each side starts with as many credits as the other side
// has receives for data; it spends one for each packet, and gets half a window back in one word. In
// round trips the answer itself says that the question's receives are free again.
template <WorkQueues Queues>
class Messages {
 public:
  static constexpr bool kLossy = false;

  explicit Messages(const TurnConfig& config)
      : window_(config.point.bytes), queues_(config, window_) {
    for (std::uint32_t slot = 0; slot < window_.packets + kMaxControlWords; ++slot)
      queues_.post_receive(slot);
  }

  bool ready() const { return connected_; }
  std::string_view failure() const { return queues_.failure(); }

  void begin(const Point& point) {
    latency_ = point.measure == Measure::latency;
    cursor_.begin(point.bytes, window_);
    credit_ = window_.packets;
  }

  void poll() {
    if (!connected_) [[unlikely]] {
      connected_ = queues_.connect();
      return;
    }
    Packet packet;
    while (queues_.next_received(packet)) {
      take(packet);
      if (latency_) return;  // it is answered first; what has been sent can wait
    }
    while (sending_ > 0 && queues_.next_sent()) --sending_;
    while (credit_to_return_ >= window_.packets / 2 && send_control(ControlWord::credit))
      credit_to_return_ -= window_.packets / 2;
  }

  bool try_send() {
    return cursor_.send_message([this](std::uint32_t bytes) { return send_packet(bytes); });
  }

  std::uint64_t stream(std::uint64_t max_messages) {
    const std::uint64_t completed = cursor_.send_burst(
        max_messages, [this](std::uint32_t bytes) { return send_packet(bytes); });
    poll();
    return completed;
  }

  bool try_finish() { return send_control(ControlWord::finish); }

  std::uint64_t arrived() const { return arrived_; }
  std::uint64_t bytes() const { return bytes_; }
  bool finished() const { return finished_; }
  bool drained() const { return sending_ == 0; }

 private:
  void take(const Packet& packet) {
    if (packet.word == ControlWord::none) [[likely]] {
      bytes_ += packet.bytes;
      ++credit_to_return_;
      if (cursor_.arrived()) {
        ++arrived_;
        // An answer says that the other side has taken the question from its receives, and the
        // reverse. So no words are needed.
        if (latency_) {
          credit_to_return_ = 0;
          credit_ = window_.packets;
        }
      }
    } else if (packet.word == ControlWord::credit) {
      credit_ += window_.packets / 2;
    } else {
      finished_ = true;
    }
    queues_.post_receive(packet.slot);
  }

  bool send_packet(std::uint32_t bytes) {
    if (credit_ == 0 || sending_ >= window_.packets) return false;
    if (!queues_.post_send(next_slot(), bytes, ControlWord::none)) return false;
    --credit_;
    return true;
  }
  bool send_control(ControlWord word) {
    return sending_ < window_.packets + kMaxControlWords && queues_.post_send(next_slot(), 0, word);
  }
  // Sends complete in order, so the slots of sends go round.
  std::uint32_t next_slot() {
    ++sending_;
    return sent_++ % (window_.packets + kMaxControlWords);
  }

  const Window window_;
  Queues queues_;
  bool connected_ = false, latency_ = false, finished_ = false;
  PacketCursor cursor_;
  std::uint32_t credit_ = 0;  // packets that this side may send: free receives of the other side
  std::uint32_t credit_to_return_ = 0;    // receives posted anew, not known to the other side
  std::uint32_t sending_ = 0, sent_ = 0;  // sends not yet complete; all sends
  std::uint64_t arrived_ = 0, bytes_ = 0;
};

}  // namespace viaduct::pingpong
