// Peers that ask and have no VI here (VipPeerListen).
#include <map>
#include <random>

#include "tests/vipl/programs/connections/own_nics.hpp"

namespace viaduct::vipl_test {
namespace {

class PeerListener : public OwnNics {
 protected:
  // Answers a request with this VI.
  VIP_RETURN answer(const Vi& vi, Asked asked) {
    return VipConnectPeerRequest(vi, asked.local(), asked.remote(), kSoon);
  }
  // A prefix that no other test uses.
  const std::string rank_ = fresh_discriminator();
};

TEST_F(PeerListener, TellsOfAPeerAndTheAnswerConnects) {
  VIP_VI_ATTRIBUTES with_writes = vi_attributes();
  with_writes.EnableRdmaWrite = VIP_TRUE;
  ASSERT_VIP(VIP_SUCCESS, listen(b_, rank_));
  const Vi one(a_, with_writes), two(b_);
  ASSERT_VIP(VIP_SUCCESS, ask(one, b_, "caller", rank_ + "x"));
  Asked asked = next_asked();
  EXPECT_EQ(&b_, asked.nic);
  EXPECT_EQ(nullptr, asked.event.ViHandle);
  EXPECT_EQ(VIP_TRUE, asked.event.RemoteViAttribs.EnableRdmaWrite);
  EXPECT_EQ(rank_.size() + 1, asked.local()->DiscriminatorLen);
  EXPECT_EQ(6, asked.remote()->DiscriminatorLen);
  EXPECT_EQ(0, std::memcmp(asked.remote()->HostAddress, a_.attributes().LocalNicAddress, 6));
  EXPECT_EQ(1u, counts(b_, rank_).first);
  turn_for_a_moment();
  EXPECT_TRUE(asked_.empty());  // told once
  EXPECT_TRUE(outcomes_.empty());
  ASSERT_VIP(VIP_SUCCESS, answer(two, asked));
  EXPECT_VIP(VIP_SUCCESS, outcome(one));
  EXPECT_VIP(VIP_SUCCESS, outcome(two));
  EXPECT_EQ(0u, counts(b_, rank_).first);
  exchange(one, two);
  exchange(two, one);
}

TEST_F(PeerListener, RefusesAPeer) {
  ASSERT_VIP(VIP_SUCCESS, listen(b_, rank_));
  const Vi one(a_);
  ASSERT_VIP(VIP_SUCCESS, ask(one, b_, "caller", rank_));
  Asked asked = next_asked();
  EXPECT_VIP(VIP_SUCCESS, VipPeerRefuse(b_, asked.local(), asked.remote()));
  EXPECT_VIP(VIP_NO_MATCH, VipPeerRefuse(b_, asked.local(), asked.remote()));
  EXPECT_VIP(VIP_REJECT, outcome(one));
  EXPECT_EQ(VIP_STATE_IDLE, one.state());
}

// One VI, whoever asks first and however far the two have got; thousands of connections would take
// too long in a guest.
TEST_F(PeerListener, BothAskAtOnce) {
  ASSERT_VIP(VIP_SUCCESS, listen(a_, "a" + rank_));
  ASSERT_VIP(VIP_SUCCESS, listen(b_, "b" + rank_));
  std::minstd_rand random(3);
  for (int round = 0; round < 60; ++round) {
    const Vi one(a_), two(b_);
    const std::string left = "a" + rank_, right = "b" + rank_;
    const auto turns = [&] {
      for (auto n = random() % 12; n-- > 0;) VipNicProgress(random() % 2 != 0 ? a_ : b_);
    };
    ASSERT_VIP(VIP_SUCCESS, ask(one, b_, left, right));
    turns();
    ASSERT_VIP(VIP_SUCCESS, ask(two, a_, right, left));
    turns();
    ASSERT_VIP(VIP_SUCCESS, outcome(one));
    ASSERT_VIP(VIP_SUCCESS, outcome(two));
    exchange(one, two);
    EXPECT_EQ(0u, counts(a_, left).first);
    EXPECT_EQ(0u, counts(b_, right).first);
    asked_.clear();  // of requests that came before their VI did
  }
}

TEST_F(PeerListener, ThePeerThatGivesUpIsForgotten) {
  ASSERT_VIP(VIP_SUCCESS, listen(b_, rank_));
  const Vi one(a_), two(b_);
  ASSERT_VIP(VIP_SUCCESS, ask(one, b_, "caller", rank_));
  Asked asked = next_asked();
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(one));
  EXPECT_TRUE(turn_until([&] { return counts(b_, rank_).first == 0; }));
  EXPECT_VIP(VIP_NO_MATCH, VipPeerRefuse(b_, asked.local(), asked.remote()));
  // Answered too late, it is an ordinary request, which the peer may still meet.
  ASSERT_VIP(VIP_SUCCESS, answer(two, asked));
  turn_for_a_moment();
  ASSERT_VIP(VIP_SUCCESS, ask(one, b_, "caller", rank_));
  EXPECT_VIP(VIP_SUCCESS, outcome(one));
  EXPECT_VIP(VIP_SUCCESS, outcome(two));
  exchange(one, two);
}

TEST_F(PeerListener, UnauthorizedRequestsAreRefusedAndCounted) {
  ASSERT_VIP(VIP_SUCCESS, listen(b_, rank_, "key"));
  const Vi unauthorized(a_), another(a_), friendly(a_), two(b_);
  ASSERT_VIP(VIP_SUCCESS, ask(unauthorized, b_, "s", rank_));
  ASSERT_VIP(VIP_SUCCESS, ask(another, b_, "s", rank_ + "kex1"));
  EXPECT_VIP(VIP_REJECT, outcome(unauthorized));
  EXPECT_VIP(VIP_REJECT, outcome(another));
  EXPECT_EQ(std::pair(VIP_ULONG{0}, VIP_ULONG{2}), counts(b_, rank_));
  EXPECT_TRUE(asked_.empty());
  ASSERT_VIP(VIP_SUCCESS, ask(friendly, b_, "f", rank_ + "key1"));
  ASSERT_VIP(VIP_SUCCESS, answer(two, next_asked()));
  EXPECT_VIP(VIP_SUCCESS, outcome(friendly));
  EXPECT_VIP(VIP_SUCCESS, outcome(two));
  EXPECT_EQ(std::pair(VIP_ULONG{0}, VIP_ULONG{2}), counts(b_, rank_));
}

// A VI here may ask, and be asked, under a discriminator without the key, whoever comes first.
TEST_F(PeerListener, AVisOwnPeerNeedsNoKey) {
  ASSERT_VIP(VIP_SUCCESS, listen(b_, rank_, "key"));
  for (const bool is_asked_first : {true, false}) {
    const Vi one(a_), two(b_);
    const std::string own = rank_ + "own";
    if (is_asked_first) {
      ASSERT_VIP(VIP_SUCCESS, ask(one, b_, "x", own));
    }
    ASSERT_VIP(VIP_SUCCESS, ask(two, a_, own, "x"));
    if (!is_asked_first) {
      ASSERT_VIP(VIP_SUCCESS, ask(one, b_, "x", own));
    }
    EXPECT_VIP(VIP_SUCCESS, outcome(one));
    EXPECT_VIP(VIP_SUCCESS, outcome(two));
    exchange(one, two);
  }
  EXPECT_EQ(std::pair(VIP_ULONG{0}, VIP_ULONG{0}), counts(b_, rank_));
}

// A flood of them holds up nobody.
TEST_F(PeerListener, AFloodOfUnauthorizedRequests) {
  ASSERT_VIP(VIP_SUCCESS, listen(b_, rank_, "key"));
  const Vi friendly(a_), two(b_);
  std::vector<std::unique_ptr<Vi>> unauthorizeds;
  for (int i = 0; i < 100; ++i) {
    unauthorizeds.push_back(std::make_unique<Vi>(a_));
    ASSERT_VIP(VIP_SUCCESS, VipSetViCapacity(*unauthorizeds.back(), 1, 1, 2));
    ASSERT_VIP(VIP_SUCCESS, ask(*unauthorizeds.back(), b_, "s" + std::to_string(i), rank_ + "no"));
  }
  ASSERT_VIP(VIP_SUCCESS, ask(friendly, b_, "f", rank_ + "key"));
  ASSERT_VIP(VIP_SUCCESS, answer(two, next_asked()));
  EXPECT_VIP(VIP_SUCCESS, outcome(friendly));
  EXPECT_VIP(VIP_SUCCESS, outcome(two));
  for (const auto& it : unauthorizeds) EXPECT_VIP(VIP_REJECT, outcome(*it));
  EXPECT_EQ(100u, counts(b_, rank_).second);
}

TEST_F(PeerListener, ManyAskAtOnce) {
  constexpr std::size_t kPeers = 64;
  const auto small_vi = [](const Nic& nic) {
    auto vi = std::make_unique<Vi>(nic);
    EXPECT_VIP(VIP_SUCCESS, VipSetViCapacity(*vi, 4, 4, 2));
    return vi;
  };
  ASSERT_VIP(VIP_SUCCESS, listen(b_, rank_));
  std::map<std::string, std::unique_ptr<Vi>> theirs, ours;  // by the asking side's discriminator
  for (std::size_t i = 0; i < kPeers; ++i) {
    const std::string local = "p" + std::to_string(i);
    theirs[local] = small_vi(a_);
    ASSERT_VIP(VIP_SUCCESS, ask(*theirs[local], b_, local, rank_));
  }
  for (std::size_t i = 0; i < kPeers; ++i) {
    Asked asked = next_asked();
    const VIP_NET_ADDRESS& remote = *asked.remote();
    const auto* const bytes = reinterpret_cast<const char*>(remote.HostAddress);
    const std::string local(bytes + remote.HostAddressLen, remote.DiscriminatorLen);
    ours[local] = small_vi(b_);
    ASSERT_VIP(VIP_SUCCESS, answer(*ours[local], asked));
  }
  ASSERT_EQ(kPeers, ours.size());
  for (const auto& [local, vi] : theirs) {
    EXPECT_VIP(VIP_SUCCESS, outcome(*vi));
    EXPECT_VIP(VIP_SUCCESS, outcome(*ours.at(local)));
  }
  EXPECT_TRUE(asked_.empty());
  exchange(*theirs["p0"], *ours["p0"]);
  exchange(*ours["p63"], *theirs["p63"]);
}

TEST_F(PeerListener, TheLongestBeginningCounts) {
  ASSERT_VIP(VIP_SUCCESS, listen(b_, ""));  // all
  ASSERT_VIP(VIP_SUCCESS, listen(b_, rank_, "k"));
  const Vi one(a_), unauthorized(a_);
  ASSERT_VIP(VIP_SUCCESS, ask(one, b_, "1", "anything"));
  EXPECT_EQ(8, next_asked().local()->DiscriminatorLen);
  ASSERT_VIP(VIP_SUCCESS, ask(unauthorized, b_, "2", rank_ + "x"));
  EXPECT_VIP(VIP_REJECT, outcome(unauthorized));
  const Vi another(a_);
  ASSERT_VIP(VIP_SUCCESS, ask(another, b_, "3", rank_ + "k"));
  next_asked();
  EXPECT_EQ(std::pair(VIP_ULONG{1}, VIP_ULONG{0}), counts(b_, ""));
  EXPECT_EQ(std::pair(VIP_ULONG{1}, VIP_ULONG{1}), counts(b_, rank_));
}

TEST_F(PeerListener, StopsListening) {
  ASSERT_VIP(VIP_SUCCESS, listen(b_, rank_, "key"));
  ASSERT_VIP(VIP_SUCCESS, listen(b_, rank_ + "keylong"));
  const Vi told(a_), untold(a_), others(a_), late(a_);
  ASSERT_VIP(VIP_SUCCESS, ask(told, b_, "1", rank_ + "key"));
  next_asked();
  ASSERT_VIP(VIP_SUCCESS, ask(others, b_, "2", rank_ + "keylong"));
  next_asked();
  ASSERT_VIP(VIP_SUCCESS, ask(untold, b_, "3", rank_ + "key"));
  EXPECT_TRUE(eventually([&] {
    VipNicProgress(a_);
    VipNicProgress(b_);
    return counts(b_, rank_).first == 2;
  }));
  Address local(b_, rank_);
  EXPECT_VIP(VIP_SUCCESS, VipPeerStopListening(b_, local));
  EXPECT_VIP(VIP_NO_MATCH, VipPeerStopListening(b_, local));
  EXPECT_VIP(VIP_NO_MATCH, VipPeerQuery(b_, local, nullptr, nullptr));
  EXPECT_VIP(VIP_REJECT, outcome(told));
  EXPECT_VIP(VIP_REJECT, outcome(untold));
  EXPECT_TRUE(asked_.empty());
  EXPECT_EQ(1u, counts(b_, rank_ + "keylong").first);
  // The prefix is free, for another key and another handle, and the peer that asks again is told.
  ASSERT_VIP(VIP_SUCCESS, ask(late, b_, "4", rank_ + "new"));
  turn_for_a_moment();
  Nic c(kNicNames[1]);
  ASSERT_VIP(VIP_SUCCESS, VipNicOwnProgress(c, VIP_FALSE));
  ASSERT_VIP(VIP_SUCCESS, listen(c, rank_, "new"));
  EXPECT_TRUE(turn_until([&] {
    VipNicProgress(c);
    return counts(c, rank_).first == 1;
  }));
}

TEST_F(PeerListener, BadParametersAndStates) {
  Nic c(kNicNames[1]);  // with threads
  Address local(b_, rank_), remote(a_, "r"), none;
  VIP_UINT8 key[17] = {};
  VIP_ULONG n = 0;
  EXPECT_VIP(VIP_INVALID_STATE, VipPeerListen(c, local, nullptr, 0));
  EXPECT_VIP(VIP_INVALID_STATE, VipPeerStopListening(c, local));
  EXPECT_VIP(VIP_INVALID_STATE, VipPeerRefuse(c, local, remote));
  EXPECT_VIP(VIP_NO_MATCH, VipPeerQuery(c, local, &n, &n));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipPeerListen(no_handle(), local, nullptr, 0));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipPeerListen(b_, nullptr, nullptr, 0));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipPeerListen(b_, local, nullptr, 1));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipPeerListen(b_, local, key, 17));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipPeerListen(b_, local, key, ~VIP_ULONG{0}));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipPeerStopListening(no_handle(), local));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipPeerStopListening(b_, nullptr));
  EXPECT_VIP(VIP_NO_MATCH, VipPeerStopListening(b_, local));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipPeerRefuse(b_, local, nullptr));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipPeerRefuse(b_, nullptr, remote));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipPeerRefuse(b_, local, none));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipPeerRefuse(no_handle(), local, remote));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipPeerQuery(no_handle(), local, &n, &n));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipPeerQuery(b_, nullptr, &n, &n));
  EXPECT_VIP(VIP_NO_MATCH, VipPeerQuery(b_, local, &n, &n));
  EXPECT_VIP(VIP_NO_MATCH, VipPeerRefuse(b_, local, remote));
  EXPECT_VIP(VIP_SUCCESS, VipPeerListen(b_, local, nullptr, 0));
  EXPECT_VIP(VIP_SUCCESS, VipPeerQuery(b_, local, nullptr, nullptr));
  EXPECT_VIP(VIP_ERROR_RESOURCE, VipPeerListen(b_, local, nullptr, 0));
  Nic d(kNicNames[1]);  // the same address
  EXPECT_VIP(VIP_SUCCESS, VipNicOwnProgress(d, VIP_FALSE));
  EXPECT_VIP(VIP_ERROR_RESOURCE, VipPeerListen(d, local, nullptr, 0));
}

TEST_F(PeerListener, ClosedWithRequestsWaiting) {
  const Vi one(a_), two(a_);
  {
    Nic c(kNicNames[1]);
    ASSERT_VIP(VIP_SUCCESS, VipNicOwnProgress(c, VIP_FALSE));
    ASSERT_VIP(VIP_SUCCESS, listen(c, rank_));
    ASSERT_VIP(VIP_SUCCESS, ask(one, b_, "1", rank_ + "1"));
    ASSERT_VIP(VIP_SUCCESS, ask(two, b_, "2", rank_ + "2"));
    VIP_CONNECT_EVENT event;
    EXPECT_TRUE(turn_until([&] {
      VipNicProgress(c);
      return counts(c, rank_).first == 2;
    }));
    EXPECT_VIP(VIP_SUCCESS, VipConnectEvent(c, &event));  // one told, one not
  }
  // Its successor hears of both.
  ASSERT_VIP(VIP_SUCCESS, listen(b_, rank_));
  EXPECT_TRUE(turn_until([&] { return asked_.size() == 2; }));
}

}  // namespace
}  // namespace viaduct::vipl_test
