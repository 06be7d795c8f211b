// Messages between two connected VIs, and what Done and Wait say.
#include <thread>

#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

namespace {

class Transfer : public ConnectedTest {
 protected:
  void post_receive(std::size_t i, std::size_t length = kBytes) {
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server_, in_.receive(i, length), in_.handle()));
  }
  void post(VIP_DESCRIPTOR* d) { ASSERT_VIP(VIP_SUCCESS, VipPostSend(client_, d, out_.handle())); }
};

TEST_F(Transfer, OneMessage) {
  post_receive(0);
  out_.fill(0, "a message");
  VIP_DESCRIPTOR* const send = out_.send(0, 9);
  post(send);
  EXPECT_EQ(send, next_sent(client_));
  EXPECT_EQ(VIP_STATUS_DONE | VIP_STATUS_OP_SEND, send->CS.Status);
  EXPECT_EQ(9u, send->CS.Length);  // as posted
  VIP_DESCRIPTOR* const receive = in_.raw(0);
  EXPECT_EQ(receive, next_received(server_));
  EXPECT_EQ(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE, receive->CS.Status);
  EXPECT_EQ(9u, receive->CS.Length);  // what has come
  EXPECT_EQ("a message", in_.text(0, 9));
  // The program's own fields are as they were.
  EXPECT_EQ(in_.buffer(0), receive->DS[0].Local.Data.Address);
  EXPECT_EQ(in_.handle(), receive->DS[0].Local.Handle);
  EXPECT_EQ(kBytes, receive->DS[0].Local.Length);
  EXPECT_EQ(1, receive->CS.SegCount);
}

TEST_F(Transfer, BothDirectionsAtOnce) {
  const Memory to_client(a_, 1, 64), from_server(b_, 1, 64);
  post_receive(0);
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(client_, to_client.receive(0, 64), to_client.handle()));
  out_.fill(0, "there");
  from_server.fill(0, "back");
  post(out_.send(0, 5));
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(server_, from_server.send(0, 4), from_server.handle()));
  EXPECT_EQ(in_.raw(0), next_received(server_));
  EXPECT_EQ(to_client.raw(0), next_received(client_));
  EXPECT_EQ("there", in_.text(0, 5));
  EXPECT_EQ("back", to_client.text(0, 4));
  EXPECT_EQ(out_.raw(0), next_sent(client_));
  EXPECT_EQ(from_server.raw(0), next_sent(server_));
}

TEST_F(Transfer, InTheOrderOfPosting) {
  for (std::size_t i = 0; i < kCount; ++i) post_receive(i);
  for (std::size_t i = 0; i < kCount; ++i) {
    out_.fill(i, "message " + std::to_string(i));
    post(out_.send(i, 9));
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(out_.raw(i), next_sent(client_));
    EXPECT_EQ(in_.raw(i), next_received(server_));
    EXPECT_EQ("message " + std::to_string(i), in_.text(i, 9));
  }
}

// A program may look at the descriptor instead of asking the library, if somebody asks it.
TEST_F(Transfer, DoneReturns) {
  VIP_DESCRIPTOR* d = out_.raw(0);
  EXPECT_VIP(VIP_DESCRIPTOR_ERROR, VipSendDone(client_, &d));  // empty
  EXPECT_EQ(nullptr, d);
  d = out_.raw(0);
  EXPECT_VIP(VIP_DESCRIPTOR_ERROR, VipRecvDone(server_, &d));
  EXPECT_EQ(nullptr, d);
  post_receive(0);
  d = out_.raw(0);
  EXPECT_VIP(VIP_NOT_DONE, VipRecvDone(server_, &d));
  EXPECT_EQ(nullptr, d);
  EXPECT_FALSE(done(in_.raw(0)));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipRecvDone(server_, nullptr));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipSendDone(client_, nullptr));
  post(out_.send(0, 1));
  EXPECT_TRUE(eventually([&] { return VipSendDone(client_, &d) == VIP_SUCCESS; }));
  EXPECT_EQ(out_.raw(0), d);
  EXPECT_TRUE(eventually([&] { return VipRecvDone(server_, &d) == VIP_SUCCESS; }));
  EXPECT_EQ(in_.raw(0), d);
}

