// Descriptors that are wrong, connections that break, and in which order what is left comes back.
#include <thread>

#include "tests/vipl/programs/support/async_errors.hpp"
#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

namespace {

// A descriptor that is wrong: posting it is no error, its status is.
class BadDescriptors : public PairTest {
 protected:
  static constexpr std::size_t kCount = 4, kBytes = 4096;

  // What a send comes to, spoilt in this way. The level is reliable, so the VI has failed then, and
  // what was posted behind it is not executed.
  VIP_UINT32 sent(const std::function<void(VIP_DESCRIPTOR*)>& spoil, std::size_t length = 8) {
    const Vi client(a_), server(b_);
    connect(client, server);
    VIP_DESCRIPTOR* const d = out_.send(0, length);
    spoil(d);
    return failing(client, VipPostSend, next_sent, d);
  }
  // The same of a receive, which has a length only in its segments: of the message that meets it.
  // It is posted before or after connecting; the VI is connected until then.
  VIP_UINT32 received(const std::function<void(VIP_DESCRIPTOR*)>& spoil, bool in_idle = false) {
    const Vi client(a_), server(b_);
    const Memory from(b_, 1, 8);
    if (!in_idle) connect(client, server);
    VIP_DESCRIPTOR* const d = out_.receive(0, 8);
    spoil(d);
    EXPECT_VIP(VIP_SUCCESS, VipPostRecv(client, d, out_.handle()));
    VIP_DESCRIPTOR* none;
    EXPECT_VIP(VIP_NOT_DONE, VipRecvDone(client, &none));
    if (in_idle) connect(client, server);
    EXPECT_EQ(VIP_STATE_CONNECTED, client.state());
    EXPECT_VIP(VIP_SUCCESS, VipPostSend(server, from.send(0, 8), from.handle()));
    const VIP_UINT32 result = failed(client, VipPostRecv, next_received, d);
    EXPECT_EQ(from.raw(0), next_sent(server));
    EXPECT_EQ(VIP_STATUS_REMOTE_DESC_ERROR, errors(from.raw(0)));
    return result;
  }

  template <class Post, class Next>
  VIP_UINT32 failing(const Vi& vi, Post post, Next next, VIP_DESCRIPTOR* d) {
    EXPECT_VIP(VIP_SUCCESS, post(vi, d, out_.handle()));
    return failed(vi, post, next, d);
  }
  template <class Post, class Next>
  VIP_UINT32 failed(const Vi& vi, Post post, Next next, VIP_DESCRIPTOR* d) {
    EXPECT_EQ(d, next(vi));
    EXPECT_TRUE(eventually([&] { return vi.state() == VIP_STATE_ERROR; }));
    EXPECT_VIP(VIP_SUCCESS, post(vi, out_.send(1, 8), out_.handle()));
    EXPECT_EQ(out_.raw(1), next(vi));
    EXPECT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(out_.raw(1)));
    return errors(d);
  }

  Memory out_{a_, kCount, kBytes};
};

