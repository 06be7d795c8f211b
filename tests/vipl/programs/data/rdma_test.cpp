// Writing into the other side's memory, and reading from it.
#include <thread>

#include "tests/vipl/programs/support/async_errors.hpp"
#include "tests/vipl/programs/support/bed.hpp"
#include "tests/vipl/programs/support/random_writes.hpp"

namespace viaduct::vipl_test {

namespace {

VIP_VI_ATTRIBUTES with_rdma(bool write, bool read, VIP_PROTECTION_HANDLE ptag = nullptr,
                            VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY) {
  VIP_VI_ATTRIBUTES out = vi_attributes(level, ptag);
  out.EnableRdmaWrite = write;
  out.EnableRdmaRead = read;
  return out;
}

class Rdma : public PairTest {
 protected:
  static constexpr std::size_t kCount = 8, kBytes = 65536;

  // What one descriptor of the client comes to at a server with these rights.
  VIP_UINT32 outcome(const VIP_VI_ATTRIBUTES& server_attributes,
                     const VIP_MEM_ATTRIBUTES& target_attributes, VIP_UINT16 operation,
                     std::size_t offset = 0, std::size_t length = 64) {
    const Vi client(a_), server(b_, server_attributes);
    const Memory target(b_, 1, 4096, target_attributes);
    connect(client, server);
    VIP_DESCRIPTOR* const d =
        out_.rdma(0, length, operation, target.base() + offset, target.handle());
    EXPECT_VIP(VIP_SUCCESS, VipPostSend(client, d, out_.handle()));
    EXPECT_EQ(d, next_sent(client));
    return errors(d);
  }

  Memory out_{a_, kCount, kBytes};
};

class RdmaConnected : public Rdma {
 protected:
  void SetUp() override { connect(client_, server_); }
  VIP_DESCRIPTOR* post(VIP_DESCRIPTOR* d) {
    EXPECT_VIP(VIP_SUCCESS, VipPostSend(client_, d, out_.handle()));
    return d;
  }
  // Posts it and waits for it; its error bits.
  VIP_UINT32 outcome(VIP_DESCRIPTOR* d) {
    post(d);
    EXPECT_EQ(d, next_sent(client_));
    return errors(d);
  }

  Memory target_{b_, kCount, kBytes, memory_attributes(nullptr, true, true)};
  Vi client_{a_}, server_{b_, with_rdma(true, true)};
};

TEST_F(RdmaConnected, Write) {
  out_.fill(0, "written");
  VIP_DESCRIPTOR* const d =
      post(out_.rdma(0, 7, VIP_CONTROL_OP_RDMAWRITE, target_.buffer(3), target_.handle()));
  d->DS[0].Remote.Reserved = 0;
  EXPECT_EQ(d, next_sent(client_));
  EXPECT_EQ(VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_WRITE, d->CS.Status);
  EXPECT_TRUE(eventually([&] { return target_.text(3, 7) == "written"; }));
  // No descriptor of the other side was used.
  VIP_DESCRIPTOR* received;
  EXPECT_VIP(VIP_DESCRIPTOR_ERROR, VipRecvDone(server_, &received));
  EXPECT_EQ(nullptr, received);
}

TEST_F(RdmaConnected, Read) {
  target_.fill(5, "to be read");
  VIP_DESCRIPTOR* const d =
      post(out_.rdma(0, 10, VIP_CONTROL_OP_RDMAREAD, target_.buffer(5), target_.handle()));
  EXPECT_EQ(d, next_sent(client_));
  EXPECT_EQ(VIP_STATUS_DONE | VIP_STATUS_OP_RDMA_READ, d->CS.Status);
  EXPECT_EQ("to be read", out_.text(0, 10));
}

TEST_F(RdmaConnected, LongOnesOfManySegments) {
  for (std::size_t i = 0; i < kBytes; ++i) out_.buffer(0)[i] = static_cast<std::byte>(i ^ (i >> 8));
  const auto in_pieces = [&](std::size_t i, VIP_UINT16 operation) {
    VIP_DESCRIPTOR* const d = out_.rdma(i, kBytes, operation, target_.buffer(0), target_.handle());
    std::byte* at = out_.buffer(i);
    std::size_t left = kBytes;
    for (std::size_t piece = 0; piece < 5; ++piece) {
      const std::size_t length = piece == 4 ? left : 1000 + piece * 77;
      d->DS[1 + piece].Local = {{}, out_.handle(), static_cast<VIP_UINT32>(length)};
      d->DS[1 + piece].Local.Data.Address = at;
      at += length;
      left -= length;
    }
    d->CS.SegCount = 6;
    return d;
  };
  EXPECT_EQ(0u, outcome(in_pieces(0, VIP_CONTROL_OP_RDMAWRITE)));
  EXPECT_EQ(0u, outcome(in_pieces(1, VIP_CONTROL_OP_RDMAREAD)));
  EXPECT_EQ(0, std::memcmp(out_.buffer(1), out_.buffer(0), kBytes));
}

TEST_F(RdmaConnected, WriteWithImmediateData) {
  const Memory receives(b_, 2, 64);
  receives.fill(0, "as it was");
  ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server_, receives.receive(0, 64), receives.handle()));
  out_.fill(0, "data");
  VIP_DESCRIPTOR* const d = out_.rdma(0, 4, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE,
                                      target_.buffer(0), target_.handle());
  d->CS.ImmediateData = static_cast<VIP_UINT32>(-3);
  post(d);
  EXPECT_EQ(d, next_sent(client_));
  VIP_DESCRIPTOR* const received = next_received(server_);
  ASSERT_EQ(receives.raw(0), received);
  EXPECT_EQ(VIP_STATUS_DONE | VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE,
            received->CS.Status);
  EXPECT_EQ(static_cast<VIP_UINT32>(-3), received->CS.ImmediateData);
  EXPECT_EQ("data", target_.text(0, 4));  // before the descriptor was
  EXPECT_EQ("as it was", receives.text(0, 9));
}

