// Completion queues: what they name, that they drop nothing, and how they grow.
#include "tests/vipl/core/node.hpp"

namespace viaduct::vipl::test {
namespace {

class Cqs : public Core {
 protected:
  static void expect_entry(VIP_CQ_HANDLE cq, VIP_VI_HANDLE vi, VIP_BOOLEAN receive) {
    VIP_VI_HANDLE named = nullptr;
    VIP_BOOLEAN named_receive = !receive;
    ASSERT_EQ(VipCQDone(cq, &named, &named_receive), VIP_SUCCESS);
    EXPECT_EQ(named, vi);
    EXPECT_EQ(named_receive, receive);
  }
  static void expect_no_entry(VIP_CQ_HANDLE cq) {
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN receive = VIP_FALSE;
    EXPECT_EQ(VipCQDone(cq, &vi, &receive), VIP_NOT_DONE);
  }
};

TEST_F(Cqs, AnEntryMeansTheDescriptorIsThere) {
  const VIP_CQ_HANDLE cq = make_cq(4), sends = make_cq(2);
  const VIP_VI_HANDLE a = make_vi(sends, cq), b = make_vi(nullptr, cq);
  connect(a, b);
  for (std::size_t i = 0; i < 2; ++i) {
    post_receive(a, memory->message(i, 0, 10));
    post_receive(b, memory->message(2 + i, 0, 10));
  }
  expect_no_entry(cq);
  post_send(a, memory->send(4, 100, "x"));
  post_send(b, memory->send(5, 100, "x"));
  post_send(a, memory->send(6, 100, "x"));
  expect_entry(cq, b, VIP_TRUE);
  expect_received(b, memory->descriptor(2));
  expect_entry(cq, a, VIP_TRUE);
  expect_entry(cq, b, VIP_TRUE);
  expect_received(a, memory->descriptor(0));
  expect_received(b, memory->descriptor(3));
  expect_no_entry(cq);
  expect_entry(sends, a, VIP_FALSE);
  expect_entry(sends, a, VIP_FALSE);
  expect_sent(a, memory->descriptor(4));
  expect_sent(a, memory->descriptor(6));
  expect_sent(b, memory->descriptor(5));
}

TEST_F(Cqs, AllEntriesCanBeUsedBySendsAndReceivesTogether) {
  const int resizes = Fabric::get().resizes;
  const VIP_CQ_HANDLE cq = make_cq(6);
  const VIP_VI_HANDLE a = make_vi(cq, cq), b = make_vi(cq, cq);
  connect(a, b);
  for (int round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < 3; ++i) post_receive(b, memory->message(i, 0, 10));
    for (std::size_t i = 0; i < 3; ++i) post_send(a, memory->send(3 + i, 100, "x"));
    int receives = 0;
    for (int i = 0; i < 6; ++i) {
      VIP_VI_HANDLE vi = nullptr;
      VIP_BOOLEAN receive = VIP_FALSE;
      ASSERT_EQ(VipCQDone(cq, &vi, &receive), VIP_SUCCESS);
      receives += receive;
      VIP_DESCRIPTOR* d = nullptr;
      EXPECT_EQ(receive ? VipRecvDone(vi, &d) : VipSendDone(vi, &d), VIP_SUCCESS);
    }
    EXPECT_EQ(receives, 3);
    expect_no_entry(cq);
  }
  EXPECT_EQ(Fabric::get().resizes, resizes) << "that many were asked for";
}

// A program that posts more than it has entries for loses nothing.
TEST_F(Cqs, ItGrows) {
  const VIP_CQ_HANDLE cq = make_cq(2);
  const VIP_VI_HANDLE a = make_vi(cq), b = make_vi(nullptr, cq);
  connect(a, b);
  constexpr std::size_t kMessages = 100;
  for (std::size_t i = 0; i < kMessages; ++i) post_receive(b, memory->message(i, 0, 10));
  for (std::size_t i = 0; i < kMessages; ++i) post_send(a, memory->send(200 + i, 100, "x"));
  std::size_t receives = 0, sends = 0;
  for (std::size_t i = 0; i < 2 * kMessages; ++i) {
    VIP_VI_HANDLE vi = nullptr;
    VIP_BOOLEAN receive = VIP_FALSE;
    ASSERT_EQ(VipCQDone(cq, &vi, &receive), VIP_SUCCESS);
    if (receive)
      expect_received(vi, memory->descriptor(receives++));
    else
      expect_sent(vi, memory->descriptor(200 + sends++));
  }
  expect_no_entry(cq);
}

// Entries that nobody takes are no reason to refuse anything.
TEST_F(Cqs, EntriesThatAreNotTaken) {
  const VIP_CQ_HANDLE cq = make_cq(4);
  const VIP_VI_HANDLE a = make_vi(), b = make_vi(nullptr, cq);
  connect(a, b);
  constexpr std::size_t kMessages = 5000;  // more than the device could ever hold
  for (std::size_t i = 0; i < kMessages; ++i) {
    post_receive(b, memory->message(0, 0, 10));
    post_send(a, memory->send(1, 100, "x"));
    expect_received(b, memory->descriptor(0));
    expect_sent(a, memory->descriptor(1));
  }
  for (std::size_t i = 0; i < kMessages; ++i) expect_entry(cq, b, VIP_TRUE);
  expect_no_entry(cq);
}

TEST_F(Cqs, TheDevicesLimitEndsIt) {
  const VIP_CQ_HANDLE cq = make_cq(4);
  const VIP_VI_HANDLE vis[] = {make_vi(nullptr, cq), make_vi(nullptr, cq), make_vi(nullptr, cq),
                               make_vi(nullptr, cq), make_vi(nullptr, cq)};
  std::size_t posted = 0;
  VIP_RETURN result = VIP_SUCCESS;
  for (const VIP_VI_HANDLE vi : vis)
    for (std::size_t i = 0; i < 256 && result == VIP_SUCCESS; ++i, ++posted)
      result = VipPostRecv(vi, memory->message(0, 0, 10), memory->handle());
  EXPECT_EQ(result, VIP_ERROR_RESOURCE);
  EXPECT_EQ(posted, 1025u);  // the device holds 1024 completions
  // What was refused is not counted.
  disconnect(vis[0]);
  for (int i = 0; i < 256; ++i) expect_entry(cq, vis[0], VIP_TRUE);
  EXPECT_EQ(VipPostRecv(vis[4], memory->message(0, 0, 10), memory->handle()), VIP_SUCCESS);
}

TEST_F(Cqs, FlushedDescriptorsHaveEntries) {
  const VIP_CQ_HANDLE cq = make_cq(4);
  const VIP_VI_HANDLE a = make_vi(cq, cq);
  post_receive(a, memory->message(0, 0, 10));
  post_receive(a, memory->message(1, 0, 10));
  disconnect(a);
  post_send(a, memory->send(2, 100, "x"));  // not connected
  expect_entry(cq, a, VIP_TRUE);
  expect_entry(cq, a, VIP_TRUE);
  expect_entry(cq, a, VIP_FALSE);
  expect_receive_error(a, memory->descriptor(0), VIP_STATUS_DESC_FLUSHED_ERROR);
  expect_receive_error(a, memory->descriptor(1), VIP_STATUS_DESC_FLUSHED_ERROR);
  expect_send_error(a, memory->descriptor(2), VIP_STATUS_DESC_FLUSHED_ERROR);
}

TEST_F(Cqs, OthersEntriesStayWhenAViGoes) {
  const VIP_CQ_HANDLE cq = make_cq(8);
  const VIP_VI_HANDLE a = make_vi(nullptr, cq), b = make_vi(nullptr, cq), c = make_vi(nullptr, cq);
  for (const VIP_VI_HANDLE vi : {a, b, c, b, a, b}) post_receive(vi, memory->message(0, 0, 10));
  for (const VIP_VI_HANDLE vi : {a, b, c}) disconnect(vi);
  EXPECT_EQ(VipDestroyVi(b), VIP_SUCCESS);
  expect_entry(cq, a, VIP_TRUE);
  expect_entry(cq, a, VIP_TRUE);
  expect_entry(cq, c, VIP_TRUE);
  expect_no_entry(cq);
}

TEST_F(Cqs, ResizeKeepsEntries) {
  const VIP_CQ_HANDLE cq = make_cq(2);
  const VIP_VI_HANDLE a = make_vi(nullptr, cq), b = make_vi();
  connect(a, b);
  post_receive(a, memory->message(0, 0, 10));
  post_receive(a, memory->message(1, 0, 10));
  post_send(b, memory->send(2, 100, "x"));
  EXPECT_EQ(VipResizeCQ(cq, 1), VIP_ERROR_RESOURCE) << "two descriptors need entries";
  EXPECT_EQ(VipResizeCQ(cq, 34), VIP_SUCCESS);
  EXPECT_EQ(VipResizeCQ(cq, 2), VIP_SUCCESS);
  post_send(b, memory->send(3, 100, "x"));
  expect_entry(cq, a, VIP_TRUE);
  expect_entry(cq, a, VIP_TRUE);
  expect_no_entry(cq);
  EXPECT_EQ(VipResizeCQ(cq, 0), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipResizeCQ(nullptr, 4), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipResizeCQ(cq, 1025), VIP_ERROR_RESOURCE);
}

// Some devices cannot change the size of a completion queue.
TEST_F(Cqs, ResizeToWhatThereIs) {
  const VIP_CQ_HANDLE cq = make_cq(8);
  const int resizes = Fabric::get().resizes;
  EXPECT_EQ(VipResizeCQ(cq, 8), VIP_SUCCESS);
  EXPECT_EQ(VipResizeCQ(cq, 4), VIP_SUCCESS);
  EXPECT_EQ(Fabric::get().resizes, resizes);
}

TEST_F(Cqs, Parameters) {
  VIP_CQ_HANDLE cq = nullptr;
  EXPECT_EQ(VipCreateCQ(nic, 0, &cq), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCreateCQ(nic, 1025, &cq), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipCreateCQ(nullptr, 4, &cq), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCreateCQ(nic, 4, nullptr), VIP_INVALID_PARAMETER);
  VIP_VI_HANDLE vi = nullptr;
  VIP_BOOLEAN receive = VIP_FALSE;
  EXPECT_EQ(VipCQDone(nullptr, &vi, &receive), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCQWait(make_vi(), 1, &vi, &receive), VIP_INVALID_PARAMETER);
  const VIP_CQ_HANDLE right = make_cq(4);
  EXPECT_EQ(VipCQDone(right, nullptr, &receive), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCQWait(right, 1, &vi, nullptr), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCQNotify(right, nullptr, nullptr), VIP_INVALID_PARAMETER);
}

}  // namespace
}  // namespace viaduct::vipl::test