TEST_F(BadDescriptors, Format) {
  EXPECT_EQ(VIP_STATUS_FORMAT_ERROR,
            sent([](auto* d) { d->CS.Control = VIP_CONTROL_OP_RESERVED; }));
  EXPECT_EQ(VIP_STATUS_FORMAT_ERROR, sent([](auto* d) { d->CS.Control = 0x10; }));
  EXPECT_EQ(VIP_STATUS_FORMAT_ERROR, sent([](auto* d) { d->CS.Control = 0x8000; }));
  for (const VIP_UINT16 operation : {VIP_CONTROL_OP_RDMAWRITE, VIP_CONTROL_OP_RDMAREAD})
    EXPECT_EQ(VIP_STATUS_FORMAT_ERROR, sent([&](auto* d) {  // no address segment
                d->CS.Control = operation;
                d->CS.SegCount = 0;
                d->CS.Length = 0;
              }));
  EXPECT_EQ(VIP_STATUS_FORMAT_ERROR, sent([](auto* d) {  // a read brings no immediate data
              d->CS.Control = VIP_CONTROL_OP_RDMAREAD | VIP_CONTROL_IMMEDIATE;
            }));
  EXPECT_EQ(VIP_STATUS_FORMAT_ERROR, sent([&](auto* d) {
              d->CS.SegCount = static_cast<VIP_UINT16>(a_.attributes().MaxSegmentsPerDesc + 1);
            }));
  EXPECT_EQ(VIP_STATUS_FORMAT_ERROR,
            received([](auto* d) { d->CS.Control = VIP_CONTROL_OP_RDMAWRITE; }));
  EXPECT_EQ(VIP_STATUS_FORMAT_ERROR, received([](auto* d) { d->CS.Control = 0x100; }));
  EXPECT_EQ(VIP_STATUS_FORMAT_ERROR, received([&](auto* d) {
              d->CS.SegCount = static_cast<VIP_UINT16>(a_.attributes().MaxSegmentsPerDesc + 1);
            }));
}

TEST_F(BadDescriptors, Protection) {
  const Ptag first(a_), other(a_);  // the first one goes with NULL
  const Memory elsewhere(a_, 1, 64, memory_attributes(other));
  const std::function<void(VIP_DESCRIPTOR*)> spoilers[] = {
      [](auto* d) { d->DS[0].Local.Handle = 0; },
      [](auto* d) { d->DS[0].Local.Handle ^= 0x00550000; },
      [](auto* d) { d->DS[0].Local.Data.Address = nullptr; },
      [&](auto* d) { d->DS[0].Local.Data.Address = out_.base() - 1; },
      // Of these eight bytes the last is outside; the message of eight takes it.
      [&](auto* d) { d->DS[0].Local.Data.Address = out_.base() + out_.size() - 7; },
      [&](auto* d) { d->DS[0].Local.Data.AddressBits = ~VIP_UINT64{0} - 3; },  // wraps around
      [&](auto* d) {
        d->DS[0].Local.Handle = elsewhere.handle();
        d->DS[0].Local.Data.Address = elsewhere.buffer(0);
      },
      [&](auto* d) {  // the second of two segments
        d->DS[0].Local.Length = 4;
        d->DS[1] = d->DS[0];
        d->DS[1].Local.Handle = 0;
        d->CS.SegCount = 2;
      }};
  for (const auto& spoil : spoilers) {
    const auto number = &spoil - spoilers;
    EXPECT_EQ(VIP_STATUS_PROTECTION_ERROR, sent(spoil)) << number;
    EXPECT_EQ(VIP_STATUS_PROTECTION_ERROR, received(spoil)) << number;
    EXPECT_EQ(VIP_STATUS_PROTECTION_ERROR, received(spoil, true)) << number;
  }
}

// Programs post 64 KiB on smaller buffers: what counts is what the messages take.
TEST_F(BadDescriptors, ReceivesBeyondTheRegionTakeWhatFits) {
  for (const bool in_idle : {true, false}) {
    const Vi client(a_), server(b_);
    const Memory from(b_, 2, 8);
    if (!in_idle) connect(client, server);
    VIP_DESCRIPTOR* const receive[] = {out_.receive(0, 65536), out_.receive(1, 65536)};
    receive[0]->DS[0].Local.Data.Address = out_.base() + out_.size() - 8;
    receive[1]->CS.SegCount = 2;  // three bytes, and the rest behind them
    receive[1]->DS[0].Local.Length = 3;
    receive[1]->DS[1].Local = receive[0]->DS[0].Local;
    for (VIP_DESCRIPTOR* const d : receive)
      ASSERT_VIP(VIP_SUCCESS, VipPostRecv(client, d, out_.handle()));
    if (in_idle) connect(client, server);
    from.fill(0, "01234567");
    for (VIP_DESCRIPTOR* const d : receive) {
      ASSERT_VIP(VIP_SUCCESS, VipPostSend(server, from.send(0, 8), from.handle()));
      EXPECT_EQ(from.raw(0), next_sent(server));
      ASSERT_EQ(d, next_received(client));
      EXPECT_EQ(8u, d->CS.Length);
      const auto* const end = reinterpret_cast<const char*>(out_.base() + out_.size());
      EXPECT_EQ(d == receive[0] ? "01234567" : "34567",
                (d == receive[0] ? std::string(end - 8, 8) : std::string(end - 8, 5)));
    }
    EXPECT_EQ("012", out_.text(1, 3));
    EXPECT_EQ(VIP_STATE_CONNECTED, client.state());
  }
}

