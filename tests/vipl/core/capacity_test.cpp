// VipSetViCapacity: VIs that are smaller than the NIC allows.
#include "tests/vipl/core/node.hpp"

namespace viaduct::vipl::test {
namespace {

class Capacity : public Core {
 protected:
  Capacity() { VipQueryNic(nic, &most); }
  VIP_VI_HANDLE make_small(VIP_ULONG sends, VIP_ULONG receives, VIP_ULONG segments) {
    const VIP_VI_HANDLE vi = make_vi();
    EXPECT_EQ(VipSetViCapacity(vi, sends, receives, segments), VIP_SUCCESS);
    return vi;
  }
  VIP_RETURN send_one(VIP_VI_HANDLE vi, std::size_t i) {
    return VipPostSend(vi, memory->message(i, 0, 4), memory->handle());
  }
  VIP_RETURN receive_one(VIP_VI_HANDLE vi, std::size_t i) {
    return VipPostRecv(vi, memory->message(i, 100, 4), memory->handle());
  }
  // A message of `segments` bytes, each in a segment of its own.
  VIP_DESCRIPTOR* scattered(std::size_t i, VIP_UINT16 segments) {
    VIP_DESCRIPTOR* const d = memory->message(i, 0, 1);
    d->CS.SegCount = segments;
    d->CS.Length = segments;
    VIP_DATA_SEGMENT* const all = &d->DS[0].Local;
    for (std::size_t s = 1; s < segments; ++s) all[s] = all[0];
    return d;
  }
  VIP_NIC_ATTRIBUTES most{};
};

TEST_F(Capacity, TheDeviceIsAskedForThatMuch) {
  connect(make_vi(), make_vi());
  EXPECT_EQ(Fabric::get().last_plan.sends, most.MaxDescriptorsPerQueue);
  EXPECT_EQ(Fabric::get().last_plan.receives, most.MaxDescriptorsPerQueue);
  EXPECT_EQ(Fabric::get().last_plan.segments, most.MaxSegmentsPerDesc);
  EXPECT_EQ(Fabric::get().last_completions, most.MaxDescriptorsPerQueue);
  connect(make_vi(), make_small(5, 9, 3));
  EXPECT_EQ(Fabric::get().last_plan.sends, 5u);
  EXPECT_EQ(Fabric::get().last_plan.receives, 9u);
  EXPECT_EQ(Fabric::get().last_plan.segments, 3u);
  EXPECT_EQ(Fabric::get().last_completions, 9u);
}

TEST_F(Capacity, QueuesAreFullThen) {
  const VIP_VI_HANDLE a = make_small(3, 1, 1), b = make_small(1, 5, 1);
  connect(a, b);
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < 5; ++i) ASSERT_EQ(receive_one(b, 10 + i), VIP_SUCCESS);
    EXPECT_EQ(receive_one(b, 15), VIP_ERROR_RESOURCE);
    for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(send_one(a, i), VIP_SUCCESS);
    EXPECT_EQ(send_one(a, 3), VIP_ERROR_RESOURCE);  // done, but not taken
    for (std::size_t i = 0; i < 3; ++i) expect_sent(a, memory->descriptor(i));
    for (std::size_t i = 3; i < 5; ++i) ASSERT_EQ(send_one(a, i), VIP_SUCCESS);
    for (std::size_t i = 3; i < 5; ++i) expect_sent(a, memory->descriptor(i));
    for (std::size_t i = 0; i < 5; ++i) expect_received(b, memory->descriptor(10 + i));
  }
}

TEST_F(Capacity, MoreSegmentsAreAnErrorOfTheDescriptor) {
  const VIP_VI_HANDLE a = make_small(4, 4, 2), b = make_small(4, 4, 2);
  connect(a, b);
  ASSERT_EQ(receive_one(b, 10), VIP_SUCCESS);
  post_send(a, scattered(0, 2));
  expect_sent(a, memory->descriptor(0));
  expect_received(b, memory->descriptor(10));
  post_send(a, scattered(1, 3));
  expect_send_error(a, memory->descriptor(1), VIP_STATUS_FORMAT_ERROR);
  EXPECT_EQ(state(a), VIP_STATE_ERROR);
}