// MPL writes the data, then says "done" with immediate data: by then all of it must be there.
TEST_F(RdmaConnected, WritesAndMessagesArriveInOrder) {
  const Memory receives(b_, 2, 64);
  for (VIP_UINT32 round = 0; round < 50; ++round) {
    const std::string text = "round " + std::to_string(round + 100);
    const bool by_message = round % 2 == 0;
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server_, receives.receive(0, 64), receives.handle()));
    for (std::size_t i = 0; i < 4; ++i) {
      out_.fill(i, text);
      std::memset(out_.buffer(i) + text.size(), static_cast<int>(round), kBytes - text.size());
      post(out_.rdma(i, kBytes, VIP_CONTROL_OP_RDMAWRITE, target_.buffer(i), target_.handle()));
    }
    if (by_message)
      post(out_.send(4, 8));
    else
      post(out_.rdma(4, 0, VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, target_.buffer(4),
                     target_.handle()));
    ASSERT_EQ(receives.raw(0), next_received(server_));
    for (std::size_t i = 0; i < 4; ++i) {
      ASSERT_EQ(text, target_.text(i, text.size()));
      ASSERT_EQ(static_cast<std::byte>(round), target_.buffer(i)[kBytes - 1]);
    }
    for (std::size_t i = 0; i < 5; ++i) ASSERT_EQ(out_.raw(i), next_sent(client_));
  }
}

// A fence: what was read before is here before this is sent.
TEST_F(RdmaConnected, FenceWaitsForReads) {
  const Memory receives(b_, 8, kBytes);
  for (int round = 0; round < 8; ++round) {
    const std::string text = "fresh " + std::to_string(round);
    target_.fill(0, text);
    ASSERT_VIP(VIP_SUCCESS, VipPostRecv(server_, receives.receive(0, kBytes), receives.handle()));
    // The message is what the read brings.
    post(out_.rdma(0, kBytes, VIP_CONTROL_OP_RDMAREAD, target_.buffer(0), target_.handle()));
    VIP_DESCRIPTOR* const d = out_.send(1, kBytes);
    d->DS[0].Local.Data.Address = out_.buffer(0);
    d->CS.Control |= VIP_CONTROL_QFENCE;
    post(d);
    ASSERT_EQ(receives.raw(0), next_received(server_));
    ASSERT_EQ(text, receives.text(0, text.size()));
    ASSERT_EQ(out_.raw(0), next_sent(client_));
    ASSERT_EQ(out_.raw(1), next_sent(client_));
  }
}

TEST_F(RdmaConnected, ManyReadsAtOnce) {
  for (std::size_t i = 0; i < kCount; ++i) {
    target_.fill(i, "piece " + std::to_string(i));
    post(out_.rdma(i, 7, VIP_CONTROL_OP_RDMAREAD, target_.buffer(i), target_.handle()));
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(out_.raw(i), next_sent(client_));
    ASSERT_EQ(0u, errors(out_.raw(i)));
    ASSERT_EQ("piece " + std::to_string(i), out_.text(i, 7));
  }
}