TEST_F(BadDescriptors, Length) {
  EXPECT_EQ(VIP_STATUS_LENGTH_ERROR, sent([](auto* d) { d->CS.Length = 9; }));
  EXPECT_EQ(VIP_STATUS_LENGTH_ERROR, sent([](auto* d) { d->CS.Length = 7; }));
  EXPECT_EQ(VIP_STATUS_LENGTH_ERROR, sent([](auto* d) { d->CS.SegCount = 0; }));
}

TEST_F(BadDescriptors, LongerThanTheViAllows) {
  VIP_VI_ATTRIBUTES small = vi_attributes();
  small.MaxTransferSize = 100;
  const Memory in(b_, 2, kBytes);
  const Vi client(a_, small), server(b_, small);
  connect(client, server);
  for (std::size_t i = 0; i < 2; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in.receive(i, kBytes), in.handle()));
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out_.send(0, 100), out_.handle()));
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out_.send(1, 101), out_.handle()));
  EXPECT_EQ(out_.raw(0), next_sent(client));
  EXPECT_EQ(0u, errors(out_.raw(0)));
  EXPECT_EQ(out_.raw(1), next_sent(client));
  EXPECT_EQ(VIP_STATUS_LENGTH_ERROR, errors(out_.raw(1)));
}

// The descriptor itself: not where a descriptor can be, in no registered memory, in memory of
// another tag, or with segments past the end of that memory.
TEST_F(BadDescriptors, WhereTheDescriptorIs) {
  const Ptag first(a_), other(a_);
  const Memory elsewhere(a_, 1, 64, memory_attributes(other));
  const Vi vi(a_);
  alignas(64) static VIP_DESCRIPTOR unregistered{};
  const auto off = reinterpret_cast<VIP_DESCRIPTOR*>(out_.base() + 8);
  for (const auto post : {VipPostSend, VipPostRecv}) {
    EXPECT_VIP(VIP_INVALID_PARAMETER, post(vi, nullptr, out_.handle()));
    EXPECT_VIP(VIP_INVALID_PARAMETER, post(vi, off, out_.handle()));
    EXPECT_VIP(VIP_INVALID_PARAMETER, post(vi, &unregistered, out_.handle()));
    EXPECT_VIP(VIP_INVALID_PARAMETER, post(vi, out_.send(0, 8), 0));
    EXPECT_VIP(VIP_INVALID_PARAMETER, post(vi, out_.send(0, 8), out_.handle() ^ 0x00550000));
  }
  const auto sent_from = [&](VIP_DESCRIPTOR* d, VIP_MEM_HANDLE memory) {
    const Vi client(a_), server(b_);
    connect(client, server);
    EXPECT_VIP(VIP_SUCCESS, VipPostSend(client, d, memory));
    EXPECT_EQ(d, next_sent(client));
    return errors(d);
  };
  EXPECT_EQ(VIP_STATUS_PROTECTION_ERROR, sent_from(elsewhere.send(0, 0), elsewhere.handle()));
  auto* const at_the_end =
      reinterpret_cast<VIP_DESCRIPTOR*>(out_.base() + out_.size() - sizeof(VIP_DESCRIPTOR));
  *at_the_end = {};
  at_the_end->CS.SegCount = 3;  // two fit
  EXPECT_EQ(VIP_STATUS_PROTECTION_ERROR, sent_from(at_the_end, out_.handle()));
}