TEST_F(Transfer, WaitReturns) {
  VIP_DESCRIPTOR* d = out_.raw(0);
  post_receive(0);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_VIP(VIP_TIMEOUT, VipRecvWait(server_, 200, &d));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds{200});
  EXPECT_EQ(nullptr, d);
  EXPECT_VIP(VIP_TIMEOUT, VipRecvWait(server_, 0, &d));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipRecvWait(server_, kMoment, nullptr));
  EXPECT_VIP(VIP_INVALID_PARAMETER, VipSendWait(client_, kMoment, nullptr));
  std::thread waiting([&] {
    VIP_DESCRIPTOR* received = nullptr;
    EXPECT_VIP(VIP_SUCCESS, VipRecvWait(server_, VIP_INFINITE, &received));
    EXPECT_EQ(in_.raw(0), received);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds{kMoment});  // it is blocked by now
  post(out_.send(0, 1));
  EXPECT_VIP(VIP_SUCCESS, VipSendWait(client_, ~0UL, &d));
  waiting.join();
}

// A blocked Wait does not hold up a Done on the same queue.
TEST_F(Transfer, DoneBesideWait) {
  post_receive(0);
  std::thread waiting([&] {
    VIP_DESCRIPTOR* d;
    EXPECT_VIP(VIP_SUCCESS, VipRecvWait(server_, kSoon, &d));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds{kMoment});
  const auto start = std::chrono::steady_clock::now();
  VIP_DESCRIPTOR* d;
  EXPECT_VIP(VIP_NOT_DONE, VipRecvDone(server_, &d));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds{kSoon / 2});
  post(out_.send(0, 1));
  EXPECT_VIP(VIP_SUCCESS, VipSendWait(client_, kSoon, &d));
  waiting.join();
}

TEST_F(Transfer, NothingInAMessage) {
  post_receive(0, 0);  // no segment, no room
  post_receive(1);     // room
  post_receive(2);
  post(out_.send(0, 0));  // no segment
  post(out_.send(1, 0));
  VIP_DESCRIPTOR* const empty_segment = out_.send(2, 8);
  empty_segment->CS.Length = empty_segment->DS[0].Local.Length = 0;
  empty_segment->DS[0].Local.Handle = 0;
  post(empty_segment);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(in_.raw(i), next_received(server_));
    EXPECT_EQ(0u, in_.raw(i)->CS.Length);
    EXPECT_EQ(0u, errors(in_.raw(i)));
    EXPECT_EQ(out_.raw(i), next_sent(client_));
    EXPECT_EQ(0u, errors(out_.raw(i)));
  }
}

TEST_F(Transfer, ImmediateData) {
  for (std::size_t i = 0; i < 3; ++i) post_receive(i);
  const VIP_UINT32 negative = static_cast<VIP_UINT32>(-7);
  VIP_DESCRIPTOR* d = out_.send(0, 3);
  d->CS.Control |= VIP_CONTROL_IMMEDIATE;
  d->CS.ImmediateData = 0x01020304;
  post(d);
  d = out_.send(1, 0);
  d->CS.Control |= VIP_CONTROL_IMMEDIATE;
  d->CS.ImmediateData = negative;
  post(d);
  d = out_.send(2, 3);
  d->CS.ImmediateData = 99;  // but without the bit
  post(d);
  for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(in_.raw(i), next_received(server_));
  EXPECT_EQ(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE, in_.raw(0)->CS.Status);
  EXPECT_EQ(0x01020304u, in_.raw(0)->CS.ImmediateData);
  EXPECT_EQ(3u, in_.raw(0)->CS.Length);
  EXPECT_EQ(negative, in_.raw(1)->CS.ImmediateData);
  EXPECT_EQ(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE, in_.raw(2)->CS.Status);
}

TEST_F(Transfer, GatherAndScatter) {
  // Eleven pieces of different sizes there, thirteen others here; the bytes stay in order. Pieces
  // of no bytes are in between.
  const std::size_t from[] = {1, 2, 0, 300, 5, 17, 1000, 64, 3, 0, 31}, total = 1423;
  const std::size_t to[] = {100, 1, 1, 0, 500, 8, 13, 200, 2, 90, 7, 0, 700};
  std::string text;
  for (std::size_t i = 0; i < total; ++i) text += static_cast<char>('A' + i % 61);
  out_.fill(0, text);
  const auto cut = [](VIP_DESCRIPTOR* d, std::byte* at, VIP_MEM_HANDLE handle,
                      std::span<const std::size_t> pieces) {
    d->CS.SegCount = static_cast<VIP_UINT16>(pieces.size());
    d->CS.Length = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      d->Data[i].Data.Address = at;
      d->Data[i].Handle = handle;
      d->Data[i].Length = static_cast<VIP_UINT32>(pieces[i]);
      d->CS.Length += d->Data[i].Length;
      at += pieces[i];
    }
    return d;
  };
  VIP_DESCRIPTOR* const receive = cut(in_.receive(0, 1), in_.buffer(0), in_.handle(), to);
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server_, receive, in_.handle()));
  post(cut(out_.send(0, 1), out_.buffer(0), out_.handle(), from));
  EXPECT_EQ(receive, next_received(server_));
  EXPECT_EQ(total, receive->CS.Length);
  EXPECT_EQ(text, in_.text(0, total));
  EXPECT_EQ(out_.raw(0), next_sent(client_));
}

