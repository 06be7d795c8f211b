// Messages between two connected VIs that the device holds back, or that are as large as it allows.
// All others are programs (tests/vipl/programs), which run on this device, too.
#include "tests/vipl/core/node.hpp"

namespace viaduct::vipl::test {
namespace {

class Transfer : public Core {
 protected:
  Transfer() { connect(a, b); }
  VIP_VI_HANDLE a = make_vi(), b = make_vi();
};

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
  ASSERT_LT(2 * depth, Memory::kDescriptors);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < depth; ++i) post_receive(b, memory->message(i, 0, 8));
    EXPECT_EQ(VipPostRecv(b, memory->message(depth, 0, 8), memory->handle()), VIP_ERROR_RESOURCE);
    for (std::size_t i = 0; i < depth; ++i) post_send(a, memory->message(depth + 1 + i, 8, 8));
    for (std::size_t i = 0; i < depth; ++i) expect_received(b, memory->descriptor(i));
    for (std::size_t i = 0; i < depth; ++i) expect_sent(a, memory->descriptor(depth + 1 + i));
  }
}

}  // namespace
}  // namespace viaduct::vipl::test