// A wrong descriptor completes in its turn, not before those posted earlier.
TEST_F(BadDescriptors, CompleteInTurn) {
  const Vi client(a_), server(b_);
  const Memory in(b_, 1, kBytes);
  connect(client, server);
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in.receive(0, kBytes), in.handle()));
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out_.send(0, kBytes), out_.handle()));
  VIP_DESCRIPTOR* const bad = out_.send(1, 8);
  bad->CS.Control = VIP_CONTROL_OP_RESERVED;
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, bad, out_.handle()));
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out_.send(2, 8), out_.handle()));
  EXPECT_EQ(out_.raw(0), next_sent(client));
  EXPECT_EQ(0u, errors(out_.raw(0)));
  EXPECT_EQ(bad, next_sent(client));
  EXPECT_EQ(VIP_STATUS_FORMAT_ERROR, errors(bad));
  EXPECT_EQ(out_.raw(2), next_sent(client));
  EXPECT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(out_.raw(2)));
  EXPECT_EQ(in.raw(0), next_received(server));
}

// On the unreliable level the connection goes on.
TEST_F(BadDescriptors, DoNotBreakAnUnreliableConnection) {
  const Vi client(a_, vi_attributes(VIP_SERVICE_UNRELIABLE)),
      server(b_, vi_attributes(VIP_SERVICE_UNRELIABLE));
  const Memory in(b_, 1, kBytes);
  connect(client, server);
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in.receive(0, kBytes), in.handle()));
  VIP_DESCRIPTOR* const bad = out_.send(0, 8);
  bad->DS[0].Local.Handle = 0;
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, bad, out_.handle()));
  EXPECT_EQ(bad, next_sent(client));
  EXPECT_EQ(VIP_STATUS_PROTECTION_ERROR, errors(bad));
  EXPECT_EQ(VIP_STATE_CONNECTED, client.state());
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out_.send(1, 8), out_.handle()));
  EXPECT_EQ(out_.raw(1), next_sent(client));
  EXPECT_EQ(0u, errors(out_.raw(1)));
  EXPECT_EQ(in.raw(0), next_received(server));
}

TEST(States, WhatIsPostedTooEarly) {
  const Nic nic(kNicNames[0]);
  const Memory memory(nic, 2, 64);
  const Vi vi(nic);
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(vi, memory.send(0, 8), memory.handle()));
  EXPECT_EQ(memory.raw(0), next_sent(vi));
  EXPECT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(memory.raw(0)));
  EXPECT_EQ(VIP_STATE_IDLE, vi.state());
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(vi, memory.receive(1, 8), memory.handle()));
  VIP_DESCRIPTOR* d;
  EXPECT_VIP(VIP_NOT_DONE, VipRecvDone(vi, &d));
  // While a connection is asked for, as before.
  Address local(nic, "x"), remote(nic, fresh_discriminator());
  ASSERT_VIP(VIP_SUCCESS, VipConnectPeerRequest(vi, local, remote, kSoon));
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(vi, memory.send(0, 8), memory.handle()));
  EXPECT_EQ(memory.raw(0), next_sent(vi));
  EXPECT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(memory.raw(0)));
  EXPECT_EQ(VIP_STATE_CONNECT_PENDING, vi.state());
}

class Breaks : public PairTest {
 protected:
  static constexpr std::size_t kCount = 8, kBytes = 4096;