TEST_F(Transfer, SegmentsOfDifferentRegions) {
  const Memory other(a_, 1, 64);
  out_.fill(0, "one ");
  other.fill(0, "two");
  VIP_DESCRIPTOR* const d = out_.send(0, 4);
  d->CS.SegCount = 2;
  d->CS.Length = 7;
  d->DS[1].Local = {{}, other.handle(), 3};
  d->DS[1].Local.Data.Address = other.buffer(0);
  post_receive(0);
  post(d);
  EXPECT_EQ(in_.raw(0), next_received(server_));
  EXPECT_EQ("one two", in_.text(0, 7));
  EXPECT_EQ(d, next_sent(client_));
}

TEST_F(Transfer, LongMessages) {
  const std::size_t most = vi_attributes().MaxTransferSize;
  const Memory out(a_, 1, most), in(b_, 1, most);
  for (std::size_t i = 0; i < most; ++i) out.buffer(0)[i] = static_cast<std::byte>(i * 7 + i / 251);
  for (const std::size_t length : {std::size_t{4097}, std::size_t{32768}, most}) {
    std::memset(in.buffer(0), 0, most);
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server_, in.receive(0, most), in.handle()));
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client_, out.send(0, length), out.handle()));
    ASSERT_EQ(in.raw(0), next_received(server_));
    EXPECT_EQ(length, in.raw(0)->CS.Length);
    EXPECT_EQ(0, std::memcmp(in.buffer(0), out.buffer(0), length));
    ASSERT_EQ(out.raw(0), next_sent(client_));
  }
}

// NT and PM2 post completed descriptors again as they are: Status is the old one, and the Length of
// a receive is that of the message before.
TEST_F(Transfer, RepostedAsTheyAre) {
  post_receive(0);
  post(out_.send(0, 1));
  for (int round = 0; round < 5; ++round) {
    ASSERT_EQ(in_.raw(0), next_received(server_));
    ASSERT_EQ(out_.raw(0), next_sent(client_));
    ASSERT_TRUE(done(in_.raw(0)));
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server_, in_.raw(0), in_.handle()));
    EXPECT_FALSE(done(in_.raw(0)));
    out_.raw(0)->CS.Length = out_.raw(0)->DS[0].Local.Length = 100u << round;
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client_, out_.raw(0), out_.handle()));
  }
  ASSERT_EQ(in_.raw(0), next_received(server_));
  EXPECT_EQ(1600u, in_.raw(0)->CS.Length);
}

// Unset Reserved of the address segment, Next, NextHandle: nobody looks.
TEST_F(Transfer, FieldsThatDoNotMatter) {
  VIP_DESCRIPTOR* const receive = in_.receive(0, kBytes);
  receive->CS.Length = 3;  // left over from another message: the segments count
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server_, receive, in_.handle()));
  VIP_DESCRIPTOR* const d = out_.send(0, 4);
  d->CS.Next.AddressBits = 0xdeadbeefdeadbeef;
  d->CS.NextHandle = 0xdeadbeef;
  d->CS.Status = 0xffffffff;
  post(d);
  EXPECT_EQ(d, next_sent(client_));
  EXPECT_EQ(VIP_STATUS_DONE, d->CS.Status);
  EXPECT_EQ(receive, next_received(server_));
  EXPECT_EQ(VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE, receive->CS.Status);
  EXPECT_EQ(4u, receive->CS.Length);
}