// The handle that the target's program sent along goes on working when it changes what the memory
// may be used for, and stops when it may not.
TEST_F(RdmaConnected, RightsThatChangeWhileConnected) {
  const Memory target(b_, 1, 64);  // no rights yet
  VIP_MEM_ATTRIBUTES open = memory_attributes(nullptr, true), closed = memory_attributes();
  ASSERT_VIP(VIP_SUCCESS, VipSetMemAttributes(b_, target.base(), target.handle(), &open));
  out_.fill(0, "now");
  const auto write = [&] {
    return outcome(out_.rdma(0, 3, VIP_CONTROL_OP_RDMAWRITE, target.buffer(0), target.handle()));
  };
  EXPECT_EQ(0u, write());
  EXPECT_TRUE(eventually([&] { return target.text(0, 3) == "now"; }));
  ASSERT_VIP(VIP_SUCCESS, VipSetMemAttributes(b_, target.base(), target.handle(), &closed));
  out_.fill(0, "bad");
  EXPECT_EQ(VIP_STATUS_RDMA_PROT_ERROR, write());
  EXPECT_EQ("now", target.text(0, 3));
}

// ... and for those who connect afterwards.
TEST_F(Rdma, RightsThatChangedBeforeConnecting) {
  const Vi client(a_), server(b_, with_rdma(true, false));
  const Memory target(b_, 1, 64);
  VIP_MEM_ATTRIBUTES open = memory_attributes(nullptr, true);
  ASSERT_VIP(VIP_SUCCESS, VipSetMemAttributes(b_, target.base(), target.handle(), &open));
  connect(client, server);
  out_.fill(0, "later");
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(client,
                                      out_.rdma(0, 5, VIP_CONTROL_OP_RDMAWRITE, target.buffer(0),
                                                target.handle()),
                                      out_.handle()));
  EXPECT_EQ(out_.raw(0), next_sent(client));
  EXPECT_EQ(0u, errors(out_.raw(0)));
  EXPECT_TRUE(eventually([&] { return target.text(0, 5) == "later"; }));
}

// Every byte is there when the flag is.
TEST_F(Rdma, RandomWritesWithFlagsThatThePollerSees) {
  std::vector<std::unique_ptr<RandomWrites>> writers, targets;
  std::vector<std::unique_ptr<Vi>> vis;
  std::vector<VIP_VI_HANDLE> near, far;
  std::vector<WriteTarget> near_memory, far_memory;
  for (std::size_t i = 0; i < kRandomVis; ++i) {
    writers.push_back(std::make_unique<RandomWrites>(a_, i));
    targets.push_back(std::make_unique<RandomWrites>(b_, i));
    near_memory.push_back(writers[i]->target());
    far_memory.push_back(targets[i]->target());
    vis.push_back(std::make_unique<Vi>(a_, open_to_writes()));
    vis.push_back(std::make_unique<Vi>(b_, open_to_writes()));
    near.push_back(*vis[2 * i]);
    far.push_back(*vis[2 * i + 1]);
    connect(*vis[2 * i], *vis[2 * i + 1]);
  }
  std::thread checking([&] { EXPECT_EQ("", check_all(targets, far, near_memory)); });
  EXPECT_EQ("", write_all(writers, near, far_memory));
  checking.join();
}

TEST_F(Rdma, BothTheViAndTheMemoryMustAllowIt) {
  for (const bool vi_allows : {false, true})
    for (const bool memory_allows : {false, true}) {
      const VIP_UINT32 expected = vi_allows && memory_allows ? 0 : VIP_STATUS_RDMA_PROT_ERROR;
      EXPECT_EQ(expected,
                outcome(with_rdma(vi_allows, true), memory_attributes(nullptr, memory_allows, true),
                        VIP_CONTROL_OP_RDMAWRITE))
          << vi_allows << memory_allows;
      EXPECT_EQ(expected,
                outcome(with_rdma(true, vi_allows), memory_attributes(nullptr, true, memory_allows),
                        VIP_CONTROL_OP_RDMAREAD))
          << vi_allows << memory_allows;
    }
}

TEST_F(Rdma, TagsMustBeEqualAtTheTarget) {
  const Ptag one(b_), two(b_);
  const auto write = [&](VIP_PROTECTION_HANDLE vi, VIP_PROTECTION_HANDLE memory) {
    return outcome(with_rdma(true, true, vi), memory_attributes(memory, true, true),
                   VIP_CONTROL_OP_RDMAWRITE);
  };
  EXPECT_EQ(0u, write(two, two));
  EXPECT_EQ(VIP_STATUS_RDMA_PROT_ERROR, write(one, two));
  EXPECT_EQ(VIP_STATUS_RDMA_PROT_ERROR, write(two, one));
}