  // A send that meets an empty receive queue.
  void meet_empty_queue(VIP_RELIABILITY_LEVEL level, VIP_UINT32 expected) {
    const AsyncErrors reports(b_);
    const Vi client(a_, vi_attributes(level)), server(b_, vi_attributes(level));
    connect(client, server);
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out_.send(0, 8), out_.handle()));
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out_.send(1, 8), out_.handle()));
    EXPECT_EQ(out_.raw(0), next_sent(client));
    EXPECT_EQ(expected, errors(out_.raw(0)));
    EXPECT_EQ(out_.raw(1), next_sent(client));
    EXPECT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(out_.raw(1)));
    EXPECT_EQ(VIP_STATE_ERROR, client.state());
    const auto report = reports.wait_for(server, VIP_ERROR_RECVQ_EMPTY);
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(VIP_RESOURCE_VI, report->ResourceCode);
    EXPECT_EQ(VIP_STATE_ERROR, server.state());
  }

  Memory out_{a_, kCount, kBytes}, in_{b_, kCount, kBytes};
};

TEST_F(Breaks, NothingPostedReliableDelivery) {
  meet_empty_queue(VIP_SERVICE_RELIABLE_DELIVERY, VIP_STATUS_TRANSPORT_ERROR);
}
TEST_F(Breaks, NothingPostedReliableReception) {
  meet_empty_queue(VIP_SERVICE_RELIABLE_RECEPTION, VIP_STATUS_REMOTE_DESC_ERROR);
}

// The sender waits for something else, or ends the connection without looking.
TEST_F(Breaks, NothingPostedAndNobodyLooks) {
  for (const bool disconnects : {false, true}) {
    const AsyncErrors reports(b_);
    const Vi client(a_), server(b_);
    connect(client, server);
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out_.send(0, 8), out_.handle()));
    if (disconnects) {
      std::this_thread::sleep_for(std::chrono::milliseconds{20});  // it has failed by then
      EXPECT_VIP(VIP_SUCCESS, VipDisconnect(client));
    }
    EXPECT_TRUE(reports.wait_for(server, VIP_ERROR_RECVQ_EMPTY).has_value());
    EXPECT_EQ(disconnects ? VIP_STATE_IDLE : VIP_STATE_ERROR, client.state());
    EXPECT_EQ(out_.raw(0), next_sent(client));
    EXPECT_EQ(VIP_STATUS_TRANSPORT_ERROR, errors(out_.raw(0)));
  }
}

// Messages are dropped, the connection goes on: first nothing is posted, then too little.
TEST_F(Breaks, UnreliableMessagesAreDropped) {
  const AsyncErrors reports(b_);
  const Vi client(a_, vi_attributes(VIP_SERVICE_UNRELIABLE)),
      server(b_, vi_attributes(VIP_SERVICE_UNRELIABLE));
  connect(client, server);
  const auto send = [&](std::size_t length, std::string_view text) {
    out_.fill(0, text);
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out_.send(0, length), out_.handle()));
    EXPECT_EQ(out_.raw(0), next_sent(client));
    EXPECT_EQ(0u, errors(out_.raw(0)));
  };
  for (int i = 0; i < 3; ++i) send(kBytes, "to nobody");
  std::this_thread::sleep_for(std::chrono::milliseconds{kMoment});
  VIP_DESCRIPTOR* d;
  EXPECT_VIP(VIP_DESCRIPTOR_ERROR, VipRecvDone(server, &d));
  EXPECT_EQ(nullptr, d);
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in_.receive(i, 99), in_.handle()));
  send(99, "fits");
  EXPECT_EQ(in_.raw(0), next_received(server));
  EXPECT_EQ("fits", in_.text(0, 4));
  send(100, "does not");
  EXPECT_EQ(in_.raw(1), next_received(server));
  EXPECT_EQ(VIP_STATUS_LENGTH_ERROR, errors(in_.raw(1)));
  // What comes meanwhile may be lost.
  EXPECT_TRUE(eventually([&] {
    send(5, "again");
    return VipRecvDone(server, &d) == VIP_SUCCESS;
  }));
  EXPECT_EQ(in_.raw(2), d);
  EXPECT_EQ("again", in_.text(2, 5));
  EXPECT_EQ(VIP_STATE_CONNECTED, client.state());
  EXPECT_EQ(VIP_STATE_CONNECTED, server.state());
  EXPECT_TRUE(reports.all().empty());
}

