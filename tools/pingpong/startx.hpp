// What the StarT-X layers have in common: a link and a NIU on the port for one turn, and the
// connection to the other side.
#pragma once

#include <cstring>

#include "drivers/link/eal.hpp"
#include "drivers/link/knobs.hpp"
#include "drivers/startx_emul/niu.hpp"
#include "tools/pingpong/layer.hpp"

namespace viaduct::pingpong {

// User header word of our packets.
enum StartxTag : std::uint32_t { kTagData = 1, kTagFinish = 2, kTagRight = 3 };

// A message as StarT-X packets: payload words of each, all full but the last.
struct Packets {
  Packets() = default;
  explicit Packets(std::size_t bytes) {
    const std::size_t words = (bytes + 3) / 4;
    count = static_cast<std::uint32_t>((words + startx::kMaxWords - 1) / startx::kMaxWords);
    last_words = static_cast<std::uint8_t>(
        std::max(startx::kMinWords, words - (count - 1) * startx::kMaxWords));
  }
  std::uint8_t words(std::uint32_t i) const {
    return i + 1 == count ? last_words : static_cast<std::uint8_t>(startx::kMaxWords);
  }
  std::uint32_t count = 1;
  std::uint8_t last_words = startx::kMinWords;
};

class StartxSide {
 public:
  using Niu = startx::Niu<link::Port>;

  explicit StartxSide(const Wire& wire)
      : link_(*wire.port, config(wire)), niu_(link_, startx::NiuConfig{}) {
    if (!wire.client) return;
    peer_ = link_.peer(wire.peer);
    link_.connect(peer_, link::now());
  }

  bool ready() const { return up_; }
  bool drained() const { return link_.idle(); }
  std::string_view failure() const { return failure_; }

  Niu& niu() { return niu_; }
  const Niu& niu() const { return niu_; }
  link::PeerId peer() const { return peer_; }

  void poll(link::Time now) {
    niu_.poll(now);
    // Looked at rarely: connections come and go once in a turn.
    if ((++polls_ & 0xff) == 0 || !up_) [[unlikely]]
      take_events();
  }

  // The end of a turn: a packet that says how many data packets or transfers came before it.
  bool try_finish(std::uint64_t sent, link::Time now) {
    startx::Packet packet;
    packet.tag = kTagFinish;
    std::memcpy(packet.payload, &sent, sizeof(sent));
    return niu_.try_send(peer_, startx::Priority::high, packet, now) == link::SendStatus::sent;
  }
  // Takes the high-priority packets that are not data; `right` is called with rights to write.
  template <class Right>
  void take_control(Right right) {
    while (const startx::Received* packet = niu_.peek(startx::Priority::high)) {
      if (packet->tag == kTagFinish) std::memcpy(&announced_, packet->payload, sizeof(announced_));
      if (packet->tag == kTagRight) right(*packet);
      niu_.pop(startx::Priority::high);
    }
  }
  bool finished(std::uint64_t received) const { return received >= announced_; }

 private:
  static link::LinkConfig config(const Wire& wire) {
    link::LinkConfig out = link::link_config_from_environment();
    out.checksum = wire.checksum;
    return out;
  }

  void take_events() {
    startx::Event event;
    while (niu_.next_event(event)) {
      if (event.kind == startx::Event::Kind::peer_up) {
        if (!peer_) peer_ = event.peer;
        up_ = up_ || event.peer == peer_;
      } else if (event.peer == peer_) {
        failure_ = link::text(event.reason);
      }
    }
  }

  link::Link<link::Port> link_;
  Niu niu_;
  link::PeerId peer_;
  bool up_ = false;
  std::string failure_;
  std::uint32_t polls_ = 0;
  std::uint64_t announced_ = UINT64_MAX;
};

}  // namespace viaduct::pingpong
