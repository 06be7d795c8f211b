// One process of a job of three; what the others say and how they end, the test decides.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/transfer/buffered.hpp"
#include "tests/mpi/transfer/process_of_three.hpp"

namespace viaduct::mpi {
namespace {

constexpr std::size_t kEager = MockChannel::kEager, kPiece = 32, kLong = 100,
                      kEarly = MockChannel::kEarly;

class Peers : public ProcessOfThree {
 protected:
  Peers() : ProcessOfThree({.eager_budget = 240, .piece = kPiece}) {
    without_1_ = make<Comm>(kContext + 2, make<Group>(std::vector{0, 2}, 0), nullptr, nullptr);
    for (std::size_t i = 0; i < std::size(memory_); ++i) memory_[i] = static_cast<std::byte>(i);
  }

  Items bytes(std::size_t n) { return {memory_, static_cast<MPI_Count>(n), &datatype(MPI_BYTE)}; }
  Items with_gaps(std::size_t n) { return {memory_, static_cast<MPI_Count>(n), spread_.get()}; }
  Envelope world(int rank, int tag = 7) { return {world_.get(), kContext, rank, tag}; }
  Ref<SendRequest> send(const Items& items, int to, SendMode mode = SendMode::standard) {
    auto request = make<SendRequest>(items, world(to), to, mode);
    transfer_->start(*request);
    return request;
  }
  Ref<ReceiveRequest> receive(const Items& items, const Envelope& from) {
    auto request =
        make<ReceiveRequest>(items, from, from.rank < 0 ? -1 : from.comm->peer(from.rank));
    request->on_complete = [](Request&, void* count) { ++*static_cast<int*>(count); };
    request->on_complete_argument = &completions_;
    transfer_->start(*request);
    return request;
  }

  template <class T>
  void hear(int from, const T& head) {
    sink_->on_control(from, bytes_of(head));
  }
  void hear_rts(int from, std::uint64_t name, std::size_t length, int tag = 7) {
    RtsHead head{};
    head.head = {Kind::request_to_send, {}, kContext, from, tag};
    head.send = name;
    head.length = length;
    hear(from, head);
  }
  // A long receive waits there, made after that many messages had arrived.
  void hear_rtr(int from, std::uint32_t seen) {
    RtrHead head{};
    head.kind = Kind::ready_to_receive;
    head.context = kContext;
    head.tag = 7;
    head.seen = seen;
    head.capacity_low = kLong;
    hear(from, head);
  }
  CtsHead cts(const SendRequest& send, std::size_t total, std::size_t offset, std::size_t length) {
    CtsHead head{};
    head.kind = Kind::clear_to_send;
    head.send = send.id;
    head.total = total;
    head.offset = offset;
    head.length = length;
    return head;
  }
  void sent() { sink_->on_long_sent(channel_->sending.back().cookie, true); }
  std::size_t count_said(Kind kind) const {
    return static_cast<std::size_t>(
        std::count_if(channel_->said.begin(), channel_->said.end(),
                      [&](const auto& m) { return m[0] == static_cast<std::byte>(kind); }));
  }
  std::uint64_t malformed() const { return transfer_->counters(0).malformed; }
  static LossHead loss(int from, std::uint32_t process, int tag = 7) {
    return {{Kind::loss, {}, kContext, from, tag}, process, 0};
  }
  // As the channels over a network end a peer.
  void lose(int peer) {
    for (const MockChannel::Open& open : std::exchange(channel_->open, {}))
      open.from == peer ? sink_->on_long_received(open.cookie, false)
                        : channel_->open.push_back(open);
    sink_->on_peer_lost(peer, "the test says so");
  }