TEST_F(Rdma, OutsideTheRegion) {
  const VIP_MEM_ATTRIBUTES open = memory_attributes(nullptr, true, true);
  const std::size_t whole = 8192;  // one descriptor and a page, rounded up to pages
  for (const VIP_UINT16 operation : {VIP_CONTROL_OP_RDMAWRITE, VIP_CONTROL_OP_RDMAREAD}) {
    EXPECT_EQ(0u, outcome(with_rdma(true, true), open, operation, whole - 64, 64));
    EXPECT_EQ(VIP_STATUS_RDMA_PROT_ERROR,
              outcome(with_rdma(true, true), open, operation, whole - 63, 64));
    EXPECT_EQ(VIP_STATUS_RDMA_PROT_ERROR,
              outcome(with_rdma(true, true), open, operation, whole + 4096, 64));
  }
}

TEST_F(Rdma, AHandleThatIsNone) {
  const Vi client(a_), server(b_, with_rdma(true, true));
  const Memory target(b_, 1, 64, memory_attributes(nullptr, true, true));
  connect(client, server);
  VIP_DESCRIPTOR* const d =
      out_.rdma(0, 8, VIP_CONTROL_OP_RDMAWRITE, target.buffer(0), target.handle() ^ 0x00f0f000);
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, d, out_.handle()));
  EXPECT_EQ(d, next_sent(client));
  EXPECT_EQ(VIP_STATUS_RDMA_PROT_ERROR, errors(d));
  EXPECT_EQ(VIP_STATE_ERROR, client.state());
}

// The target is told too: it has no descriptor that could say it.
TEST_F(Rdma, TheTargetLearnsOfViolations) {
  const struct {
    VIP_UINT16 operation;
    VIP_ERROR_CODE code;
  } cases[] = {{VIP_CONTROL_OP_RDMAWRITE, VIP_ERROR_RDMAW_PROT},
               {VIP_CONTROL_OP_RDMAREAD, VIP_ERROR_RDMAR_PROT}};
  for (const auto& c : cases) {
    const AsyncErrors reports(b_);
    const Vi client(a_), server(b_);
    const Memory target(b_, 1, 64);
    connect(client, server);
    VIP_DESCRIPTOR* const d = out_.rdma(0, 8, c.operation, target.buffer(0), target.handle());
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, d, out_.handle()));
    EXPECT_EQ(d, next_sent(client));
    const auto report = reports.wait_for(server, c.code);
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(VIP_RESOURCE_VI, report->ResourceCode);
    EXPECT_EQ(static_cast<VIP_NIC_HANDLE>(b_), report->NicHandle);
    EXPECT_EQ(VIP_STATE_ERROR, server.state());
  }
}

TEST_F(Rdma, NoReadsOnTheUnreliableLevel) {
  const Vi client(a_, vi_attributes(VIP_SERVICE_UNRELIABLE)),
      server(b_, vi_attributes(VIP_SERVICE_UNRELIABLE));
  const Memory target(b_, 1, 64, memory_attributes(nullptr, true, true));
  connect(client, server);
  VIP_DESCRIPTOR* const d =
      out_.rdma(0, 8, VIP_CONTROL_OP_RDMAREAD, target.buffer(0), target.handle());
  ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, d, out_.handle()));
  EXPECT_EQ(d, next_sent(client));
  EXPECT_EQ(VIP_STATUS_FORMAT_ERROR, errors(d));
}

TEST_F(Rdma, WritesOnEveryLevel) {
  for (const VIP_RELIABILITY_LEVEL level :
       {VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION}) {
    const Vi client(a_, vi_attributes(level)), server(b_, with_rdma(true, false, nullptr, level));
    const Memory target(b_, 1, 64, memory_attributes(nullptr, true));
    connect(client, server);
    out_.fill(0, "level");
    VIP_DESCRIPTOR* const d =
        out_.rdma(0, 5, VIP_CONTROL_OP_RDMAWRITE, target.buffer(0), target.handle());
    ASSERT_VIP(VIP_SUCCESS, VipPostSend(client, d, out_.handle()));
    EXPECT_EQ(d, next_sent(client));
    EXPECT_TRUE(eventually([&] { return target.text(0, 5) == "level"; }));
  }
}

}  // namespace

}  // namespace viaduct::vipl_test
