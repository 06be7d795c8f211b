// One process of a job of three whose receives all ask to be written into (VIADUCT_WRITE_PROTOCOL=
// sr), over a channel that writes short messages in one request. What the others say, the test
// decides.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/mpi/transfer/process_of_three.hpp"

namespace viaduct::mpi {
namespace {

constexpr std::size_t kKey = 8, kRtr = sizeof(RtrHead) - RemoteKey::kMax + kKey;

class Asking : public ProcessOfThree {
 protected:
  explicit Asking(WriteProtocol protocol = WriteProtocol::sr)
      : ProcessOfThree({.write_protocol = protocol}) {
    channel_->writes_now = true;
    channel_->remote_key = kKey;
    channel_->early = 100;
    for (std::size_t i = 0; i < sizeof memory_; ++i) memory_[i] = static_cast<std::byte>(i);
  }

  Items bytes(std::size_t n) { return {memory_, static_cast<MPI_Count>(n), &datatype(MPI_BYTE)}; }
  Envelope world(int rank, int tag = 7) { return {world_.get(), kContext, rank, tag}; }
  Ref<ReceiveRequest> receive(std::size_t n, int from, int tag = 7) {
    auto request = make<ReceiveRequest>(bytes(n), world(from, tag), from < 0 ? -1 : from);
    transfer_->start(*request);
    return request;
  }
  Ref<SendRequest> send(std::size_t n, int to, int tag = 7) {
    auto request = make<SendRequest>(bytes(n), world(to, tag), to, SendMode::standard);
    transfer_->start(*request);
    return request;
  }
  bool send_now(std::size_t n, int to, int tag = 7) {
    return transfer_->send_now(bytes(n), world(to, tag), SendMode::standard);
  }
  // What the n-th RTR in a message says.
  static RtrHead rtr_in(const std::vector<std::byte>& message, std::size_t n = 0) {
    RtrHead head{};
    EXPECT_GE(message.size(), (n + 1) * kRtr);
    std::memcpy(static_cast<void*>(&head), message.data() + n * kRtr, kRtr);
    EXPECT_EQ(head.kind, Kind::ready_to_receive);
    return head;
  }
  static Kind kind_at(const std::vector<std::byte>& message, std::size_t at) {
    return static_cast<Kind>(message.at(at));
  }
  // `seen`: how many messages of this process that one had received.
  void hear_rtr(int from, std::uint64_t capacity, int tag = 7, std::uint32_t seen = 0) {
    RtrHead head{};
    head.kind = Kind::ready_to_receive;
    head.context = kContext;
    head.tag = tag;
    head.receive = 77;
    head.seen = seen;
    head.capacity_low = static_cast<std::uint32_t>(capacity);
    sink_->on_control(from, bytes_of(head).first(kRtr));
  }
  // A message of that length is written into the receive: as much of it as there is room for.
  void write(const ReceiveRequest& receive, int from, int tag, std::uint32_t length) {
    const Cookie cookie = receive.id;
    const auto id = static_cast<std::uint32_t>(receive.id);
    sink_->on_control(from, bytes_of(WrittenHead{Kind::written, {}, tag, id, length}));
    sink_->on_long_received(cookie, true);
  }