// ... and both sides know how many, whichever disconnects first and ends at once.
TEST_F(Breaks, UnreliableDropsAreCounted) {
  for (const bool client_first : {true, false}) {
    ::setenv("VIADUCT_VIPL_STATS", "on", 1);
    auto there = std::make_unique<Nic>(kNicNames[1]), here = std::make_unique<Nic>(kNicNames[0]);
    ::unsetenv("VIADUCT_VIPL_STATS");
    auto server = std::make_unique<Vi>(*there, vi_attributes(VIP_SERVICE_UNRELIABLE));
    auto client = std::make_unique<Vi>(*here, vi_attributes(VIP_SERVICE_UNRELIABLE));
    connect(*client, *server);
    {
      const Memory out(*here, 1, 64), in(*there, 1, 64);
      for (int i = 0; i < 4; ++i) {
        if (i == 3) {
          std::this_thread::sleep_for(std::chrono::milliseconds{kMoment});
          ASSERT_VIP(VIP_SUCCESS, VipPostRecv(*server, in.receive(0, 64), in.handle()));
        }
        ASSERT_VIP(VIP_SUCCESS, VipPostSend(*client, out.send(0, 8), out.handle()));
        ASSERT_EQ(out.raw(0), next_sent(*client));
      }
      ASSERT_EQ(in.raw(0), next_received(*server));
    }
    testing::internal::CaptureStderr();
    auto& first = client_first ? client : server;
    auto& second = client_first ? server : client;
    first.reset();
    (client_first ? here : there).reset();
    EXPECT_TRUE(eventually([&] { return second->state() == VIP_STATE_ERROR; }));
    second.reset();
    (client_first ? there : here).reset();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(std::string::npos,
              said.find("rxe1: unreliable VIs: 3 of 4 messages sent were dropped, 0 of 0 sent to "
                        "here; 0 connections"))
        << said;
    EXPECT_NE(std::string::npos,
              said.find("rxe2: unreliable VIs: 0 of 0 messages sent were dropped, 3 of 4 sent to "
                        "here; 0 connections"))
        << said;
  }
}

TEST_F(Breaks, MessageLongerThanTheReceive) {
  const Vi client(a_), server(b_);
  connect(client, server);
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in_.receive(0, 99), in_.handle()));
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in_.receive(1, kBytes), in_.handle()));
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out_.send(0, 100), out_.handle()));
  EXPECT_EQ(out_.raw(0), next_sent(client));
  EXPECT_EQ(VIP_STATUS_REMOTE_DESC_ERROR, errors(out_.raw(0)));
  EXPECT_EQ(in_.raw(0), next_received(server));
  EXPECT_EQ(VIP_STATUS_LENGTH_ERROR, errors(in_.raw(0)));
  EXPECT_EQ(in_.raw(1), next_received(server));
  EXPECT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(in_.raw(1)));
  EXPECT_EQ(VIP_STATE_ERROR, client.state());
  EXPECT_EQ(VIP_STATE_ERROR, server.state());
}