  std::byte memory_[4096];
  const Ref<Datatype> spread_ = make_resized(datatype(MPI_BYTE), 0, 2);
  Ref<Comm> without_1_;
  int completions_ = 0;  // of receives
};

// ---- long messages in parts ------------------------------------------------------------------

// The receiver has a part, and sends the CTS of the next one, before the channel says at the sender
// that the part is through.
TEST_F(Peers, AGrantMayComeBeforeThePartBeforeItIsThrough) {
  for (const bool gaps : {true, false}) {
    channel_->sending.clear();
    const auto message = send(gaps ? with_gaps(kLong) : bytes(kLong), 1);
    std::vector<std::byte> got;
    const auto take = [&] {
      const Bytes part = channel_->sending.back().data;
      got.insert(got.end(), part.begin(), part.end());
    };
    hear(1, cts(*message, kLong, 0, 32));
    ASSERT_EQ(channel_->sending.size(), 1u);
    take();
    for (std::size_t offset = 32; offset < kLong; offset += 32) {
      hear(1, cts(*message, kLong, offset, std::min<std::size_t>(32, kLong - offset)));
      ASSERT_EQ(channel_->sending.size(), offset / 32) << "the memory is still being read";
      sent();
      ASSERT_EQ(channel_->sending.size(), offset / 32 + 1);
      take();
    }
    EXPECT_FALSE(message->complete);
    sent();
    EXPECT_TRUE(message->complete);
    for (std::size_t i = 0; i < kLong; ++i) ASSERT_EQ(got.at(i), memory_[gaps ? 2 * i : i]) << i;
  }
  EXPECT_EQ(malformed(), 0u);
}

TEST_F(Peers, GrantsThatCannotBeMeantMoveNothing) {
  std::uint64_t bad = 0;
  const auto refused = [&](const CtsHead& head) {
    const std::size_t before = channel_->sending.size();
    hear(1, head);
    EXPECT_EQ(malformed(), ++bad);
    EXPECT_EQ(channel_->sending.size(), before);
  };
  const auto message = send(with_gaps(kLong), 1);
  refused(cts(*message, kLong + 1, 0, 32));  // more than there is
  refused(cts(*message, kLong, 0, 33));      // more than fits a part
  refused(cts(*message, kLong, 32, 32));     // not where it begins
  refused(cts(*message, kLong, 0, 0));       // nothing, though there is something
  refused(cts(*message, 16, 0, 32));         // more than is taken
  hear(1, cts(*message, kLong, 0, 8));
  ASSERT_EQ(channel_->sending.size(), 1u);
  refused(cts(*message, kLong, 0, 8));       // once more, while it is read
  refused(cts(*message, kLong - 1, 8, 32));  // another total
  hear(1, cts(*message, kLong, 8, 32));      // longer than the one before
  refused(cts(*message, kLong, 40, 32));     // two ahead
  sent();
  ASSERT_EQ(channel_->sending.size(), 2u);
  EXPECT_EQ(channel_->sending.back().data.size(), 32u);
  hear(2, cts(*message, kLong, 40, 32));  // not the receiver
  EXPECT_EQ(malformed(), ++bad);

  const auto synchronous = send(bytes(8), 1, SendMode::synchronous);
  refused(cts(*synchronous, 8, 0, 8));  // it has gone already

  hear_rtr(1, 2);
  const auto written = send(bytes(kLong), 1);
  ASSERT_EQ(count_said(Kind::written), 1u);
  refused(cts(*written, kLong, 0, 8));
  refused(cts(*written, kLong, kLong, 0));
  sent();
  EXPECT_TRUE(written->complete);
}

TEST_F(Peers, ALongMessageIsNotCompleteBecauseItHasMatched) {
  const auto message = send(bytes(kLong), 1, SendMode::synchronous);
  hear(1, cts(*message, kLong, 0, kLong));
  hear(1, IdHead{Kind::matched, {}, message->id});
  EXPECT_EQ(malformed(), 1u);
  EXPECT_FALSE(message->complete);
  sent();
  EXPECT_TRUE(message->complete);
}

// ---- heads of eager messages -------------------------------------------------------------------

// As short as what they say allows; the other side understands both.
TEST_F(Peers, EagerMessagesHaveShortHeadsWhereThatIsEnough) {
  struct Case {
    std::uint32_t context;
    int source, tag;
    bool is_short;
  };
  constexpr int kTag = 1 << 24, kMaxTag = 0x7fffffff;
  for (const auto& [context, source, tag, is_short] :
       std::initializer_list<Case>{{kContext, 1, 0, true},
                                   {0xffff, 0xffff, kTag - 1, true},
                                   {0x10000, 1, 0, false},
                                   {kContext, 0x10000, 0, false},
                                   {kContext, 1, kTag, false},
                                   {0xffffffff, 0x7fffffff, kMaxTag, false}}) {
    EXPECT_EQ(ShortHead::fits(context, source, tag), is_short);
    if (!is_short) continue;
    const Head head = ShortHead::of(context, source, tag).head();
    EXPECT_EQ(head.kind, Kind::eager);
    EXPECT_EQ(head.context, context);
    EXPECT_EQ(head.source, source);
    EXPECT_EQ(head.tag, tag);
  }
  std::uint32_t messages = 0;
  for (const int tag : {kTag - 1, kTag, kMaxTag}) {
    channel_->said.clear();
    auto request = make<SendRequest>(bytes(8), world(1, tag), 1, SendMode::standard);
    transfer_->start(*request);
    ASSERT_TRUE(transfer_->send_now(bytes(8), world(1, tag), SendMode::standard));
    ASSERT_EQ(channel_->said.size(), 2u);
    EXPECT_EQ(channel_->said[0], channel_->said[1]);
    EXPECT_EQ(channel_->said[0].size(), 8 + (tag < kTag ? sizeof(ShortHead) : sizeof(Head)));
    // What rank 0 says to rank 1, rank 1 may say to rank 0.
    const auto received = receive(bytes(kPiece), world(MPI_ANY_SOURCE, tag));
    sink_->on_control(1, channel_->said[0]);
    ASSERT_TRUE(received->complete);
    EXPECT_EQ(received->status.MPI_TAG, tag);
    EXPECT_EQ(received->status.MPI_SOURCE, 0);
    EXPECT_EQ(received->error, MPI_SUCCESS);
    messages += 2;
    hear(1, ConsumedHead{Kind::consumed, {}, messages * (8 + kEagerCharge), messages});
  }
  const std::byte cut[7]{static_cast<std::byte>(Kind::eager_short)};
  sink_->on_control(1, cut);
  EXPECT_EQ(malformed(), 1u);
}

// ---- persistent requests ---------------------------------------------------------------------

TEST_F(Peers, APersistentReceiveFromAnybodyIsForAnybodyEachTime) {
  const Ref<Request> request = make_receive(bytes(kPiece), world(MPI_ANY_SOURCE));
  start(*request);
  hear_rts(1, 77, kPiece);
  sink_->on_long_received(channel_->open.at(0).cookie, true);
  ASSERT_TRUE(request->complete);
  start(*request);
  EXPECT_EQ(count_said(Kind::ready_to_receive), 0u) << "who will send is not known";
  hear_rts(2, 78, kPiece);
  ASSERT_EQ(channel_->open.size(), 2u);
  EXPECT_EQ(channel_->open[1].from, 2);
  sink_->on_long_received(channel_->open[1].cookie, true);
  EXPECT_TRUE(request->complete);
  EXPECT_EQ(request->status.MPI_SOURCE, 2);
}

// An eager message has no name at the receiver; it must not be asked for by one.
TEST_F(Peers, APersistentSendThatGoesEagerlyIsNotCancelledByAnOldName) {
  const Ref<Request> request = make_send(bytes(kEager), world(1), SendMode::standard);
  {  // the budget is used up, so that the first one goes by an RTS
    std::vector<Ref<SendRequest>> others;
    while (count_said(Kind::request_to_send) == 0) others.push_back(send(bytes(kEager), 1));
    start(*request);
    ASSERT_EQ(count_said(Kind::request_to_send), 2u);
    cancel(*request);
    ASSERT_EQ(count_said(Kind::cancel_send), 1u);
    hear(1, CancelledHead{Kind::cancelled, 1, {}, static_cast<SendRequest&>(*request).id});
    ASSERT_TRUE(request->cancelled);
    std::uint32_t budget = 0;
    for (const auto& m : channel_->said)
      if (m[0] == static_cast<std::byte>(Kind::eager_short)) budget += kEager + kEagerCharge;
    hear(1, ConsumedHead{Kind::consumed, {}, budget, 0});
  }
  channel_->full = true;
  start(*request);
  ASSERT_FALSE(request->complete);
  cancel(*request);
  channel_->full = false;
  transfer_->progress();
  EXPECT_TRUE(request->complete);
  EXPECT_FALSE(request->cancelled);
  EXPECT_EQ(count_said(Kind::cancel_send), 1u);
}

TEST_F(Peers, ACancelWithoutANameTakesNoMessage) {
  hear(1, Head{Kind::eager, {}, kContext, 1, 7});
  ASSERT_NE(transfer_->queues(kContext).find_message(1, 7), nullptr);
  hear(1, IdHead{Kind::cancel_send, {}, 0});
  EXPECT_NE(transfer_->queues(kContext).find_message(1, 7), nullptr);
  EXPECT_EQ(malformed(), 1u);
}

// ---- what waits at the receiver --------------------------------------------------------------

// Also of messages without data only so many may wait there.
TEST_F(Peers, NoMessageIsFreeOfCharge) {
  std::size_t sent = 0;
  for (; count_said(Kind::request_to_send) == 0; ++sent) {
    ASSERT_LE(sent, 100u) << "a receiver would drown";
    send(bytes(0), 1);
  }
  hear(1, ConsumedHead{Kind::consumed, {}, kEagerCharge, 0});
  send(bytes(0), 1);
  EXPECT_EQ(count_said(Kind::request_to_send), 1u) << "there is room again";
  // And the other way: what is taken in, or cancelled, is reported.
  for (std::uint64_t name = 1; name <= 3; ++name) {
    hear(2, SyncHead{{Kind::eager_sync, {}, kContext, 2, 7}, name});
    if (name % 2 != 0)
      hear(2, IdHead{Kind::cancel_send, {}, name});
    else
      receive(bytes(0), world(2));
  }
  EXPECT_EQ(count_said(Kind::consumed), 3u);
}

// MPI_Finalize does not leave before it has been said.
TEST_F(Peers, WhatFindsNoRoomIsLeftToDo) {
  EXPECT_FALSE(transfer_->has_backlog());
  channel_->full = true;
  send(bytes(8), 1);
  EXPECT_TRUE(transfer_->has_backlog() && transfer_->busy());
  send(bytes(8), 2);
  channel_->full = false;
  transfer_->progress();
  EXPECT_FALSE(transfer_->has_backlog() || transfer_->busy());
  channel_->full = true;
  send(bytes(8), 1);
  lose(1);
  EXPECT_FALSE(transfer_->has_backlog()) << "it will never be said";
}

// Nobody wakes a process when there is room.
TEST_F(Peers, NoSleepWhileSomethingWaitsForRoom) {
  constexpr std::chrono::milliseconds kMax{1};
  EXPECT_TRUE(transfer_->sleep(kMax));
  channel_->full = true;
  send(bytes(8), 1);
  EXPECT_FALSE(transfer_->sleep(kMax));
  channel_->full = false;
  transfer_->progress();
  EXPECT_TRUE(transfer_->sleep(kMax));
}

// ---- early receives --------------------------------------------------------------------------

// Places must be left for messages with an RTS, or a sender whose message comes in another order
// than the receives waits for ever.
TEST_F(Peers, EarlyReceivesLeavePlaces) {
  int tag = 0;
  const auto expect_rtrs = [&](std::size_t expected, const char* when) {
    // Until none sends an RTR; after one was missed, two send none anyway.
    for (int silent = 0; silent < 3;) {
      const std::size_t before = count_said(Kind::ready_to_receive);
      receive(bytes(kLong), world(1, ++tag));
      silent = count_said(Kind::ready_to_receive) == before ? silent + 1 : 0;
      ASSERT_LE(count_said(Kind::ready_to_receive), 100u) << "nothing holds it up";
    }
    EXPECT_EQ(count_said(Kind::ready_to_receive), expected) << when;
  };
  expect_rtrs(kEarly, "at first");
  // The first one meets a message with an RTS, and another receive gets its place.
  hear_rts(1, 50, kLong, 1);
  EXPECT_EQ(channel_->closed, 1);
  expect_rtrs(kEarly + 1, "one has met another message");
  WrittenHead written{};
  written.kind = Kind::written;
  written.tag = 2;
  written.receive = static_cast<std::uint32_t>(channel_->open.at(1).cookie);
  written.length_low = kLong;
  hear(1, written);
  sink_->on_long_received(written.receive, true);
  EXPECT_EQ(completions_, 1);
  expect_rtrs(kEarly + 2, "one was written");
}

// An RTR costs as much as a message, so where it is always too late hardly any is sent.
TEST_F(Peers, WhoAsksInVainAsksLessAndLess) {
  constexpr std::size_t kMessages = 1000;
  for (std::size_t i = 1; i <= kMessages; ++i) {
    receive(bytes(kLong), world(1));
    hear_rts(1, i, kLong);
  }
  const std::size_t in_vain = count_said(Kind::ready_to_receive);
  EXPECT_GE(in_vain, kMessages / 64);
  EXPECT_LE(in_vain, kMessages / 64 + 8);
  // Receives that could not take each other's messages send an RTR each.
  for (int tag = 1; tag <= 128; ++tag) receive(bytes(kLong), world(1, 100 + tag));
  EXPECT_EQ(count_said(Kind::ready_to_receive), in_vain + 2);
}

TEST_F(Peers, WhoIsWrittenIntoGoesOnAsking) {
  for (std::uint64_t i = 1; i <= 100; ++i) {
    receive(bytes(kLong), world(1));
    hear_rts(1, i, kLong);
  }
  std::size_t before = count_said(Kind::ready_to_receive);
  int tag = 100;
  while (count_said(Kind::ready_to_receive) == before) {
    ASSERT_LT(tag, 200) << "it never asks again";
    receive(bytes(kLong), world(1, ++tag));
  }
  for (int i = 0; i < 10; ++i) {
    WrittenHead written{};
    written.kind = Kind::written;
    written.tag = tag;
    written.receive = static_cast<std::uint32_t>(channel_->open.back().cookie);
    written.length_low = kLong;
    hear(1, written);
    sink_->on_long_received(written.receive, true);
    before = count_said(Kind::ready_to_receive);
    receive(bytes(kLong), world(1, ++tag));
    EXPECT_EQ(count_said(Kind::ready_to_receive), before + 1);
  }
}

// One that was silent is not in the way of those behind it for ever.
TEST_F(Peers, WhoKeepsReceivesPostedGoesOnAskingToo) {
  static_assert(kEarly == 3);
  const auto written_into = [&](std::size_t which) {
    WrittenHead written{};
    written.kind = Kind::written;
    written.tag = 7;
    written.receive = static_cast<std::uint32_t>(channel_->open.at(which).cookie);
    written.length_low = kLong;
    hear(1, written);
    sink_->on_long_received(written.receive, true);
  };
  for (int i = 0; i < 3; ++i) receive(bytes(kLong), world(1));
  ASSERT_EQ(count_said(Kind::ready_to_receive), 3u);
  hear_rts(1, 50, kLong);  // has crossed the request of the first
  receive(bytes(kLong), world(1));
  ASSERT_EQ(count_said(Kind::ready_to_receive), 3u);
  for (std::size_t i = 1; i < 10; ++i) {
    written_into(i < 3 ? i : i + 1);  // the place of the message with the RTS is between them
    receive(bytes(kLong), world(1));
    EXPECT_EQ(count_said(Kind::ready_to_receive), 4 + i) << "the silent one's and its own";
  }
  EXPECT_EQ(completions_, 9);
}

TEST_F(Peers, OnlySoManyAskAtATime) {
  channel_->early = 100;
  for (std::uint64_t i = 1; i <= 200; ++i) {
    receive(bytes(kLong), world(1));
    hear_rts(1, i, kLong);
  }
  const auto asked_by_the_next = [&] {
    const std::size_t before = count_said(Kind::ready_to_receive);
    receive(bytes(kLong), world(1));
    return count_said(Kind::ready_to_receive) - before;
  };
  std::size_t asked = 0, silent = 0;
  for (; silent <= 64 && asked == 0; ++silent) asked = asked_by_the_next();
  ASSERT_GT(silent, 16u) << "they would ask one by one";
  EXPECT_EQ(asked, 8u);
  // One of them is written into: those that are left send RTRs with the next ones.
  WrittenHead written{};
  written.kind = Kind::written;
  written.tag = 7;
  written.receive = static_cast<std::uint32_t>(channel_->open.back().cookie);
  written.length_low = kLong;
  hear(1, written);
  sink_->on_long_received(written.receive, true);
  EXPECT_EQ(asked_by_the_next(), 8u);
}

TEST_F(Peers, CancelledEarlyReceivesGiveTheirPlacesBack) {
  for (std::size_t round = 1; round <= 3; ++round) {
    std::vector<Ref<ReceiveRequest>> receives;
    for (std::size_t i = 0; i < kEarly + 1; ++i)
      receives.push_back(receive(bytes(kLong), world(1)));
    EXPECT_EQ(count_said(Kind::ready_to_receive), round * kEarly);
    for (const auto& r : receives) transfer_->cancel(*r);
    for (const auto& r : receives)
      if (r->id != 0) hear(1, CancelledHead{Kind::cancelled, 1, {}, r->id});
    for (const auto& r : receives) ASSERT_TRUE(r->complete && r->cancelled);
  }
}

// ---- lost peers ------------------------------------------------------------------------------

TEST_F(Peers, AnEarlyReceiveWhosePeerIsLostEndsOnce) {
  const auto lost = receive(bytes(kLong), world(1));
  ASSERT_TRUE(lost->rtr_sent && lost->posted);
  sink_->on_long_received(channel_->open.at(0).cookie, false);
  EXPECT_TRUE(lost->complete);
  EXPECT_FALSE(lost->posted || lost->rtr_sent);
  EXPECT_EQ(lost->error, MPI_ERR_PROC_ABORTED);
  channel_->open.clear();
  lose(1);
  EXPECT_EQ(completions_, 1);
  // Its place is free: the others may have them all.
  for (std::size_t i = 0; i < kEarly; ++i) receive(bytes(kLong), world(2));
  EXPECT_EQ(count_said(Kind::ready_to_receive), 1 + kEarly);
}

TEST_F(Peers, WhatTheDeadHaveAnnouncedNeverComes) {
  hear_rts(1, 77, kLong);
  lose(1);
  const auto late = receive(bytes(kLong), world(1));
  EXPECT_TRUE(late->complete);
  EXPECT_EQ(late->error, MPI_ERR_PROC_ABORTED);
  EXPECT_EQ(completions_, 1);
  EXPECT_TRUE(channel_->open.empty());
}

TEST_F(Peers, WhatTheDeadHaveSentIsReceived) {
  hear(1, Head{Kind::eager, {}, kContext, 1, 7});
  lose(1);
  const auto late = receive(bytes(8), world(MPI_ANY_SOURCE));
  EXPECT_TRUE(late->complete);
  EXPECT_EQ(late->error, MPI_SUCCESS);
}

// Whether it was posted before the loss or after it: what was meant for it may never come.
TEST_F(Peers, ALossEndsReceivesFromAnybodyWhereItCouldHaveSent) {
  const Envelope elsewhere{without_1_.get(), without_1_->context(), MPI_ANY_SOURCE, 7};
  const auto inside = receive(bytes(8), world(MPI_ANY_SOURCE));
  const auto outside = receive(bytes(8), elsewhere);
  const auto from_another = receive(bytes(8), world(2));
  lose(1);
  EXPECT_EQ(inside->error, MPI_ERR_PROC_ABORTED);
  EXPECT_NE(error_text(*inside).find("process 1"), std::string::npos) << error_text(*inside);
  EXPECT_FALSE(outside->complete);
  EXPECT_FALSE(from_another->complete);
  EXPECT_EQ(receive(bytes(8), world(MPI_ANY_SOURCE))->error, MPI_ERR_PROC_ABORTED);
  EXPECT_FALSE(receive(bytes(8), elsewhere)->complete);
  EXPECT_EQ(completions_, 2);
}

// ---- losses that others tell of ----------------------------------------------------------------

// Whether the receive was there before, after, or had even sent an RTR.
TEST_F(Peers, ALossThatAnotherTellsOfEndsTheReceive) {
  const auto before = receive(bytes(8), world(2));
  const auto asking = receive(bytes(kLong), world(2, 8));
  ASSERT_EQ(count_said(Kind::ready_to_receive), 1u);
  const auto other = receive(bytes(8), world(1));
  hear(2, loss(2, 1));
  hear(2, loss(2, 1, 8));
  hear(2, loss(2, 1));
  const auto after = receive(bytes(8), world(MPI_ANY_SOURCE));
  for (const auto& r : {before, asking, after}) {
    ASSERT_TRUE(r->complete);
    EXPECT_EQ(r->error, MPI_ERR_PROC_ABORTED);
    EXPECT_EQ(error_text(*r), "process 1 of MPI_COMM_WORLD was lost, as another process reports");
    EXPECT_EQ(lost_process(*r), 1);
  }
  EXPECT_EQ(completions_, 3);
  EXPECT_EQ(channel_->closed, 1) << "the place of the one that had asked";
  EXPECT_FALSE(other->complete) << "nobody has said that rank 1 is lost for this process";
  EXPECT_FALSE(receive(bytes(8), world(2))->complete) << "each is for one receive";
}

TEST_F(Peers, ALossOfNobodyEndsNothing) {
  const auto waiting = receive(bytes(8), world(2));
  hear(2, loss(2, 3));
  hear(2, loss(2, ~0u));
  hear(2, loss(2, 1).head);  // cut short
  EXPECT_FALSE(waiting->complete);
  EXPECT_EQ(malformed(), 3u);
}

// It takes the place of the message in everything that counts messages.
TEST_F(Peers, ALossIsToldInPlaceOfAMessage) {
  hear_rtr(2, 0);
  transfer_->send_loss(world(2), 1);
  ASSERT_EQ(channel_->said.size(), 1u);
  EXPECT_TRUE(std::ranges::equal(channel_->said[0], bytes_of(loss(0, 1))));
  send(bytes(kLong), 2);
  EXPECT_EQ(count_said(Kind::written), 0u) << "the receive that had asked has met the loss";
  EXPECT_EQ(count_said(Kind::request_to_send), 1u);
  lose(2);
  channel_->said.clear();
  transfer_->send_loss(world(2), 1);
  EXPECT_TRUE(channel_->said.empty()) << "there is nobody to tell";
}

TEST_F(Peers, ALossThatFindsNoRoomIsToldLater) {
  channel_->full = true;
  transfer_->send_loss(world(2), 1);
  EXPECT_TRUE(channel_->said.empty());
  channel_->full = false;
  transfer_->progress();
  EXPECT_EQ(count_said(Kind::loss), 1u);
}

// ---- buffered mode ---------------------------------------------------------------------------

// As the standard has it: each message behind the one before, or else at the start of the buffer.
TEST_F(Peers, ABufferIsCircular) {
  constexpr std::size_t kUnit = 48;
  std::vector<std::byte> buffer(10 * kUnit);
  process_buffer() = std::make_unique<SendBuffer>(buffer.data(), buffer.size());
  std::vector<std::uint64_t> names;  // of the messages, all long, in their order
  const auto put = [&](std::size_t units) {
    start_buffered(bytes(units * kUnit), world(1));
    RtsHead head;
    std::memcpy(&head, channel_->said.back().data(), sizeof head);
    ASSERT_EQ(head.head.kind, Kind::request_to_send);
    names.push_back(head.send);
  };
  const auto end = [&](std::size_t message, std::size_t units) {
    CtsHead head{};
    head.kind = Kind::clear_to_send;
    head.send = names.at(message);
    head.total = head.length = units * kUnit;
    hear(1, head);
    sent();
  };
  put(4);
  put(1);
  put(3);
  end(0, 4);
  put(1);  // behind the third, not where the first was
  end(1, 1);
  EXPECT_NO_THROW(put(5)) << "there is room up to the third";
  EXPECT_NO_THROW(put(1)) << "at the end, though not behind the newest";
  EXPECT_THROW(put(1), Error);
  lose(1);
  static_cast<SendBuffer&>(*process_buffer()).flush();
  process_buffer() = nullptr;
}

TEST_F(Peers, ALossEndsBufferedSends) {
  std::byte buffer[2 * kLong];
  process_buffer() = std::make_unique<SendBuffer>(buffer, sizeof buffer);
  start_buffered(bytes(kLong), world(1));
  lose(1);
  EXPECT_THROW(start_buffered(bytes(kLong), world(1)), Error);
  const Ref<Request> persistent = make_send(bytes(kLong), world(1), SendMode::buffered);
  EXPECT_THROW(start(*persistent), Error);
  EXPECT_FALSE(persistent->active);
  EXPECT_NO_THROW(start_buffered(bytes(192), world(2))) << "they take no room";
  lose(2);
  static_cast<SendBuffer&>(*process_buffer()).flush();
  process_buffer() = nullptr;
}

// What a receive would hear of, a probe hears of.
TEST_F(Peers, ALossEndsProbes) {
  const Envelope elsewhere{without_1_.get(), without_1_->context(), MPI_ANY_SOURCE, 7};
  EXPECT_FALSE(has_message(world(1)));
  EXPECT_NO_THROW(check_sender(world(1)));
  EXPECT_EQ(channel_->watched, std::vector{1});
  hear(1, Head{Kind::eager, {}, kContext, 1, 7});
  lose(1);
  EXPECT_TRUE(has_message(world(1)));
  EXPECT_TRUE(probe(world(1), MPI_STATUS_IGNORE));
  EXPECT_TRUE(matched_probe(world(MPI_ANY_SOURCE), MPI_STATUS_IGNORE));
  const auto error_of = [&](const Envelope& from) {
    EXPECT_FALSE(has_message(from));
    EXPECT_FALSE(probe(from, MPI_STATUS_IGNORE));
    EXPECT_FALSE(matched_probe(from, MPI_STATUS_IGNORE));
    try {
      check_sender(from);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("process 1"), std::string::npos) << error.what();
      return error.code();
    }
    return MPI_SUCCESS;
  };
  EXPECT_EQ(error_of(world(1)), MPI_ERR_PROC_ABORTED);
  EXPECT_EQ(error_of(world(MPI_ANY_SOURCE)), MPI_ERR_PROC_ABORTED);
  EXPECT_EQ(error_of(world(2)), MPI_SUCCESS);
  EXPECT_EQ(error_of(elsewhere), MPI_SUCCESS);
}

}  // namespace
}  // namespace viaduct::mpi