TEST_F(Capacity, WhatIsRefusedChangesNothing) {
  const VIP_VI_HANDLE a = make_small(2, 2, 2), b = make_vi();
  const VIP_ULONG descriptors = most.MaxDescriptorsPerQueue, segments = most.MaxSegmentsPerDesc;
  EXPECT_EQ(VipSetViCapacity(nullptr, 1, 1, 1), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipSetViCapacity(nic, 1, 1, 1), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipSetViCapacity(a, 0, 1, 1), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipSetViCapacity(a, 1, 0, 1), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipSetViCapacity(a, 1, 1, 0), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipSetViCapacity(a, descriptors + 1, 1, 1), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipSetViCapacity(a, 1, descriptors + 1, 1), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipSetViCapacity(a, 1, 1, segments + 1), VIP_ERROR_RESOURCE);
  ASSERT_EQ(receive_one(a, 0), VIP_SUCCESS);
  EXPECT_EQ(VipSetViCapacity(a, 4, 4, 4), VIP_INVALID_STATE);  // a descriptor is outstanding
  connect(a, b);
  EXPECT_EQ(VipSetViCapacity(a, 4, 4, 4), VIP_INVALID_STATE);
  ASSERT_EQ(receive_one(a, 1), VIP_SUCCESS);
  EXPECT_EQ(receive_one(a, 2), VIP_ERROR_RESOURCE);
  disconnect(a);
  EXPECT_EQ(VipSetViCapacity(a, 4, 4, 4), VIP_INVALID_STATE);  // flushed, but not taken
  for (const std::size_t i : {0, 1})
    expect_receive_error(a, memory->descriptor(i), VIP_STATUS_DESC_FLUSHED_ERROR);
  EXPECT_EQ(VipSetViCapacity(a, descriptors, descriptors, segments), VIP_SUCCESS);
}

// A VI that has been used grows for its next connection, and shrinks again.
TEST_F(Capacity, AnotherForEachConnection) {
  const VIP_CQ_HANDLE cq = make_cq(1);
  const VIP_VI_HANDLE a = make_vi(), b = make_vi(nullptr, cq);
  for (const VIP_ULONG many : {1, 7, 16, 3}) {
    ASSERT_EQ(VipSetViCapacity(a, many, 1, 1), VIP_SUCCESS);
    ASSERT_EQ(VipSetViCapacity(b, 1, many, 1), VIP_SUCCESS);
    for (std::size_t i = 0; i < many; ++i) ASSERT_EQ(receive_one(b, 20 + i), VIP_SUCCESS);
    EXPECT_EQ(receive_one(b, 19), VIP_ERROR_RESOURCE);
    connect(a, b);
    for (std::size_t i = 0; i < many; ++i) ASSERT_EQ(send_one(a, i), VIP_SUCCESS);
    EXPECT_EQ(send_one(a, many), VIP_ERROR_RESOURCE);
    for (std::size_t i = 0; i < many; ++i) {
      expect_sent(a, memory->descriptor(i));
      VIP_VI_HANDLE vi = nullptr;
      VIP_BOOLEAN receive = VIP_FALSE;
      ASSERT_EQ(VipCQDone(cq, &vi, &receive), VIP_SUCCESS);
      EXPECT_EQ(vi, b);
      expect_received(b, memory->descriptor(20 + i));
    }
    disconnect(a);
    disconnect(b);
  }
}

// An attempt that failed has left it with a queue pair of the old size.
TEST_F(Capacity, AfterAFailedAttempt) {
  const VIP_VI_HANDLE a = make_vi(), b = make_vi();
  ASSERT_EQ(Vi::find(a)->begin_pending(a), VIP_SUCCESS);
  EXPECT_EQ(VipSetViCapacity(a, 2, 2, 1), VIP_INVALID_STATE);
  Vi::find(a)->on_attempt_failed(false);
  ASSERT_EQ(VipSetViCapacity(a, 2, 2, 1), VIP_SUCCESS);
  connect(b, a);
  EXPECT_EQ(Fabric::get().last_plan.sends, 2u);
}

}  // namespace
}  // namespace viaduct::vipl::test
