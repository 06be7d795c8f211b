// Two NICs that one thread drives, and what it hears of connections. For the tests of the
// extensions for programs that drive their NICs.
#pragma once

#include <map>

#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

class OwnNics : public testing::Test {
 protected:
  OwnNics() {
    EXPECT_VIP(VIP_SUCCESS, VipNicOwnProgress(a_, VIP_FALSE));
    EXPECT_VIP(VIP_SUCCESS, VipNicOwnProgress(b_, VIP_FALSE));
  }

  struct Asked {
    const Nic* nic;
    VIP_CONNECT_EVENT event;
    VIP_NET_ADDRESS* local() { return &event.LocalAddr.Address; }
    VIP_NET_ADDRESS* remote() { return &event.RemoteAddr.Address; }
  };

  static VIP_RETURN ask(const Vi& vi, const Nic& other, std::string_view local,
                        std::string_view remote, VIP_ULONG timeout = kSoon) {
    Address from(vi.nic(), local), to(other, remote);
    return VipConnectPeerRequest(vi, from, to, timeout);
  }
  static VIP_RETURN listen(const Nic& nic, std::string_view prefix, std::string_view key = "") {
    Address local(nic, prefix);
    std::string bytes(key);
    return VipPeerListen(nic, local, reinterpret_cast<VIP_UINT8*>(bytes.data()), bytes.size());
  }
  // Waiting requests, unauthorized ones.
  static std::pair<VIP_ULONG, VIP_ULONG> counts(const Nic& nic, std::string_view prefix) {
    Address local(nic, prefix);
    VIP_ULONG waiting = 77, unauthorized = 77;
    EXPECT_VIP(VIP_SUCCESS, VipPeerQuery(nic, local, &waiting, &unauthorized));
    return {waiting, unauthorized};
  }

  // One turn of both NICs, and their events.
  void turn() {
    for (const Nic* nic : {&a_, &b_}) {
      const VIP_RETURN result = VipNicProgress(*nic);
      EXPECT_TRUE(result == VIP_SUCCESS || result == VIP_NOT_DONE) << name(result);
      VIP_CONNECT_EVENT event;
      while (VipConnectEvent(*nic, &event) == VIP_SUCCESS) {
        if (event.Code == VIP_EVENT_OUTCOME)
          outcomes_[event.ViHandle].push_back(event);
        else
          asked_.push_back({nic, event});
      }
    }
  }
  bool turn_until(const std::function<bool()>& condition) {
    return eventually([&] {
      turn();
      return condition();
    });
  }
  // For as long as nothing should happen.
  void turn_for_a_moment() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kMoment);
    while (std::chrono::steady_clock::now() < end) turn();
  }
  // The only outcome of this VI so far, once it is there.
  VIP_RETURN outcome(const Vi& vi) {
    EXPECT_TRUE(turn_until([&] { return outcomes_.contains(vi); }));
    const auto all = std::exchange(outcomes_[vi], {});
    outcomes_.erase(vi);
    EXPECT_EQ(1u, all.size());
    return all.empty() ? VIP_NOT_DONE : all[0].Outcome;
  }
  Asked next_asked() {
    EXPECT_TRUE(turn_until([&] { return !asked_.empty(); }));
    if (asked_.empty()) return {};
    const Asked first = asked_.front();
    asked_.erase(asked_.begin());
    return first;
  }
  // A message from one to the other; both NICs are driven.
  void exchange(const Vi& from, const Vi& to) {
    const Memory out(from.nic(), 1, 64), in(to.nic(), 1, 64);
    out.fill(0, "peer");
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(to, in.receive(0, 64), in.handle()));
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(from, out.send(0, 4), out.handle()));
    VIP_DESCRIPTOR *sent = nullptr, *received = nullptr;
    EXPECT_TRUE(turn_until([&] {
      if (sent == nullptr) VipSendDone(from, &sent);
      if (received == nullptr) VipRecvDone(to, &received);
      return sent != nullptr && received != nullptr;
    }));
    EXPECT_EQ(out.raw(0), sent);
    EXPECT_EQ(in.raw(0), received);
    EXPECT_EQ("peer", in.text(0, 4));
  }

  Nic a_{kNicNames[0]}, b_{kNicNames[1]};
  std::map<VIP_VI_HANDLE, std::vector<VIP_CONNECT_EVENT>> outcomes_;
  std::vector<Asked> asked_;
};

}  // namespace viaduct::vipl_test
