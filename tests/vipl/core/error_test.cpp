// Descriptors that are wrong, work that fails, and what that does to a VI.
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "tests/vipl/core/node.hpp"

namespace viaduct::vipl::test {
namespace {

class Errors : public Core {
 protected:
  void both(VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY) {
    a = make_vi(nullptr, nullptr, vi_attributes(level));
    b = make_vi(nullptr, nullptr, vi_attributes(level));
    connect(a, b);
  }
  // `b` has posted it first: a message is sent to it.
  void meet(VIP_DESCRIPTOR* receive, std::uint32_t bits, std::string_view message = "met") {
    VIP_DESCRIPTOR* const send = memory->send(200, 300, message);
    post_send(a, send);
    const bool not_receive = (receive->CS.Control & VIP_CONTROL_OP_MASK) != 0;
    expect_receive_error(b, receive, not_receive ? VIP_STATUS_FORMAT_ERROR : bits);
    EXPECT_EQ(state(b), VIP_STATE_ERROR);
    expect_send_error(a, send, VIP_STATUS_REMOTE_DESC_ERROR);
    EXPECT_EQ(state(a), VIP_STATE_ERROR);
  }
  VIP_VI_HANDLE a = nullptr, b = nullptr;
};

TEST_F(Errors, WhatIsNoDescriptorIsNotTouched) {
  both();
  char outside[256];
  const VIP_MEM_HANDLE handle = memory->handle();
  EXPECT_EQ(VipPostSend(a, nullptr, handle), VIP_INVALID_PARAMETER);
  auto* const misaligned = reinterpret_cast<VIP_DESCRIPTOR*>(memory->base() + 32);
  EXPECT_EQ(VipPostSend(a, misaligned, handle), VIP_INVALID_PARAMETER);
  auto* const elsewhere =
      reinterpret_cast<VIP_DESCRIPTOR*>((reinterpret_cast<std::uintptr_t>(outside) + 63) / 64 * 64);
  EXPECT_EQ(VipPostSend(a, elsewhere, handle), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipPostSend(a, reinterpret_cast<VIP_DESCRIPTOR*>(64), handle), VIP_INVALID_PARAMETER);
  VIP_DESCRIPTOR* const right = memory->send(0, 0, "x");
  EXPECT_EQ(VipPostSend(a, right, handle + 1), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipPostSend(a, right, 0), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipPostRecv(a, right, 0), VIP_INVALID_PARAMETER);
  expect_send_queue_empty(a);
  EXPECT_EQ(state(a), VIP_STATE_CONNECTED);
}

TEST_F(Errors, WrongHandles) {
  both();
  VIP_DESCRIPTOR* const d = memory->send(0, 0, "x");
  int local = 0;
  for (const VIP_VI_HANDLE bad : {VIP_VI_HANDLE{nullptr}, VIP_VI_HANDLE{&local}, VIP_VI_HANDLE{nic},
                                  static_cast<VIP_VI_HANDLE>(static_cast<char*>(a) + 1),
                                  reinterpret_cast<VIP_VI_HANDLE>(~std::uintptr_t{0})}) {
    VIP_DESCRIPTOR* taken = d;
    EXPECT_EQ(VipPostSend(bad, d, memory->handle()), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipPostRecv(bad, d, memory->handle()), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipSendDone(bad, &taken), VIP_INVALID_PARAMETER);
    EXPECT_EQ(taken, nullptr);
    EXPECT_EQ(VipRecvWait(bad, 1, &taken), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipQueryVi(bad, nullptr, nullptr, nullptr, nullptr), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipDestroyVi(bad), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipRecvNotify(bad, nullptr,
                            [](VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {}),
              VIP_INVALID_PARAMETER);
  }
}

struct Fault {
  const char* name;
  std::uint32_t bits;
  std::function<void(VIP_DESCRIPTOR&)> make;
};
const Fault kFaults[] = {
    {"reserved operation", VIP_STATUS_FORMAT_ERROR,
     [](VIP_DESCRIPTOR& d) { d.CS.Control = VIP_CONTROL_OP_RESERVED; }},
    {"reserved bits", VIP_STATUS_FORMAT_ERROR, [](VIP_DESCRIPTOR& d) { d.CS.Control = 0x10; }},
    {"too many segments", VIP_STATUS_FORMAT_ERROR, [](VIP_DESCRIPTOR& d) { d.CS.SegCount = 33; }},
    {"very many segments", VIP_STATUS_FORMAT_ERROR,
     [](VIP_DESCRIPTOR& d) { d.CS.SegCount = 0xffff; }},
    {"a write to nowhere", VIP_STATUS_FORMAT_ERROR,
     [](VIP_DESCRIPTOR& d) {
       d.CS.Control = VIP_CONTROL_OP_RDMAWRITE;
       d.CS.SegCount = 0;
     }},
    {"a read with immediate data", VIP_STATUS_FORMAT_ERROR,
     [](VIP_DESCRIPTOR& d) { d.CS.Control = VIP_CONTROL_OP_RDMAREAD | VIP_CONTROL_IMMEDIATE; }},
    {"no such memory", VIP_STATUS_PROTECTION_ERROR,
     [](VIP_DESCRIPTOR& d) { d.DS[0].Local.Handle ^= 0x40; }},
    {"memory handle 0", VIP_STATUS_PROTECTION_ERROR,
     [](VIP_DESCRIPTOR& d) { d.DS[0].Local.Handle = 0; }},
    {"before the region", VIP_STATUS_PROTECTION_ERROR,
     [](VIP_DESCRIPTOR& d) { d.DS[0].Local.Data.AddressBits -= std::uint64_t{1} << 32; }},
    {"past the region", VIP_STATUS_PROTECTION_ERROR,
     [](VIP_DESCRIPTOR& d) {
       d.DS[0].Local.Length = 0x7fffffff;
       d.CS.Length = 0x7fffffff;
     }},
    {"past the end of memory", VIP_STATUS_PROTECTION_ERROR,
     [](VIP_DESCRIPTOR& d) { d.DS[0].Local.Data.AddressBits = ~std::uint64_t{0} - 2; }},
    {"a length that is not the sum", VIP_STATUS_LENGTH_ERROR,
     [](VIP_DESCRIPTOR& d) { d.CS.Length += 1; }},
    {"more than MaxTransferSize", VIP_STATUS_LENGTH_ERROR,
     [](VIP_DESCRIPTOR& d) { d.CS.Length = d.DS[0].Local.Length = 32769; }},
};

// Receives may be larger than the messages, and than the memory that is registered.
bool is_of_receives(const Fault& fault) {
  return fault.bits != VIP_STATUS_LENGTH_ERROR && std::string_view(fault.name) != "past the region";
}

// It completes in its place with the bit that says why, and everything behind it is flushed.
TEST_F(Errors, EachFaultHasItsBit) {
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(fault.name);
    both();
    for (std::size_t i = 0; i < 3; ++i) post_receive(b, memory->message(100 + i, 5000, 100));
    Fabric::get().hold();
    VIP_DESCRIPTOR* const before = memory->send(0, 0, "before");
    VIP_DESCRIPTOR* const bad = memory->send(1, 100, "bad");
    VIP_DESCRIPTOR* const behind = memory->send(2, 200, "behind");
    fault.make(*bad);
    post_send(a, before);
    post_send(a, bad);
    post_send(a, behind);
    EXPECT_EQ(state(a), VIP_STATE_CONNECTED);
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_EQ(VipSendDone(a, &d), VIP_NOT_DONE);
    Fabric::get().release();
    expect_sent(a, before);
    expect_send_error(a, bad, fault.bits);
    expect_send_error(a, behind, VIP_STATUS_DESC_FLUSHED_ERROR);
    EXPECT_EQ(state(a), VIP_STATE_ERROR);
    expect_received(b, memory->descriptor(100));
    EXPECT_EQ(memory->text(5000, 6), "before");
    EXPECT_EQ(VipRecvDone(b, &d), VIP_NOT_DONE) << "only one message was sent";
  }
}

TEST_F(Errors, FaultyReceives) {
  for (const Fault& fault : kFaults) {
    if (!is_of_receives(fault)) continue;
    SCOPED_TRACE(fault.name);
    both();
    VIP_DESCRIPTOR* const before = memory->message(0, 5000, 100);
    VIP_DESCRIPTOR* const bad = memory->message(1, 5000, 100);
    VIP_DESCRIPTOR* const behind = memory->message(2, 5000, 100);
    fault.make(*bad);
    post_receive(b, before);
    post_receive(b, bad);
    post_receive(b, behind);
    post_send(a, memory->send(3, 0, "x"));
    expect_sent(a, memory->descriptor(3));
    expect_received(b, before);
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_EQ(VipRecvDone(b, &d), VIP_NOT_DONE) << "no message has met it";
    EXPECT_EQ(state(b), VIP_STATE_CONNECTED);
    std::memset(memory->data(5000), '.', 100);
    meet(bad, fault.bits);
    expect_receive_error(b, behind, VIP_STATUS_DESC_FLUSHED_ERROR);
    EXPECT_EQ(memory->text(5000, 2), "..");
  }
}

// Posted before there is a connection, it waits for one as the others do.
TEST_F(Errors, FaultyReceivesPostedInIdle) {
  for (const Fault& fault : kFaults) {
    if (!is_of_receives(fault)) continue;
    SCOPED_TRACE(fault.name);
    a = make_vi();
    b = make_vi();
    VIP_DESCRIPTOR* const bad = memory->message(1, 5000, 100);
    VIP_DESCRIPTOR* const behind = memory->message(2, 5000, 100);
    fault.make(*bad);
    post_receive(b, bad);
    post_receive(b, behind);
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_EQ(VipRecvDone(b, &d), VIP_NOT_DONE);
    connect(a, b);
    EXPECT_EQ(state(b), VIP_STATE_CONNECTED);
    meet(bad, fault.bits);
    expect_receive_error(b, behind, VIP_STATUS_DESC_FLUSHED_ERROR);
  }
}

// Programs post a length that is larger than what they have registered: what counts is what the
// messages take.
TEST_F(Errors, ReceivesBeyondTheRegion) {
  char* const end = memory->base() + memory->bytes();
  const auto beyond = [&](std::size_t i, std::size_t inside) {
    VIP_DESCRIPTOR* const d = memory->message(i, 0, 65536);
    d->DS[0].Local.Data.Address = end - inside;
    return d;
  };
  for (const bool in_idle : {true, false}) {
    a = make_vi();
    b = make_vi();
    if (!in_idle) connect(a, b);
    VIP_DESCRIPTOR* const fits = beyond(0, 5);
    VIP_DESCRIPTOR* const second = memory->message(1, 1000, 3);  // the second of two is too long
    second->CS.SegCount = 2;
    second->DS[1].Local = beyond(2, 2)->DS[0].Local;
    VIP_DESCRIPTOR* const too_short = beyond(2, 4);
    for (VIP_DESCRIPTOR* const d : {fits, second, too_short}) post_receive(b, d);
    if (in_idle) connect(a, b);
    for (std::size_t i = 0; i < 2; ++i) {
      VIP_DESCRIPTOR* const send = memory->send(10, 0, "12345");
      post_send(a, send);
      expect_sent(a, send);
      expect_received(b, i == 0 ? fits : second);
      EXPECT_EQ((i == 0 ? fits : second)->CS.Length, 5u);
      EXPECT_EQ(std::string_view(end - (i == 0 ? 5 : 2), i == 0 ? 5 : 2), i == 0 ? "12345" : "45");
    }
    EXPECT_EQ(memory->text(1000, 3), "123");
    meet(too_short, VIP_STATUS_PROTECTION_ERROR, "12345");
  }
}

// An error is reported; the connection goes on.
TEST_F(Errors, FaultsOfAnUnreliableVi) {
  both(VIP_SERVICE_UNRELIABLE);
  post_receive(b, memory->message(100, 5000, 100));
  VIP_DESCRIPTOR* const bad = memory->send(0, 0, "bad");
  bad->DS[0].Local.Handle = 0;
  VIP_DESCRIPTOR* const read = memory->rdma(1, VIP_CONTROL_OP_RDMAREAD, 0, 1, memory->data(), 1);
  VIP_DESCRIPTOR* const behind = memory->send(2, 200, "behind");
  post_send(a, bad);
  post_send(a, read);
  post_send(a, behind);
  expect_send_error(a, bad, VIP_STATUS_PROTECTION_ERROR);
  expect_send_error(a, read, VIP_STATUS_FORMAT_ERROR);
  expect_sent(a, behind);
  expect_received(b, memory->descriptor(100));
  EXPECT_EQ(state(a), VIP_STATE_CONNECTED);
}

// What meets no receive, or one that is too small, is dropped; the connection goes on.
TEST_F(Errors, UnreliableMessagesAreDropped) {
  both(VIP_SERVICE_UNRELIABLE);
  VIP_DESCRIPTOR* const send = memory->send(0, 0, "dropped");
  post_send(a, send);
  expect_sent(a, send);
  expect_receive_queue_empty(b);
  for (std::size_t i = 0; i < 3; ++i) post_receive(b, memory->message(100 + i, 1000 * i, 3));
  post_send(a, send);
  expect_sent(a, send);
  expect_receive_error(b, memory->descriptor(100), VIP_STATUS_LENGTH_ERROR);
  // Its queue pair has failed, and has recovered: receives that were posted wait on.
  VIP_DESCRIPTOR* d = nullptr;
  for (int tries = 0; tries < 1000 && d == nullptr; ++tries) {
    post_send(a, memory->send(1, 100, "yes"));
    expect_sent(a, memory->descriptor(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_NE(VipRecvDone(b, &d), VIP_DESCRIPTOR_ERROR);
  }
  EXPECT_EQ(d, memory->descriptor(101));
  EXPECT_EQ(memory->text(1000, 3), "yes");
  EXPECT_EQ(state(a), VIP_STATE_CONNECTED);
  EXPECT_EQ(state(b), VIP_STATE_CONNECTED);
  disconnect(b);
  expect_receive_error(b, memory->descriptor(102), VIP_STATUS_DESC_FLUSHED_ERROR);
}

// What each side counts, so that both together know what was dropped.
TEST_F(Errors, UnreliableMessagesAreCounted) {
  both(VIP_SERVICE_UNRELIABLE);
  post_receive(a, memory->message(110, 5000, 8));
  for (std::size_t i = 0; i < 2; ++i) post_receive(b, memory->message(100 + i, 1000 * i, 8));
  for (std::size_t i = 0; i < 5; ++i) post_send(a, memory->send(i, 4000, "x"));
  // Uses no receive, so it is no message.
  post_send(
      a, memory->rdma(6, VIP_CONTROL_OP_RDMAWRITE, 4000, 8, memory->data(2000), memory->handle()));
  for (std::size_t i = 7; i < 10; ++i) post_send(b, memory->send(i, 3000, "y"));
  for (const bool ended : {false, true}) {
    EXPECT_EQ(Vi::find(a)->tally(), (Tally{.received = 1, .sent = 5}));
    EXPECT_EQ(Vi::find(b)->tally(), (Tally{.received = 2, .sent = 3}));
    if (!ended) Vi::find(a)->delivered(Vi::find(b)->tally());
    if (!ended) disconnect(b);
  }
}

// What is under way is lost then, in both directions; nothing else happens.
TEST_F(Errors, UnreliableQueuePairThatFails) {
  both(VIP_SERVICE_UNRELIABLE);
  post_receive(a, memory->message(100, 1000, 10));
  Fabric::get().hold();
  for (std::size_t i = 0; i < 2; ++i) post_send(a, memory->send(i, 0, "x"));
  Vi::find(a)->queue_pair()->fail();
  Fabric::get().release();
  for (std::size_t i = 0; i < 2; ++i) expect_sent(a, memory->descriptor(i));
  VIP_DESCRIPTOR* d = nullptr;
  for (int tries = 0; tries < 1000 && d == nullptr; ++tries) {
    post_send(b, memory->send(2, 300, "z"));
    expect_sent(b, memory->descriptor(2));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_NE(VipRecvDone(a, &d), VIP_DESCRIPTOR_ERROR);
  }
  EXPECT_EQ(d, memory->descriptor(100));
  EXPECT_EQ(state(a), VIP_STATE_CONNECTED);
  EXPECT_EQ(state(b), VIP_STATE_CONNECTED);
}

// A device that cannot drop messages has no such VIs.
TEST_F(Errors, NoUnreliableVisWithoutTheDevice) {
  Fabric::get().limits.unreliable = false;
  const VIP_NIC_HANDLE without = open();
  Fabric::get().limits.unreliable = true;
  VIP_NIC_ATTRIBUTES attributes{};
  ASSERT_EQ(VipQueryNic(without, &attributes), VIP_SUCCESS);
  EXPECT_EQ(attributes.ReliabilityLevelSupport,
            VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION);
  VIP_VI_ATTRIBUTES wanted = vi_attributes(VIP_SERVICE_UNRELIABLE);
  VIP_VI_HANDLE vi = nullptr;
  EXPECT_EQ(VipCreateVi(without, &wanted, nullptr, nullptr, &vi), VIP_INVALID_RELIABILITY_LEVEL);
}

TEST_F(Errors, NoReceivePosted) {
  for (const auto& [level, bits] :
       {std::pair(VIP_SERVICE_RELIABLE_DELIVERY, VIP_STATUS_TRANSPORT_ERROR),
        std::pair(VIP_SERVICE_RELIABLE_RECEPTION, VIP_STATUS_REMOTE_DESC_ERROR)}) {
    both(static_cast<VIP_RELIABILITY_LEVEL>(level));
    VIP_DESCRIPTOR* const send = memory->send(0, 0, "x");
    post_send(a, send);
    expect_send_error(a, send, static_cast<std::uint32_t>(bits));
    EXPECT_EQ(state(a), VIP_STATE_ERROR);
  }
}

TEST_F(Errors, MessageTooLong) {
  both();
  VIP_DESCRIPTOR* const receive = memory->message(1, 1000, 3);
  VIP_DESCRIPTOR* const next = memory->message(2, 2000, 3);
  post_receive(b, receive);
  post_receive(b, next);
  VIP_DESCRIPTOR* const send = memory->send(0, 0, "long");
  post_send(a, send);
  expect_send_error(a, send, VIP_STATUS_REMOTE_DESC_ERROR);
  expect_receive_error(b, receive, VIP_STATUS_LENGTH_ERROR);
  expect_receive_error(b, next, VIP_STATUS_DESC_FLUSHED_ERROR);
  EXPECT_EQ(state(a), VIP_STATE_ERROR);
  EXPECT_EQ(state(b), VIP_STATE_ERROR);
}

TEST_F(Errors, RdmaBeyondRights) {
  const Memory closed(nic, nullptr);
  for (const std::uint16_t operation : {VIP_CONTROL_OP_RDMAWRITE, VIP_CONTROL_OP_RDMAREAD}) {
    for (const auto& [key, at] :
         {std::pair(closed.handle(), closed.data()), std::pair(memory->handle(), closed.data()),
          std::pair(memory->handle() + 1, memory->data())}) {
      both();
      VIP_DESCRIPTOR* const d = memory->rdma(0, operation, 0, 8, at, key);
      post_send(a, d);
      expect_send_error(a, d, VIP_STATUS_RDMA_PROT_ERROR);
      EXPECT_EQ(state(a), VIP_STATE_ERROR);
    }
  }
  // The VI itself allows none.
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  attributes.EnableRdmaWrite = attributes.EnableRdmaRead = VIP_FALSE;
  for (const std::uint16_t operation : {VIP_CONTROL_OP_RDMAWRITE, VIP_CONTROL_OP_RDMAREAD}) {
    const VIP_VI_HANDLE from = make_vi();
    connect(from, make_vi(nullptr, nullptr, attributes));
    VIP_DESCRIPTOR* const d = memory->rdma(0, operation, 0, 8, memory->data(100), memory->handle());
    post_send(from, d);
    expect_send_error(from, d, VIP_STATUS_RDMA_PROT_ERROR);
  }
}

// The connection breaks in the middle of VipPostRecv: the device flushes what it has before it has
// this.
TEST_F(Errors, ReceiveThatComesTooLateForTheFlush) {
  both();
  Fabric::get().forgets_late_receives = true;
  post_receive(b, memory->message(0, 0, 8));
  Fabric::get().before_receive = [&] {
    Vi::find(b)->on_connection_lost(CloseReason::disconnected);
  };
  post_receive(b, memory->message(1, 0, 8));
  expect_receive_error(b, memory->descriptor(0), VIP_STATUS_DESC_FLUSHED_ERROR);
  expect_receive_error(b, memory->descriptor(1), VIP_STATUS_DESC_FLUSHED_ERROR);
}

TEST_F(Errors, DeviceRefusesAPost) {
  both();
  Fabric::get().broken_posts = true;
  VIP_DESCRIPTOR* const send = memory->send(0, 0, "x");
  post_send(a, send);
  Fabric::get().broken_posts = false;
  expect_send_error(a, send, VIP_STATUS_TRANSPORT_ERROR);
  EXPECT_EQ(state(a), VIP_STATE_ERROR);
}

// ---- tags ----

TEST_F(Errors, TagsMustBeEqual) {
  VIP_PROTECTION_HANDLE first = nullptr, second = nullptr;
  ASSERT_EQ(VipCreatePtag(nic, &first), VIP_SUCCESS);
  ASSERT_EQ(VipCreatePtag(nic, &second), VIP_SUCCESS);
  VIP_MEM_ATTRIBUTES of_first{first, VIP_TRUE, VIP_TRUE}, of_second{second, VIP_TRUE, VIP_TRUE};
  const Memory memory1(nic, &of_first), memory2(nic, &of_second);
  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  attributes.Ptag = second;
  const auto pair = [&] {
    a = make_vi(nullptr, nullptr, attributes);
    b = make_vi(nullptr, nullptr, attributes);
    connect(a, b);
  };
  // A descriptor under another tag.
  pair();
  VIP_DESCRIPTOR* const in_first = memory1.send(0, 0, "x");
  ASSERT_EQ(VipPostSend(a, in_first, memory1.handle()), VIP_SUCCESS);
  expect_send_error(a, in_first, VIP_STATUS_PROTECTION_ERROR);
  // Data under another tag.
  pair();
  VIP_DESCRIPTOR* const in_second = memory2.send(0, 0, "x");
  in_second->DS[0].Local.Data.Address = memory1.data();
  in_second->DS[0].Local.Handle = memory1.handle();
  ASSERT_EQ(VipPostSend(a, in_second, memory2.handle()), VIP_SUCCESS);
  expect_send_error(a, in_second, VIP_STATUS_PROTECTION_ERROR);
  // The target of RDMA under another tag: the other side's device refuses.
  pair();
  VIP_DESCRIPTOR* const write =
      memory2.rdma(1, VIP_CONTROL_OP_RDMAWRITE, 0, 8, memory1.data(), memory1.handle());
  ASSERT_EQ(VipPostSend(a, write, memory2.handle()), VIP_SUCCESS);
  expect_send_error(a, write, VIP_STATUS_RDMA_PROT_ERROR);
  // The right one.
  pair();
  VIP_DESCRIPTOR* const right =
      memory2.rdma(1, VIP_CONTROL_OP_RDMAWRITE, 0, 8, memory2.data(100), memory2.handle());
  ASSERT_EQ(VipPostSend(a, right, memory2.handle()), VIP_SUCCESS);
  expect_sent(a, right);
}

// VIs without a tag use memory of the first tag, and the reverse.
TEST_F(Errors, NoTagIsTheFirstTag) {
  VIP_PROTECTION_HANDLE tag = nullptr;
  ASSERT_EQ(VipCreatePtag(nic, &tag), VIP_SUCCESS);
  VIP_MEM_ATTRIBUTES of_tag{tag, VIP_TRUE, VIP_TRUE};
  const Memory tagged(nic, &of_tag);
  both();
  VIP_DESCRIPTOR* const receive = tagged.message(0, 0, 10);
  ASSERT_EQ(VipPostRecv(b, receive, tagged.handle()), VIP_SUCCESS);
  VIP_DESCRIPTOR* const send = tagged.send(1, 100, "hello");
  ASSERT_EQ(VipPostSend(a, send, tagged.handle()), VIP_SUCCESS);
  expect_sent(a, send);
  expect_received(b, receive);

  VIP_VI_ATTRIBUTES attributes = vi_attributes();
  attributes.Ptag = tag;
  const VIP_VI_HANDLE with_tag = make_vi(nullptr, nullptr, attributes);
  post_receive(with_tag, memory->message(2, 0, 10));
  VIP_DESCRIPTOR* d = nullptr;
  EXPECT_EQ(VipRecvDone(with_tag, &d), VIP_NOT_DONE);
}

}  // namespace
}  // namespace viaduct::vipl::test
