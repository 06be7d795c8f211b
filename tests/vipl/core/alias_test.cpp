// Memory handles of the other side that are no longer remote keys themselves.
#include "tests/vipl/core/node.hpp"

namespace viaduct::vipl::test {
namespace {

class Aliases : public Core {
 protected:
  Aliases() { connect(a, b); }
  // What a write to memory that the other side calls `name` ends with.
  VIP_RETURN write_to(VIP_MEM_HANDLE name) {
    VIP_DESCRIPTOR* d = memory->rdma(0, VIP_CONTROL_OP_RDMAWRITE, 0, 8, memory->data(100), name);
    EXPECT_EQ(VipPostSend(a, d, memory->handle()), VIP_SUCCESS);
    return VipSendDone(a, &d);
  }
  void again() {
    disconnect(a);
    disconnect(b);
    connect(a, b);
  }

  const VIP_VI_HANDLE a = make_vi(), b = make_vi();
};

TEST_F(Aliases, StandForTheLastKey) {
  const VIP_MEM_HANDLE key = memory->handle();
  Vi& vi = *Vi::find(a);
  for (const std::uint32_t name : {7u, 3u, 5u, key + 1}) {
    vi.alias(name, 1);
    vi.alias(name, key);
    EXPECT_EQ(write_to(name), VIP_SUCCESS);
  }
  EXPECT_EQ(write_to(7), VIP_SUCCESS);
  EXPECT_EQ(write_to(3), VIP_SUCCESS);
  EXPECT_EQ(write_to(key), VIP_SUCCESS);
}

TEST_F(Aliases, StandForThemselvesAgain) {
  const VIP_MEM_HANDLE key = memory->handle();
  Vi& vi = *Vi::find(a);
  for (const std::uint32_t itself : {std::uint32_t{0}, key}) {
    vi.alias(key, 1);
    EXPECT_EQ(write_to(key), VIP_DESCRIPTOR_ERROR);
    again();
    vi.alias(key, 1);
    vi.alias(key, itself);
    EXPECT_EQ(write_to(key), VIP_SUCCESS);
  }
  for (const std::uint32_t itself : {0u, 5u}) {
    vi.alias(5, key);
    vi.alias(5, itself);
    EXPECT_EQ(write_to(5), VIP_DESCRIPTOR_ERROR);
    again();
  }
}

TEST_F(Aliases, Many) {
  const VIP_MEM_HANDLE key = memory->handle();
  Vi& vi = *Vi::find(a);
  for (std::uint32_t i = 1; i <= 5000; ++i) vi.alias(i * 0x10, i % 2 == 0 ? key : 1);
  for (std::uint32_t i = 10000; i > 5000; --i) vi.alias(i * 0x10, i % 2 == 0 ? key : 1);
  for (std::uint32_t i = 2; i <= 10000; i += 2) ASSERT_EQ(write_to(i * 0x10), VIP_SUCCESS) << i;
  EXPECT_EQ(write_to(0x10), VIP_DESCRIPTOR_ERROR);
}

}  // namespace
}  // namespace viaduct::vipl::test
