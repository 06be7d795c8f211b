// What the layers over a link have in common (StarT-X, MBCF): the link for one turn, the connection
// to the other side, and the few words that the two sides exchange beside what is measured. Those
// travel as messages of the link itself, with the protocol number of tests, on the high lane, so
// the measured traffic does not hold them up.
//
// Before a turn is measured (MBCF; StarT-X needs only the first step):
//
//     connecting --on_peer_up()--> up_ --introduce() has sent--> said_ --+
//                                   |                                    +--> introduced()
//                                   +--- the other's words came: heard_ -+
#pragma once

#include <array>
#include <cstring>

#include "drivers/link/config.hpp"
#include "drivers/link/link.hpp"
#include "drivers/port/eal.hpp"
#include "tools/pingpong/layer.hpp"

namespace viaduct::pingpong {

// Owns the link, which borrows the port of the Wire. One thread uses it and polls the link (through
// the engine or NIU above it).
class LinkSide final : private link::MessageSink {
 public:
  using Link = link::Link<port::Port>;
  // What one side has to tell the other before they can begin: keys of memory, for MBCF.
  using Introduction = std::array<std::uint64_t, 2>;

  explicit LinkSide(const Wire& wire) : link_(*wire.port, config(wire)) {
    link_.attach(link::Protocol::test, this);
    if (!wire.client) return;
    peer_ = link_.peer(wire.peer);
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

  // Sends this side's words once the connection is up; tries again at the next call if there is no
  // room. To be called with each poll until introduced().
  void introduce(const Introduction& mine, link::Time now) {
    if (up_ && !said_) said_ = say(kIntroduction, mine, now);
  }
  bool introduced() const { return said_ && heard_; }
  const Introduction& theirs() const { return theirs_; }

  // Ends a turn: tells how much has been sent before, in a unit that the layer chooses. finished()
  // compares that with what has been received, because the end may overtake data on another lane.
  bool try_finish(std::uint64_t sent, link::Time now) { return say(kFinish, sent, now); }
  bool finished(std::uint64_t received) const { return received >= announced_; }

 private:
  enum Kind : std::uint8_t { kIntroduction = 1, kFinish = 2 };

  static link::LinkConfig config(const Wire& wire) {
    link::LinkConfig out = link::link_config_from_environment();
    out.checksum = wire.checksum;
    return out;
  }

  template <class T>
  bool say(Kind kind, const T& words, link::Time now) {
    return link_.try_send(peer_, link::Lane::high, link::Order::ordered,
                          {link::Protocol::test, kind}, {}, std::as_bytes(std::span(&words, 1)),
                          link::Urgency::now, now) == link::SendStatus::sent;
  }

  template <class T>
  static bool hear(const link::Incoming& message, T& words) {
    if (message.bytes.size() != sizeof(words)) return false;
    std::memcpy(&words, message.bytes.data(), sizeof(words));
    return true;
  }

  link::Verdict on_message(const link::Incoming& message) override {
    if (message.from != peer_) return link::Verdict::taken;
    if (message.kind == kIntroduction) heard_ = hear(message, theirs_);
    if (message.kind == kFinish) hear(message, announced_);
    return link::Verdict::taken;
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
  bool up_ = false, said_ = false, heard_ = false;
  Introduction theirs_{};
  std::uint64_t announced_ = UINT64_MAX;  // how much the other side has sent; no end yet
  std::string failure_;
  link::Link<port::Port> link_;  // the last one: it ends first
};

}  // namespace viaduct::pingpong
