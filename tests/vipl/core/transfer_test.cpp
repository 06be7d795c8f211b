// Messages and RDMA between two connected VIs, as descriptors show them.
#include "tests/vipl/core/node.hpp"

namespace viaduct::vipl::test {
namespace {

class Transfer : public Core {
 protected:
  Transfer() { connect(a, b); }
  VIP_VI_HANDLE a = make_vi(), b = make_vi();
};

TEST_F(Transfer, MessageArrives) {
  VIP_DESCRIPTOR* const receive = memory->message(1, 1000, 100);
  receive->CS.Length = 3;  // left over from another message: the segments count
  post_receive(b, receive);
  VIP_DESCRIPTOR* const send = memory->send(0, 0, "hello");
  post_send(a, send);
  expect_sent(a, send);
  EXPECT_EQ(send->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_SEND);
  EXPECT_EQ(send->CS.Length, 5u);
  expect_received(b, receive);
  EXPECT_EQ(receive->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE);
  EXPECT_EQ(receive->CS.Length, 5u);
  EXPECT_EQ(receive->DS[0].Local.Length, 100u);
  EXPECT_EQ(memory->text(1000, 5), "hello");
  expect_send_queue_empty(a);
  expect_receive_queue_empty(b);
}

TEST_F(Transfer, ImmediateDataIsANumberOfTheHost) {
  VIP_DESCRIPTOR* const receive = memory->message(1, 1000, 100);
  post_receive(b, receive);
  VIP_DESCRIPTOR* const send = memory->send(0, 0, "x");
  send->CS.Control |= VIP_CONTROL_IMMEDIATE;
  send->CS.ImmediateData = 0x12345678;
  post_send(a, send);
  expect_received(b, receive);
  EXPECT_EQ(receive->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE);
  EXPECT_EQ(receive->CS.ImmediateData, 0x12345678u);
}

TEST_F(Transfer, MessagesWithoutBytes) {
  VIP_DESCRIPTOR* const r0 = memory->message(1, 1000, 100);
  VIP_DESCRIPTOR* const r1 = memory->message(2, 2000, 0);
  r1->CS.SegCount = 0;
  post_receive(b, r0);
  post_receive(b, r1);
  VIP_DESCRIPTOR* const no_segment = memory->message(3, 0, 0);
  no_segment->CS.SegCount = 0;
  VIP_DESCRIPTOR* const empty_segment = memory->message(4, 0, 0);
  empty_segment->DS[0].Local.Handle = 0;
  post_send(a, no_segment);
  post_send(a, empty_segment);
  expect_sent(a, no_segment);
  expect_sent(a, empty_segment);
  expect_received(b, r0);
  EXPECT_EQ(r0->CS.Length, 0u);
  expect_received(b, r1);
}

TEST_F(Transfer, GatherAndScatter) {
  constexpr std::uint16_t kSegments = 30;
  const auto spread = [&](VIP_DESCRIPTOR* d, std::size_t at, std::size_t step) {
    d->CS.SegCount = kSegments;
    d->CS.Length = kSegments;
    auto* const segments = reinterpret_cast<VIP_DATA_SEGMENT*>(d->DS);
    for (std::size_t i = 0; i < kSegments; ++i)
      segments[i] = {{.Address = memory->data(at + i * step)}, memory->handle(), 1};
    return d;
  };
  VIP_DESCRIPTOR* const receive = spread(memory->message(1, 0, 0), 5000, 3);
  VIP_DESCRIPTOR* const send = spread(memory->message(0, 0, 0), 100, 2);
  for (std::size_t i = 0; i < kSegments; ++i)
    *memory->data(100 + i * 2) = static_cast<char>('A' + i);
  post_receive(b, receive);
  post_send(a, send);
  expect_received(b, receive);
  EXPECT_EQ(receive->CS.Length, kSegments);
  for (std::size_t i = 0; i < kSegments; ++i)
    EXPECT_EQ(*memory->data(5000 + i * 3), static_cast<char>('A' + i));
}

TEST_F(Transfer, RdmaWriteTakesNoReceive) {
  std::memcpy(memory->data(), "write", 5);
  VIP_DESCRIPTOR* const write =
      memory->rdma(0, VIP_CONTROL_OP_RDMAWRITE, 0, 5, memory->data(3000), memory->handle());
  post_send(a, write);
  expect_sent(a, write);
  EXPECT_EQ(write->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE);
  EXPECT_EQ(memory->text(3000, 5), "write");
  expect_receive_queue_empty(b);
}

TEST_F(Transfer, RdmaWriteWithImmediateTakesOne) {
  VIP_DESCRIPTOR* const receive = memory->message(1, 1000, 100);
  post_receive(b, receive);
  std::memcpy(memory->data(), "write", 5);
  VIP_DESCRIPTOR* const write = memory->rdma(0, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, 0,
                                             5, memory->data(3000), memory->handle());
  write->CS.ImmediateData = static_cast<std::uint32_t>(-7);
  post_send(a, write);
  expect_sent(a, write);
  expect_received(b, receive);
  EXPECT_EQ(receive->CS.Status,
            VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE);
  EXPECT_EQ(static_cast<std::int32_t>(receive->CS.ImmediateData), -7);
  EXPECT_EQ(receive->CS.Length, 5u);
  EXPECT_EQ(memory->text(3000, 5), "write");
}

TEST_F(Transfer, RdmaRead) {
  std::memcpy(memory->data(3000), "read", 4);
  VIP_DESCRIPTOR* const read = memory->rdma(0, VIP_CONTROL_OP_RDMAREAD | VIP_CONTROL_QFENCE, 0, 4,
                                            memory->data(3000), memory->handle());
  post_send(a, read);
  expect_sent(a, read);
  EXPECT_EQ(read->CS.Status, VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ);
  EXPECT_EQ(memory->text(0, 4), "read");
}

TEST_F(Transfer, QueuesAreFirstInFirstOut) {
  for (std::size_t i = 0; i < 100; ++i) post_receive(b, memory->message(100 + i, 8 * i, 8));
  Fabric::get().hold();
  for (std::size_t i = 0; i < 100; ++i)
    post_send(a, memory->send(i, 2000 + 8 * i, std::to_string(10000000 + i)));
  VIP_DESCRIPTOR* d = memory->descriptor(0);
  EXPECT_EQ(VipSendDone(a, &d), VIP_NOT_DONE);
  EXPECT_EQ(d, nullptr);
  EXPECT_EQ(VipRecvDone(b, &d), VIP_NOT_DONE);
  Fabric::get().release();
  for (std::size_t i = 0; i < 100; ++i) {
    expect_sent(a, memory->descriptor(i));
    expect_received(b, memory->descriptor(100 + i));
    EXPECT_EQ(memory->text(8 * i, 8), std::to_string(10000000 + i));
  }
}

TEST_F(Transfer, QueueHoldsWhatTheNicSays) {
  VIP_NIC_ATTRIBUTES attributes{};
  ASSERT_EQ(VipQueryNic(nic, &attributes), VIP_SUCCESS);
  const std::size_t depth = attributes.MaxDescriptorsPerQueue;
  ASSERT_LT(depth, Memory::kDescriptors);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < depth; ++i) post_receive(b, memory->message(i, 0, 8));
    VIP_DESCRIPTOR* const more = memory->message(depth, 0, 8);
    EXPECT_EQ(VipPostRecv(b, more, memory->handle()), VIP_ERROR_RESOURCE);
    for (std::size_t i = 0; i < depth; ++i) post_send(a, memory->message(depth, 8, 8));
    for (std::size_t i = 0; i < depth; ++i) expect_received(b, memory->descriptor(i));
    for (std::size_t i = 0; i < depth; ++i) expect_sent(a, more);
  }
}

TEST_F(Transfer, UserDataIsTheProgramsOwn) {
  int something = 0;
  EXPECT_EQ(VipGetUserData(a), nullptr);
  VipSetUserData(a, &something);
  EXPECT_EQ(VipGetUserData(a), &something);
  EXPECT_EQ(VipGetUserData(b), nullptr);
  VipSetUserData(nullptr, &something);
  EXPECT_EQ(VipGetUserData(nullptr), nullptr);
}

}  // namespace
}  // namespace viaduct::vipl::test
