// The states of a VI: disconnecting, reconnecting, losing the other side, being destroyed.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/vipl/core/node.hpp"

namespace viaduct::vipl::test {
namespace {

class States : public Core {
 protected:
  Reports& reports = report_errors(nic);
};

TEST_F(States, SendsNeedAConnection) {
  const VIP_VI_HANDLE vi = make_vi();
  EXPECT_EQ(state(vi), VIP_STATE_IDLE);
  VIP_DESCRIPTOR* const idle = memory->send(0, 0, "x");
  post_send(vi, idle);
  expect_send_error(vi, idle, VIP_STATUS_DESC_FLUSHED_ERROR);
  ASSERT_EQ(Vi::find(vi)->begin_pending(vi), VIP_SUCCESS);
  EXPECT_EQ(state(vi), VIP_STATE_CONNECT_PENDING);
  post_send(vi, idle);
  expect_send_error(vi, idle, VIP_STATUS_DESC_FLUSHED_ERROR);
  EXPECT_EQ(Vi::find(vi)->begin_pending(vi), VIP_INVALID_STATE);
  EXPECT_EQ(VipDestroyVi(vi), VIP_INVALID_STATE);
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  EXPECT_EQ(VipSetViAttributes(vi, &attributes), VIP_INVALID_STATE);
  Vi::find(vi)->on_attempt_failed(false);
  EXPECT_EQ(state(vi), VIP_STATE_IDLE);
}

TEST_F(States, ReceivesPostedBeforeSurviveAFailedAttempt) {
  const VIP_VI_HANDLE a = make_vi(), b = make_vi();
  post_receive(b, memory->message(0, 0, 10));
  post_receive(b, memory->message(1, 100, 10));
  for (const bool tries_again : {false, true}) {
    ASSERT_EQ(Vi::find(b)->begin_pending(b), VIP_SUCCESS);
    (void)Vi::find(b)->card();
    Vi::find(b)->on_attempt_failed(tries_again);
    EXPECT_EQ(state(b), tries_again ? VIP_STATE_CONNECT_PENDING : VIP_STATE_IDLE);
  }
  Vi::find(b)->on_attempt_failed(false);
  // ... even one that got as far as connecting the queue pair.
  ASSERT_EQ(Vi::find(b)->begin_pending(b), VIP_SUCCESS);
  ASSERT_TRUE(Vi::find(b)->establish(Vi::find(a)->card()));
  Vi::find(b)->on_attempt_failed(false);
  connect(a, b);
  post_send(a, memory->send(2, 200, "one"));
  post_send(a, memory->send(3, 300, "two"));
  expect_received(b, memory->descriptor(0));
  expect_received(b, memory->descriptor(1));
  EXPECT_EQ(memory->text(0, 3), "one");
  EXPECT_EQ(memory->text(100, 3), "two");
}

TEST_F(States, DisconnectFlushesInOrder) {
  const VIP_VI_HANDLE a = make_vi(), b = make_vi();
  connect(a, b);
  for (std::size_t i = 0; i < 5; ++i) post_receive(a, memory->message(10 + i, 0, 10));
  post_receive(b, memory->message(20, 0, 10));
  post_send(a, memory->send(0, 0, "x"));
  Fabric::get().hold();
  for (std::size_t i = 1; i < 5; ++i) post_send(a, memory->send(i, 0, "x"));
  disconnect(a);
  EXPECT_EQ(state(a), VIP_STATE_IDLE);
  expect_sent(a, memory->descriptor(0));
  for (std::size_t i = 1; i < 5; ++i)
    expect_send_error(a, memory->descriptor(i), VIP_STATUS_DESC_FLUSHED_ERROR);
  for (std::size_t i = 0; i < 5; ++i)
    expect_receive_error(a, memory->descriptor(10 + i), VIP_STATUS_DESC_FLUSHED_ERROR);
  expect_send_queue_empty(a);
  expect_receive_queue_empty(a);
  disconnect(a);  // twice is harmless
  EXPECT_EQ(VipDestroyVi(a), VIP_SUCCESS);
}

// What the device has completed is the program's, whoever of the two ends the connection.
TEST_F(States, DisconnectKeepsWhatHasCompleted) {
  const VIP_CQ_HANDLE cq = make_cq(8);
  for (const VIP_CQ_HANDLE used : {VIP_CQ_HANDLE{nullptr}, cq}) {
    const VIP_VI_HANDLE a = make_vi(), b = make_vi(used, used);
    connect(a, b);
    for (std::size_t i = 0; i < 3; ++i) post_receive(b, memory->message(i, 0, 10));
    for (std::size_t i = 3; i < 5; ++i) post_send(a, memory->send(i, 100, "x"));
    disconnect(a);
    disconnect(b);
    for (std::size_t i = 3; i < 5; ++i) expect_sent(a, memory->descriptor(i));
    for (std::size_t i = 0; i < 2; ++i) expect_received(b, memory->descriptor(i));
    expect_receive_error(b, memory->descriptor(2), VIP_STATUS_DESC_FLUSHED_ERROR);
  }
}

TEST_F(States, TheSameViConnectsAgain) {
  const VIP_VI_HANDLE a = make_vi(), b = make_vi(), c = make_vi();
  for (const VIP_VI_HANDLE other : {b, c, b}) {
    connect(a, other);
    post_receive(other, memory->message(0, 0, 10));
    VIP_DESCRIPTOR* const send = memory->send(1, 100, "again");
    post_send(a, send);
    expect_sent(a, send);
    expect_received(other, memory->descriptor(0));
    // What did not complete is flushed; what was posted for the next connection is not.
    post_receive(a, memory->message(2, 0, 10));
    disconnect(a);
    disconnect(other);
    expect_receive_error(a, memory->descriptor(2), VIP_STATUS_DESC_FLUSHED_ERROR);
  }
}

// The other side takes what it has received and disconnects; the acknowledgements are lost. What
// was delivered was sent, in this connection and in the next one of the same VIs.
TEST_F(States, WhatWasDeliveredBeforeADisconnectWasSent) {
  const VIP_VI_HANDLE a = make_vi(), b = make_vi();
  for (int round = 0; round < 3; ++round) {
    connect(a, b);
    for (std::size_t i = 0; i < 4; ++i) post_receive(b, memory->message(i, 100 * i, 10));
    const auto write = [&](std::size_t i, int control) {
      return memory->rdma(i, static_cast<std::uint16_t>(VIP_CONTROL_OP_RDMAWRITE | control), 1000,
                          8, memory->data(2000), memory->handle());
    };
    // Of these the sender's device knows.
    VIP_DESCRIPTOR* const early[] = {memory->send(10, 0, "one"), write(11, 0),
                                     write(12, VIP_CONTROL_IMMEDIATE)};
    for (VIP_DESCRIPTOR* const d : early) post_send(a, d);
    Fabric::get().withholds_acks = true;
    VIP_DESCRIPTOR* const late[] = {
        write(13, 0), memory->send(14, 0, "two"),
        memory->rdma(15, VIP_CONTROL_OP_RDMAREAD, 3000, 8, memory->data(2000), memory->handle()),
        write(16, VIP_CONTROL_IMMEDIATE), write(17, 0)};
    for (VIP_DESCRIPTOR* const d : late) post_send(a, d);
    Fabric::get().hold();
    VIP_DESCRIPTOR* const never = memory->send(18, 0, "three");
    post_send(a, never);
    if (round == 1) expect_sent(a, early[0]);  // or it looks only afterwards
    for (std::size_t i = 0; i < 4; ++i) expect_received(b, memory->descriptor(i));
    disconnect(b);
    const Tally tally = Vi::find(b)->tally();
    EXPECT_EQ(tally.received, 4u);
    Vi::find(a)->delivered(tally);
    Vi::find(a)->on_connection_lost(CloseReason::disconnected);
    for (VIP_DESCRIPTOR* const d : early)
      if (round != 1 || d != early[0]) expect_sent(a, d);
    expect_sent(a, late[0]);
    expect_sent(a, late[1]);
    expect_send_error(a, late[2], VIP_STATUS_DESC_FLUSHED_ERROR);  // its data may not have come
    expect_sent(a, late[3]);
    expect_send_error(a, late[4], VIP_STATUS_DESC_FLUSHED_ERROR);  // nobody knows
    expect_send_error(a, never, VIP_STATUS_DESC_FLUSHED_ERROR);
    expect_send_queue_empty(a);
    disconnect(a);
    Fabric::get().withholds_acks = false;
    Fabric::get().release();
  }
}

TEST_F(States, LosingTheOtherSide) {
  const VIP_VI_HANDLE a = make_vi(), b = make_vi();
  connect(a, b);
  post_receive(a, memory->message(0, 0, 10));
  Fabric::get().hold();
  post_send(a, memory->send(1, 0, "x"));
  Vi::find(a)->on_connection_lost(CloseReason::disconnected);
  EXPECT_EQ(state(a), VIP_STATE_ERROR);
  const auto errors = reports.get(1);
  EXPECT_EQ(errors[0].ErrorCode, VIP_ERROR_CONN_LOST);
  EXPECT_EQ(errors[0].ResourceCode, VIP_RESOURCE_VI);
  EXPECT_EQ(errors[0].ViHandle, a);
  EXPECT_EQ(errors[0].NicHandle, nic);
  expect_receive_error(a, memory->descriptor(0), VIP_STATUS_DESC_FLUSHED_ERROR);
  expect_send_error(a, memory->descriptor(1), VIP_STATUS_DESC_FLUSHED_ERROR);
  // What is posted now is flushed at once.
  post_receive(a, memory->message(0, 0, 10));
  post_send(a, memory->send(1, 0, "x"));
  expect_receive_error(a, memory->descriptor(0), VIP_STATUS_DESC_FLUSHED_ERROR);
  expect_send_error(a, memory->descriptor(1), VIP_STATUS_DESC_FLUSHED_ERROR);
  EXPECT_EQ(VipDestroyVi(a), VIP_INVALID_STATE);
  EXPECT_EQ(Vi::find(a)->begin_pending(a), VIP_INVALID_STATE);
  disconnect(a);
  EXPECT_EQ(VipDestroyVi(a), VIP_SUCCESS);
}

TEST_F(States, EachLossHasItsErrorAndOnlyOne) {
  for (const auto& [reason, code] :
       {std::pair(CloseReason::receive_queue_empty, VIP_ERROR_RECVQ_EMPTY),
        std::pair(CloseReason::rdma_write_protection, VIP_ERROR_RDMAW_PROT),
        std::pair(CloseReason::rdma_read_protection, VIP_ERROR_RDMAR_PROT),
        std::pair(CloseReason::transport, VIP_ERROR_CONN_LOST),
        std::pair(CloseReason::host_silent, VIP_ERROR_CONN_LOST)}) {
    const VIP_VI_HANDLE a = make_vi(), b = make_vi();
    connect(a, b);
    Vi::find(a)->on_connection_lost(reason);
    Vi::find(a)->on_connection_lost(CloseReason::disconnected);
    const auto errors = reports.get(1);
    EXPECT_EQ(errors[0].ErrorCode, code);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::lock_guard lock(reports.mutex);
    EXPECT_EQ(reports.all.size(), 1u);
    reports.all.clear();
  }
}

TEST_F(States, UnreliableVisLoseTheirConnectionQuietly) {
  const VIP_VI_HANDLE a = make_vi(nullptr, nullptr, vi_attributes(VIP_SERVICE_UNRELIABLE));
  const VIP_VI_HANDLE b = make_vi(nullptr, nullptr, vi_attributes(VIP_SERVICE_UNRELIABLE));
  connect(a, b);
  Vi::find(a)->on_connection_lost(CloseReason::disconnected);
  EXPECT_EQ(state(a), VIP_STATE_ERROR);
  reports.expect_none();
}

TEST_F(States, HandlerTakenBack) {
  EXPECT_EQ(VipErrorCallback(nic, nullptr, nullptr), VIP_SUCCESS);
  const VIP_VI_HANDLE a = make_vi(), b = make_vi();
  connect(a, b);
  Vi::find(a)->on_connection_lost(CloseReason::disconnected);
  reports.expect_none();
  EXPECT_EQ(VipErrorCallback(nullptr, nullptr, nullptr), VIP_INVALID_PARAMETER);
}

TEST_F(States, DestroyWithoutDraining) {
  const VIP_CQ_HANDLE cq = make_cq(8);
  const VIP_VI_HANDLE a = make_vi(cq, cq), b = make_vi();
  connect(a, b);
  for (std::size_t i = 0; i < 4; ++i) post_receive(a, memory->message(i, 0, 10));
  EXPECT_EQ(VipDestroyVi(a), VIP_INVALID_STATE);
  disconnect(a);
  EXPECT_EQ(VipDestroyCQ(cq), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipDestroyVi(a), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyVi(a), VIP_INVALID_PARAMETER);
  // Nothing names the VI any more.
  VIP_VI_HANDLE vi = nullptr;
  VIP_BOOLEAN receive = VIP_FALSE;
  EXPECT_EQ(VipCQDone(cq, &vi, &receive), VIP_NOT_DONE);
  EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyCQ(cq), VIP_INVALID_PARAMETER);
}

TEST_F(States, AttributesOfAVi) {
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  VIP_VI_HANDLE vi = nullptr;
  const auto create = [&] { return VipCreateVi(nic, &attributes, nullptr, nullptr, &vi); };
  attributes.ReliabilityLevel = 0;
  EXPECT_EQ(create(), VIP_INVALID_RELIABILITY_LEVEL);
  attributes.ReliabilityLevel = VIP_SERVICE_UNRELIABLE | VIP_SERVICE_RELIABLE_DELIVERY;
  EXPECT_EQ(create(), VIP_INVALID_RELIABILITY_LEVEL);
  attributes.ReliabilityLevel = 8;
  EXPECT_EQ(create(), VIP_INVALID_RELIABILITY_LEVEL);
  attributes = vi_attributes();
  attributes.MaxTransferSize = 0;
  EXPECT_EQ(create(), VIP_INVALID_MTU);
  attributes.MaxTransferSize = (1 << 20) + 1;
  EXPECT_EQ(create(), VIP_INVALID_MTU);
  attributes = vi_attributes(VIP_SERVICE_UNRELIABLE);
  attributes.EnableRdmaRead = VIP_TRUE;
  EXPECT_EQ(create(), VIP_INVALID_RDMAREAD);
  attributes = vi_attributes();
  attributes.Ptag = nic;
  EXPECT_EQ(create(), VIP_INVALID_PTAG);
  attributes = vi_attributes();
  EXPECT_EQ(VipCreateVi(nullptr, &attributes, nullptr, nullptr, &vi), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCreateVi(nic, nullptr, nullptr, nullptr, &vi), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCreateVi(nic, &attributes, nullptr, nullptr, nullptr), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCreateVi(nic, &attributes, nic, nullptr, &vi), VIP_INVALID_PARAMETER);
  const VIP_CQ_HANDLE cq = make_cq(4);
  EXPECT_EQ(VipCreateVi(nic, &attributes, cq, nic, &vi), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS) << "it was not left attached";
  const VIP_CQ_HANDLE other_cq = make_cq(4);
  EXPECT_EQ(VipCreateVi(open(), &attributes, other_cq, nullptr, &vi), VIP_INVALID_PARAMETER);

  ASSERT_EQ(create(), VIP_SUCCESS);
  VIP_VI_STATE state{};
  VIP_BOOLEAN send_empty = VIP_FALSE, receive_empty = VIP_FALSE;
  post_receive(vi, memory->message(0, 0, 1));
  VIP_VI_ATTRIBUTES answer{};
  ASSERT_EQ(VipQueryVi(vi, &state, &answer, &send_empty, &receive_empty), VIP_SUCCESS);
  EXPECT_EQ(answer.MaxTransferSize, 32768u);
  EXPECT_EQ(send_empty, VIP_TRUE);
  EXPECT_EQ(receive_empty, VIP_FALSE);
}

// An idle VI has nothing of the device; each thing that it needs to connect the device may not
// have. Nothing stays behind, and receives wait for the next attempt.
TEST_F(States, DeviceIsFull) {
  const VIP_VI_HANDLE b = make_vi();
  const VIP_CQ_HANDLE cq = make_cq(4);
  for (const VIP_CQ_HANDLE completes_in : {VIP_CQ_HANDLE{}, cq}) {
    Fabric::get().refusals = 1000;
    const VIP_VI_HANDLE a = make_vi(completes_in, completes_in);
    for (std::size_t i = 0; i < 2; ++i) post_receive(a, memory->message(i, 0, 10));
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_EQ(VipRecvDone(a, &d), VIP_NOT_DONE);
    Fabric::get().refusals = 0;
    const int needs = completes_in == nullptr ? 3 : 1;
    for (int refused = 0; refused < needs; ++refused) {
      Fabric::get().accepts = refused;
      EXPECT_EQ(Vi::find(a)->begin_pending(a), VIP_ERROR_RESOURCE) << refused;
      EXPECT_EQ(state(a), VIP_STATE_IDLE);
    }
    Fabric::get().accepts = -1;
    connect(a, b);
    post_send(b, memory->send(10, 100, "x"));
    expect_sent(b, memory->descriptor(10));
    expect_received(a, memory->descriptor(0));
    disconnect(b);
    disconnect(a);
    expect_receive_error(a, memory->descriptor(1), VIP_STATUS_DESC_FLUSHED_ERROR);
    EXPECT_EQ(VipDestroyVi(a), VIP_SUCCESS);
  }
  EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
  Fabric::get().refusals = 1;
  VIP_CQ_HANDLE full = nullptr;
  EXPECT_EQ(VipCreateCQ(nic, 4, &full), VIP_ERROR_RESOURCE);
  Fabric::get().refusals = 1;
  VIP_NIC_HANDLE another = nullptr;
  EXPECT_EQ(VipOpenNic("fake0", &another), VIP_ERROR_RESOURCE);
}

// Who waits before there is a connection is woken by what comes then.
TEST_F(States, WaitingBeforeThereIsAConnection) {
  const VIP_VI_HANDLE a = make_vi(), b = make_vi();
  post_receive(a, memory->message(0, 0, 10));
  std::thread waiting([&] {
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_EQ(VipRecvWait(a, 20'000, &d), VIP_SUCCESS);
    EXPECT_EQ(d, memory->descriptor(0));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  connect(a, b);
  post_send(b, memory->send(1, 100, "x"));
  waiting.join();
}

TEST_F(States, ChangedAttributesGoForWhatIsPosted) {
  VIP_PROTECTION_HANDLE first = nullptr, second = nullptr;
  ASSERT_EQ(VipCreatePtag(nic, &first), VIP_SUCCESS);
  ASSERT_EQ(VipCreatePtag(nic, &second), VIP_SUCCESS);
  VIP_MEM_ATTRIBUTES of_second{second, VIP_FALSE, VIP_FALSE};
  const Memory other(nic, &of_second);
  const VIP_VI_HANDLE a = make_vi(), b = make_vi();
  VIP_DESCRIPTOR* const under_first = memory->message(0, 0, 10);
  post_receive(b, under_first);
  VIP_DESCRIPTOR* const under_second = other.message(1, 0, 10);
  ASSERT_EQ(VipPostRecv(b, under_second, other.handle()), VIP_SUCCESS);
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  attributes.MaxTransferSize = 1000;
  attributes.Ptag = second;
  EXPECT_EQ(VipDestroyPtag(nic, second), VIP_ERROR_RESOURCE);
  ASSERT_EQ(VipSetViAttributes(b, &attributes), VIP_SUCCESS);
  VIP_VI_ATTRIBUTES answer{};
  ASSERT_EQ(VipQueryVi(b, nullptr, &answer, nullptr, nullptr), VIP_SUCCESS);
  EXPECT_EQ(answer.MaxTransferSize, 1000u);
  EXPECT_EQ(answer.Ptag, second);
  attributes.EnableRdmaWrite = VIP_FALSE;
  ASSERT_EQ(VipSetViAttributes(b, &attributes), VIP_SUCCESS);
  // The first is not of the tag that the VI has now: it has no room for anything.
  connect(a, b);
  post_send(a, memory->send(2, 0, ""));
  expect_received(b, under_first);
  post_send(a, memory->send(3, 0, "hello"));
  expect_received(b, under_second);
  attributes.MaxTransferSize = 0;
  EXPECT_EQ(VipSetViAttributes(b, &attributes), VIP_INVALID_STATE);
  EXPECT_EQ(VipSetViAttributes(b, nullptr), VIP_INVALID_PARAMETER);
}

// Nothing is asked of the device that it could refuse, until the VI is to be connected.
TEST_F(States, ChangedAttributesGoForTheNextConnection) {
  const VIP_VI_HANDLE a = make_vi(), b = make_vi();
  post_receive(b, memory->message(0, 0, 10));
  connect(a, b);  // so that it has had a queue pair with other rights
  disconnect(a);
  disconnect(b);
  expect_receive_error(b, memory->descriptor(0), VIP_STATUS_DESC_FLUSHED_ERROR);
  post_receive(b, memory->message(0, 0, 10));
  VIP_VI_ATTRIBUTES wanted = vi_attributes();
  wanted.EnableRdmaWrite = VIP_FALSE;
  Fabric::get().refusals = 1000;
  EXPECT_EQ(VipSetViAttributes(b, &wanted), VIP_SUCCESS);
  Fabric::get().refusals = 0;
  connect(a, b);
  post_send(a, memory->send(1, 100, "x"));
  expect_received(b, memory->descriptor(0));
  VIP_DESCRIPTOR* const write =
      memory->rdma(2, VIP_CONTROL_OP_RDMAWRITE, 0, 8, memory->data(100), memory->handle());
  post_send(a, write);
  expect_sent(a, memory->descriptor(1));
  expect_send_error(a, write, VIP_STATUS_RDMA_PROT_ERROR);
}

TEST_F(States, ClosingANicReclaimsEverything) {
  const VIP_NIC_HANDLE other = open();
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  VIP_VI_HANDLE vi = nullptr;
  VIP_CQ_HANDLE cq = nullptr;
  VIP_PROTECTION_HANDLE tag = nullptr;
  ASSERT_EQ(VipCreateCQ(other, 4, &cq), VIP_SUCCESS);
  ASSERT_EQ(VipCreatePtag(other, &tag), VIP_SUCCESS);
  attributes.Ptag = tag;
  ASSERT_EQ(VipCreateVi(other, &attributes, cq, cq, &vi), VIP_SUCCESS);
  EXPECT_EQ(VipCloseNic(other), VIP_SUCCESS);
  EXPECT_EQ(VipCloseNic(other), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDestroyVi(vi), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDestroyCQ(cq), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDestroyPtag(other, tag), VIP_INVALID_PARAMETER);
  VIP_NIC_ATTRIBUTES nic_attributes{};
  EXPECT_EQ(VipQueryNic(other, &nic_attributes), VIP_INVALID_PARAMETER);
}

}  // namespace
}  // namespace viaduct::vipl::test