// Everything on both queues comes back, oldest first, and the VI stays in error until its program
// disconnects it.
TEST_F(Breaks, TheOtherSideDisconnects) {
  const AsyncErrors reports(b_);
  const Vi client(a_), server(b_);
  for (std::size_t i = 0; i < kCount; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in_.receive(i, kBytes), in_.handle()));
  connect(client, server);
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(client));
  const auto report = reports.wait_for(server, VIP_ERROR_CONN_LOST);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(VIP_RESOURCE_VI, report->ResourceCode);
  EXPECT_EQ(static_cast<VIP_NIC_HANDLE>(b_), report->NicHandle);
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(in_.raw(i), next_received(server));
    EXPECT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(in_.raw(i)));
    EXPECT_EQ(VIP_STATUS_OP_RECEIVE, operation(in_.raw(i)));
  }
  VIP_DESCRIPTOR* d;
  EXPECT_VIP(VIP_DESCRIPTOR_ERROR, VipRecvDone(server, &d));
  EXPECT_EQ(nullptr, d);
  EXPECT_EQ(VIP_STATE_ERROR, server.state());
  // What is posted now comes back at once.
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(server, in_.send(0, 8), in_.handle()));
  EXPECT_EQ(in_.raw(0), next_sent(server));
  EXPECT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(in_.raw(0)));
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in_.receive(0, 8), in_.handle()));
  EXPECT_EQ(in_.raw(0), next_received(server));
  EXPECT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(in_.raw(0)));
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(server));
  EXPECT_EQ(VIP_STATE_IDLE, server.state());
}

// Who takes the last message and disconnects at once: it was delivered, so it was sent, whether or
// not the acknowledgement was faster than the end of the connection.
TEST_F(Breaks, DisconnectAfterTheLastMessage) {
  constexpr int kRounds = 40;
  const Vi client(a_), server(b_);
  int flushed = 0;
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in_.receive(0, kBytes), in_.handle()));
    connect(client, server);
    std::thread receiver([&] {
      EXPECT_EQ(in_.raw(0), next_received(server));
      EXPECT_VIP(VIP_SUCCESS, VipDisconnect(server));
    });
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out_.send(0, kBytes), out_.handle()));
    receiver.join();
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_NE(VIP_TIMEOUT, VipSendWait(client, kSoon, &d));
    ASSERT_EQ(out_.raw(0), d);
    if (errors(d) != 0) ++flushed;
    EXPECT_VIP(VIP_SUCCESS, VipDisconnect(client));
  }
  EXPECT_EQ(0, flushed) << "of " << kRounds;
}

// Nobody is told of the end of his own connection.
TEST_F(Breaks, WhoDisconnectsIsNotTold) {
  const AsyncErrors reports(a_);
  const Vi client(a_), server(b_);
  connect(client, server);
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(client));
  EXPECT_TRUE(eventually([&] { return server.state() == VIP_STATE_ERROR; }));
  std::this_thread::sleep_for(std::chrono::milliseconds{kMoment});
  EXPECT_TRUE(reports.all().empty());
}

// Flushed descriptors stay until they are taken, in front of those of the next connection.
TEST_F(Breaks, DisconnectFlushesAndReconnectGoesOn) {
  const Vi client(a_), server(b_);
  connect(client, server);
  for (std::size_t i = 0; i < 3; ++i)
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in_.receive(i, kBytes), in_.handle()));
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(server));
  EXPECT_EQ(VIP_STATE_IDLE, server.state());
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(client));
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in_.receive(3, kBytes), in_.handle()));
  connect(client, server);
  out_.fill(0, "second");
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, out_.send(0, 6), out_.handle()));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(in_.raw(i), next_received(server));
    EXPECT_EQ(VIP_STATUS_DESC_FLUSHED_ERROR, errors(in_.raw(i)));
  }
  EXPECT_EQ(in_.raw(3), next_received(server));
  EXPECT_EQ(0u, errors(in_.raw(3)));
  EXPECT_EQ("second", in_.text(3, 6));
  EXPECT_EQ(out_.raw(0), next_sent(client));
}

TEST_F(Breaks, WaitEndsWhenTheConnectionDoes) {
  const Vi client(a_), server(b_);
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server, in_.receive(0, kBytes), in_.handle()));
  connect(client, server);
  std::thread waiting([&] {
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_VIP(VIP_DESCRIPTOR_ERROR, VipRecvWait(server, VIP_INFINITE, &d));
    EXPECT_EQ(in_.raw(0), d);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds{kMoment});
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(client));
  waiting.join();
}

}  // namespace

}  // namespace viaduct::vipl_test
