// What the layers over a link have in common (StarT-X, MBCF): the link for one turn, the connection
// to the other side, and the few control messages that the two sides exchange beside what is
// measured. Those travel as messages of the link itself, with the protocol number of tests, on the
// high lane, so the measured traffic does not hold them up.
//
// Before a turn is measured (MBCF; StarT-X needs only the first step):
//
//     connecting --on_peer_up()--> up_ --exchange_keys() has sent--> keys_sent_ -+
//                                   |                                            |
//                                   +--- other's keys came: keys_received_ ------+
//                                                                                |
//                                                                keys_exchanged() <
#pragma once

#include <array>
#include <cstring>

#include "drivers/link/config.hpp"
#include "drivers/link/link.hpp"
#include "drivers/port/eal.hpp"
#include "tools/pingpong/layer.hpp"

namespace viaduct::pingpong {

// Owns the link, which borrows the port of the TurnConfig. One thread uses it and polls the link
// (through the engine or NIU above it).
class LinkSide : private link::ReceiveHandler {
 public:
  using Link = link::Link<port::Port>;
  // What one side has to tell the other before they can begin: keys of memory, for MBCF.
  using Keys = std::array<std::uint64_t, 2>;

  explicit LinkSide(const TurnConfig& config) : link_(*config.port, link_config(config)) {
    link_.attach(link::Protocol::test, this);
    if (!config.client) return;
    peer_ = link_.peer(config.peer);
    link_.connect(peer_, port::now());
  }
  ~LinkSide() { link_.attach(link::Protocol::test, nullptr); }
  LinkSide(const LinkSide&) = delete;
  LinkSide& operator=(const LinkSide&) = delete;

  Link& link() { return link_; }
  link::PeerId peer() const { return peer_; }
  bool up() const { return up_; }
  bool drained() const { return link_.idle(); }

  // The first reason stays.
  std::string_view failure() const { return failure_; }
  // Marks the turn as failed. The first reason stays.
  void fail(std::string_view why) {
    if (failure_.empty()) failure_ = why;
  }

  // Sends this side's keys once the connection is up; tries again at the next call if there is no
  // room. To be called with each poll until keys_exchanged().
  void exchange_keys(const Keys& own_keys, link::Time now) {
    if (up_ && !keys_sent_) keys_sent_ = send_control(kKeys, own_keys, now);
  }
  bool keys_exchanged() const { return keys_sent_ && keys_received_; }
  const Keys& remote_keys() const { return remote_keys_; }

  // Ends a turn: tells how much has been sent before, in a unit that the layer chooses. finished()
  // compares that with what has been received, because the end may overtake data on another lane.
  bool try_finish(std::uint64_t sent, link::Time now) { return send_control(kFinish, sent, now); }
  bool finished(std::uint64_t received) const { return received >= remote_sent_; }

 private:
  enum Kind : std::uint8_t { kKeys = 1, kFinish = 2 };

  static link::LinkConfig link_config(const TurnConfig& config) {
    link::LinkConfig out = link::link_config_from_environment();
    out.checksum = config.checksum;
    return out;
  }

  template <class T>
  bool send_control(Kind kind, const T& body, link::Time now) {
    return link_.try_send(peer_, link::Lane::high, link::Order::ordered,
                          {link::Protocol::test, kind}, {}, std::as_bytes(std::span(&body, 1)),
                          link::Urgency::now, now) == link::SendStatus::sent;
  }

  template <class T>
  static bool receive_control(const link::Incoming& message, T& body) {
    if (message.bytes.size() != sizeof(body)) return false;
    std::memcpy(&body, message.bytes.data(), sizeof(body));
    return true;
  }

  link::RxResult on_message(const link::Incoming& message) override {
    if (message.from != peer_) return link::RxResult::consumed;
    if (message.kind == kKeys) keys_received_ = receive_control(message, remote_keys_);
    if (message.kind == kFinish) receive_control(message, remote_sent_);
    return link::RxResult::consumed;
  }
  // The server learns here who its client is.
  void on_peer_up(link::PeerId peer, const link::Address&) override {
    if (!peer_) peer_ = peer;
    up_ = up_ || peer == peer_;
  }
  void on_peer_down(link::PeerId peer, const link::Address&, link::DownReason reason) override {
    if (peer == peer_) fail(link::text(reason));
  }

  link::PeerId peer_;
  bool up_ = false, keys_sent_ = false, keys_received_ = false;
  Keys remote_keys_{};
  std::uint64_t remote_sent_ = UINT64_MAX;  // how much the other side has sent; no end yet
  std::string failure_;
  link::Link<port::Port> link_;  // the last one: it ends first
};

}  // namespace viaduct::pingpong