TEST_F(Transfer, MoreThanAQueueHolds) {
  const VIP_ULONG most = a_.attributes().MaxDescriptorsPerQueue;
  const Memory many(b_, most + 1, 16);
  for (VIP_ULONG i = 0; i < most; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server_, many.receive(i, 16), many.handle()));
  EXPECT_VIP(VIP_ERROR_RESOURCE, VipPostRecv(server_, many.receive(most, 16), many.handle()));
  // One comes, one can go.
  post(out_.send(0, 3));
  EXPECT_EQ(many.raw(0), next_received(server_));
  EXPECT_VIP(VIP_SUCCESS, VipPostRecv(server_, many.receive(0, 16), many.handle()));
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(server_));
  for (VIP_ULONG i = 1; i <= most; ++i) {
    VIP_DESCRIPTOR* d;
    ASSERT_VIP(VIP_DESCRIPTOR_ERROR, VipRecvDone(server_, &d));
    ASSERT_EQ(many.raw(i % most), d);
    ASSERT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(d));
  }
}

// A thousand messages, with as many posted as there are credits.
TEST_F(Transfer, ALongStream) {
  constexpr std::size_t kMessages = 1000;
  for (std::size_t i = 0; i < kCount; ++i) post_receive(i);
  std::thread sender([&] {
    const Memory credit(a_, kCount, 16);
    for (std::size_t i = 0; i < kCount; ++i)
      ASSERT_VIP(VIP_SUCCESS, VipPostRecv(client_, credit.receive(i, 16), credit.handle()));
    for (std::size_t i = 0; i < kMessages; ++i) {
      const std::size_t slot = i % kCount;
      if (i >= kCount) {  // a credit, which also says that the slot is free
        ASSERT_EQ(credit.raw(slot), next_received(client_));
        ASSERT_VIP(VIP_SUCCESS, VipPostRecv(client_, credit.receive(slot, 16), credit.handle()));
        ASSERT_EQ(out_.raw(slot), next_sent(client_));
      }
      std::memcpy(out_.buffer(slot), &i, sizeof(i));
      post(out_.send(slot, sizeof(i) + i % 1000));
    }
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_NE(nullptr, next_sent(client_));
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_NE(nullptr, next_received(client_));
  });
  const Memory credit(b_, kCount, 16);
  for (std::size_t i = 0; i < kMessages; ++i) {
    const std::size_t slot = i % kCount;
    ASSERT_EQ(in_.raw(slot), next_received(server_));
    std::size_t number = 0;
    std::memcpy(&number, in_.buffer(slot), sizeof(number));
    ASSERT_EQ(i, number);
    ASSERT_EQ(sizeof(i) + i % 1000, in_.raw(slot)->CS.Length);
    post_receive(slot);
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(server_, credit.send(slot, 0), credit.handle()));
    ASSERT_EQ(credit.raw(slot), next_sent(server_));
  }
  sender.join();
}

// Every level carries messages.
class Levels : public testing::TestWithParam<int> {};
TEST_P(Levels, Exchange) {
  const auto level = static_cast<VIP_RELIABILITY_LEVEL>(GetParam());
  const Nic a(kNicNames[0]), b(kNicNames[1]);
  const Vi client(a, vi_attributes(level)), server(b, vi_attributes(level));
  connect(client, server);
  const Memory out(a, 1, 64), in(b, 1, 64);
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in.receive(0, 64), in.handle()));
  out.fill(0, "level");
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out.send(0, 5), out.handle()));
  EXPECT_EQ(out.raw(0), next_sent(client));
  EXPECT_EQ(in.raw(0), next_received(server));
  EXPECT_EQ("level", in.text(0, 5));
}
INSTANTIATE_TEST_SUITE_P(All, Levels,
                         testing::Values(VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY,
                                         VIP_SERVICE_RELIABLE_RECEPTION));

// A tag on one side, none on the other: NULL goes with everything (ARMCI).
TEST(DefaultTag, GoesWithACreatedOne) {
  const Nic a(kNicNames[0]), b(kNicNames[1]);
  const Ptag tag(a);
  const Memory out(a, 1, 64, memory_attributes(tag)), in(b, 1, 64);
  const Vi client(a), server(b);  // NULL tags
  connect(client, server);
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in.receive(0, 64), in.handle()));
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out.send(0, 4), out.handle()));
  EXPECT_EQ(out.raw(0), next_sent(client));
  EXPECT_EQ(0u, errors(out.raw(0)));
  EXPECT_EQ(in.raw(0), next_received(server));
}

}  // namespace

}  // namespace viaduct::vipl_test