  std::byte memory_[4096];
};

TEST_F(Asking, EmptyReceivesAskTooAndAreWrittenInto) {
  const auto empty = receive(0, 1, MPI_ANY_TAG);
  EXPECT_TRUE(channel_->said.empty()) << "the RTR waits for company";
  transfer_->progress();
  ASSERT_EQ(channel_->said.size(), 1u);
  EXPECT_EQ(channel_->said[0].size(), kRtr);
  const RtrHead rtr = rtr_in(channel_->said[0]);
  EXPECT_EQ(rtr.tag, MPI_ANY_TAG);
  EXPECT_EQ(rtr.capacity_low, 0u);
  write(*empty, 1, 9, 0);
  ASSERT_TRUE(empty->complete);
  EXPECT_EQ(empty->error, MPI_SUCCESS);
  EXPECT_EQ(empty->status.MPI_SOURCE, 1);
  EXPECT_EQ(empty->status.MPI_TAG, 9);
}

TEST_F(Asking, AMessageThatIsTooLongIsTruncated) {
  const auto small = receive(8, 1);
  transfer_->progress();
  write(*small, 1, 7, 9);
  ASSERT_TRUE(small->complete);
  EXPECT_EQ(small->error, MPI_ERR_TRUNCATE);
  EXPECT_EQ(status_bytes(small->status), 8);
}

// Beyond 4 GiB.
TEST_F(Asking, LengthsHave56Bits) {
  constexpr std::uint64_t kLengths[] = {0,          1, 0xffffffff, 0x100000000, 0x123456789abcde,
                                        kMaxWritten};
  for (const std::uint64_t length : kLengths) {
    RtrHead head{};
    set_length(head.capacity_high, head.capacity_low, length);
    EXPECT_EQ(length_of(head.capacity_high, head.capacity_low), length);
  }
  const auto items = Items{memory_, MPI_Count{5} << 32, &datatype(MPI_BYTE)};
  const auto large = make<ReceiveRequest>(items, world(1), 1);
  transfer_->start(*large);
  const RtrHead rtr = rtr_in(channel_->said.at(0));
  EXPECT_EQ(length_of(rtr.capacity_high, rtr.capacity_low), std::uint64_t{5} << 32);
}

TEST_F(Asking, AnotherTagThanTheReceiveAcceptsIsMalformed) {
  const auto waiting = receive(8, 1);
  transfer_->progress();
  sink_->on_control(
      1, bytes_of(WrittenHead{Kind::written, {}, 8, static_cast<std::uint32_t>(waiting->id), 8}));
  EXPECT_EQ(transfer_->counters(0).malformed, 1u);
  EXPECT_FALSE(waiting->complete || waiting->written_received);
}

TEST_F(Asking, AnRtrRidesOnTheNextMessage) {
  const auto waiting = receive(8, 1);
  ASSERT_TRUE(send_now(8, 1));
  ASSERT_EQ(channel_->said.size(), 1u);
  EXPECT_EQ(channel_->said[0].size(), kRtr + sizeof(ShortHead) + 8);
  EXPECT_EQ(rtr_in(channel_->said[0]).receive, waiting->id);
  EXPECT_EQ(kind_at(channel_->said[0], kRtr), Kind::eager_short);
  transfer_->progress();
  EXPECT_EQ(channel_->said.size(), 1u) << "once is enough";
  // And the other side understands it: rank 2 says the same to this process.
  sink_->on_control(2, channel_->said[0]);
  EXPECT_NE(transfer_->queues(kContext).find_message(0, 7), nullptr);
  ASSERT_TRUE(send_now(8, 2));
  ASSERT_EQ(channel_->written_now.size(), 1u);
  EXPECT_EQ(transfer_->counters(0).malformed, 0u);
}

// To another process, or with a long message, it does not ride, and yet goes soon.
TEST_F(Asking, AnRtrThatCannotRideGoesAlone) {
  receive(8, 1);
  ASSERT_TRUE(send_now(8, 2));
  EXPECT_EQ(kind_at(channel_->said.at(0), 0), Kind::eager_short);
  transfer_->progress();
  ASSERT_EQ(channel_->said.size(), 2u);
  EXPECT_EQ(channel_->said[1].size(), kRtr);
  receive(8, 1, 8);
  send(100, 1);
  ASSERT_EQ(channel_->said.size(), 4u);
  EXPECT_EQ(channel_->said[2].size(), kRtr) << "in front of the message";
  EXPECT_EQ(kind_at(channel_->said[3], 0), Kind::request_to_send);
}

TEST_F(Asking, SeveralRtrsGoTogetherInTheOrderOfPosting) {
  std::vector<Ref<ReceiveRequest>> receives;
  for (int tag = 1; tag <= 5; ++tag) receives.push_back(receive(8, 1, tag));
  transfer_->progress();
  ASSERT_EQ(channel_->said.size(), 1u);
  ASSERT_EQ(channel_->said[0].size(), 5 * kRtr);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_EQ(rtr_in(channel_->said[0], i).receive, receives[i]->id);
  // More than fit one message.
  for (int tag = 6; tag <= 25; ++tag) receive(8, 1, tag);
  transfer_->progress();
  std::size_t rtrs = 0;
  for (const auto& message : channel_->said) rtrs += message.size() / kRtr;
  EXPECT_EQ(rtrs, 25u);
}

// The program may not call the library for long after it has posted a long receive.
TEST_F(Asking, LongReceivesAskAtOnceAndShortOnesBeforeThem) {
  static std::byte memory[1 << 16];
  const auto small = receive(8, 1, MPI_ANY_TAG);
  const auto large =
      make<ReceiveRequest>(Items{memory, sizeof memory, &datatype(MPI_BYTE)}, world(1), 1);
  transfer_->start(*large);
  std::vector<std::byte> said;
  for (const auto& message : channel_->said)
    said.insert(said.end(), message.begin(), message.end());
  ASSERT_EQ(said.size(), 2 * kRtr);
  EXPECT_EQ(rtr_in(said, 0).receive, small->id);
  EXPECT_EQ(rtr_in(said, 1).receive, large->id);
}

TEST_F(Asking, AReceiveThatIsSatisfiedBeforeItsRtrLeavesSendsNone) {
  const auto first = receive(8, 1), second = receive(8, 1);
  sink_->on_control(1, bytes_of(Head{Kind::eager, {}, kContext, 1, 7}));
  EXPECT_TRUE(first->complete);
  transfer_->progress();
  ASSERT_EQ(channel_->said.size(), 1u);
  ASSERT_EQ(channel_->said[0].size(), kRtr);
  EXPECT_EQ(rtr_in(channel_->said[0]).receive, second->id);
  EXPECT_EQ(rtr_in(channel_->said[0]).seen, 1u);
  EXPECT_EQ(channel_->open.size(), 1u);
  EXPECT_EQ(transfer_->counters(0).rtrs_missed, 0u);
}

TEST_F(Asking, ACancelledReceiveWhoseRtrHasNotLeftIsOverAtOnce) {
  const auto cancelled = receive(8, 1), other = receive(8, 1);
  transfer_->cancel(*cancelled);
  EXPECT_TRUE(cancelled->complete && cancelled->cancelled);
  transfer_->progress();
  ASSERT_EQ(channel_->said.size(), 1u);
  ASSERT_EQ(channel_->said[0].size(), kRtr);
  EXPECT_EQ(rtr_in(channel_->said[0]).receive, other->id);
}

// A message that this receive could get may be for the one from anybody.
TEST_F(Asking, NoReceiveAsksBehindOneFromAnybody) {
  receive(8, MPI_ANY_SOURCE);
  receive(8, 1);
  receive(8, 1, 8);
  transfer_->progress();
  ASSERT_EQ(channel_->said.size(), 1u);
  ASSERT_EQ(channel_->said[0].size(), kRtr);
  EXPECT_EQ(rtr_in(channel_->said[0]).tag, 8);
}

TEST_F(Asking, WhereThereIsNoRoomForAReceiveNoneBehindItAsks) {
  channel_->refuse_open = true;
  receive(8, 1);
  receive(8, 1);
  transfer_->progress();
  EXPECT_TRUE(channel_->said.empty());
  channel_->refuse_open = false;
  const auto third = receive(8, 1);
  transfer_->progress();
  std::vector<std::byte> said;
  for (const auto& message : channel_->said)
    said.insert(said.end(), message.begin(), message.end());
  ASSERT_EQ(said.size(), 3 * kRtr);
  EXPECT_EQ(rtr_in(said, 2).receive, third->id);
}

TEST_F(Asking, AMessageIsWrittenWithItsHead) {
  hear_rtr(1, 100);
  ASSERT_TRUE(send_now(8, 1));
  hear_rtr(1, 4);
  ASSERT_TRUE(send_now(8, 1));
  hear_rtr(1, 0, MPI_ANY_TAG);
  EXPECT_TRUE(send(0, 1, 9)->complete);
  EXPECT_TRUE(channel_->said.empty());
  ASSERT_EQ(channel_->written_now.size(), 3u);
  constexpr struct {
    std::size_t written, length;
    int tag;
  } kExpected[] = {{8, 8, 7}, {4, 8, 7}, {0, 0, 9}};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& [data, head] = channel_->written_now[i];
    WrittenHead written;
    ASSERT_EQ(head.size(), sizeof written);
    std::memcpy(&written, head.data(), sizeof written);
    EXPECT_EQ(written.kind, Kind::written);
    EXPECT_EQ(written.receive, 77u);
    EXPECT_EQ(written.tag, kExpected[i].tag);
    EXPECT_EQ(written.length_low, kExpected[i].length);
    EXPECT_EQ(data.size(), kExpected[i].written);
  }
  EXPECT_EQ(transfer_->counters(0).sent.of(Protocol::write).messages, 3u);
}

TEST_F(Asking, AnRtrRidesOnAMessageThatIsWritten) {
  hear_rtr(1, 100);
  const auto waiting = receive(8, 1);
  ASSERT_TRUE(send_now(8, 1));
  ASSERT_EQ(channel_->written_now.size(), 1u);
  const auto& head = channel_->written_now[0].head;
  ASSERT_EQ(head.size(), kRtr + sizeof(WrittenHead));
  EXPECT_EQ(rtr_in(head).receive, waiting->id);
  EXPECT_EQ(kind_at(head, kRtr), Kind::written);
}

// Nothing is lost or doubled if the channel is full when both are to leave.
TEST_F(Asking, WhatFindsNoRoomLeavesInOrder) {
  for (const bool asked : {false, true}) {
    const int tag = asked ? 8 : 7;
    channel_->said.clear();
    if (asked) hear_rtr(1, 100, tag);
    receive(8, 1, tag);
    channel_->full = true;
    ASSERT_FALSE(send_now(8, 1, tag));
    const auto message = send(8, 1, tag);
    channel_->full = false;
    while (transfer_->has_backlog()) transfer_->progress();
    ASSERT_EQ(channel_->said.size(), 2u) << asked;
    EXPECT_EQ(channel_->said[0].size(), kRtr);
    EXPECT_EQ(kind_at(channel_->said[1], 0), asked ? Kind::written : Kind::eager_short);
    EXPECT_EQ(channel_->sending.size(), asked ? 1u : 0u);
    EXPECT_EQ(message->complete, !asked);
  }
}

TEST_F(Asking, ALossEndsReceivesWhoseRtrIsDue) {
  const auto waiting = receive(8, 1);
  sink_->on_peer_lost(1, "the test says so");
  ASSERT_TRUE(waiting->complete);
  EXPECT_EQ(waiting->error, MPI_ERR_PROC_ABORTED);
  transfer_->progress();
  EXPECT_TRUE(channel_->said.empty());
  // Its place is free again.
  channel_->early = 1;
  receive(8, 2);
  transfer_->progress();
  EXPECT_EQ(channel_->said.size(), 1u);
}

// An alltoall asks this before it sends a block.
TEST_F(Asking, SendersMayWaitForAnyLongReceive) {
  static std::byte memory[8192];
  const Items block{memory, sizeof memory, &datatype(MPI_BYTE)};
  EXPECT_FALSE(transfer_->may_be_asked(world(1), 8)) << "it is sent before it could be asked for";
  EXPECT_TRUE(transfer_->may_be_asked(world(1), sizeof memory));
  transfer_->start(*make<SendRequest>(block, world(1), 1, SendMode::standard));
  EXPECT_TRUE(transfer_->may_be_asked(world(1), sizeof memory));
  hear_rtr(1, sizeof memory, 8);
  EXPECT_TRUE(transfer_->may_be_asked(world(1), sizeof memory)) << "it asks for another message";
  hear_rtr(1, sizeof memory, 7, 1);
  EXPECT_FALSE(transfer_->may_be_asked(world(1), sizeof memory)) << "it has asked";
}

class Choosing : public Asking {
 protected:
  Choosing() : Asking(WriteProtocol::automatic) {}
};

TEST_F(Choosing, SendersWaitOnlyForReceivesThatHaveAskedInTime) {
  static std::byte memory[8192];
  const Items block{memory, sizeof memory, &datatype(MPI_BYTE)};
  const auto send_block = [&](int to) {
    transfer_->start(*make<SendRequest>(block, world(to), to, SendMode::standard));
  };
  EXPECT_TRUE(transfer_->may_be_asked(world(1), sizeof memory));
  send_block(1);
  EXPECT_FALSE(transfer_->may_be_asked(world(1), sizeof memory)) << "nothing had asked";
  EXPECT_TRUE(transfer_->may_be_asked(world(2), sizeof memory));
  hear_rtr(1, sizeof memory, 7, 1);
  EXPECT_FALSE(transfer_->may_be_asked(world(1), sizeof memory)) << "it has asked";
  send_block(1);
  EXPECT_EQ(transfer_->counters(0).sent.of(Protocol::write).messages, 1u);
  EXPECT_TRUE(transfer_->may_be_asked(world(1), sizeof memory));
}

class NeverAsking : public Asking {
 protected:
  NeverAsking() : Asking(WriteProtocol::nsr) {}
};

TEST_F(NeverAsking, NoReceiveAsks) {
  for (const std::size_t n : {0u, 8u, 4000u}) receive(n, 1);
  transfer_->progress();
  EXPECT_TRUE(channel_->said.empty());
}

}  // namespace
}  // namespace viaduct::mpi
