// Programs' view of libvipl on the fake device: NICs, VIs, buffers and descriptors, and two VIs
// connected without any network.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <string_view>
#include <vector>

#include <vipl.h>

#include "libvipl/core/device_source.hpp"
#include "libvipl/core/nic.hpp"
#include "libvipl/core/vi.hpp"
#include "tests/vipl/core/fake_device.hpp"
#include "tests/vipl/core/reports.hpp"

namespace viaduct::vipl::test {

using vi::fake::Fabric;
using vi::fake::FakeProvider;

// Registered memory with room for descriptors and, behind them, data.
class Memory {
 public:
  static constexpr std::size_t kDescriptors = 1024, kRoom = 64 * 1024;
  // Descriptors may have as many segments as fit in that.
  static constexpr std::size_t kStride = 1024;

  Memory(VIP_NIC_HANDLE nic, VIP_MEM_ATTRIBUTES* attributes) : nic_(nic) {
    base_ = static_cast<char*>(std::aligned_alloc(64, kBytes));
    std::memset(base_, 0, kBytes);
    EXPECT_EQ(VipRegisterMem(nic, base_, kBytes, attributes, &handle_), VIP_SUCCESS);
  }
  ~Memory() {
    VipDeregisterMem(nic_, base_, handle_);  // unless the NIC is closed already
    std::free(base_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  VIP_MEM_HANDLE handle() const { return handle_; }
  char* base() const { return base_; }
  char* data(std::size_t at = 0) const { return base_ + kDescriptors * kStride + at; }
  std::size_t bytes() const { return kBytes; }
  std::string_view text(std::size_t at, std::size_t length) const { return {data(at), length}; }

  VIP_DESCRIPTOR* descriptor(std::size_t i) const {
    return reinterpret_cast<VIP_DESCRIPTOR*>(base_ + i * kStride);
  }
  // A send or receive of `length` bytes at `at`.
  VIP_DESCRIPTOR* message(std::size_t i, std::size_t at, std::uint32_t length) const {
    VIP_DESCRIPTOR* const d = descriptor(i);
    std::memset(d, 0, sizeof *d);
    d->CS.SegCount = 1;
    d->CS.Length = length;
    d->DS[0].Local.Data.Address = data(at);
    d->DS[0].Local.Handle = handle_;
    d->DS[0].Local.Length = length;
    return d;
  }
  VIP_DESCRIPTOR* send(std::size_t i, std::size_t at, std::string_view text) const {
    std::memcpy(data(at), text.data(), text.size());
    return message(i, at, static_cast<std::uint32_t>(text.size()));
  }
  // Between here and `remote`, an address in memory called `key` there.
  VIP_DESCRIPTOR* rdma(std::size_t i, std::uint16_t control, std::size_t at, std::uint32_t length,
                       const char* remote, VIP_MEM_HANDLE key) const {
    VIP_DESCRIPTOR* const d = message(i, at, length);
    d->CS.SegCount = 2;
    d->CS.Control = control;
    d->DS[1].Local = d->DS[0].Local;
    d->DS[0].Remote.Data.AddressBits = reinterpret_cast<std::uint64_t>(remote);
    d->DS[0].Remote.Handle = key;
    d->DS[0].Remote.Reserved = 0xabad1dea;  // programs do not always clear it
    return d;
  }

 private:
  static constexpr std::size_t kBytes = kDescriptors * kStride + kRoom;
  VIP_NIC_HANDLE nic_;
  char* base_ = nullptr;
  VIP_MEM_HANDLE handle_ = 0;
};

inline VIP_VI_ATTRIBUTES vi_attributes(
    VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY) {
  VIP_VI_ATTRIBUTES attributes{};
  attributes.ReliabilityLevel = level;
  attributes.MaxTransferSize = 32768;
  attributes.EnableRdmaWrite = VIP_TRUE;
  attributes.EnableRdmaRead = level == VIP_SERVICE_UNRELIABLE ? VIP_FALSE : VIP_TRUE;
  return attributes;
}

class Core : public testing::Test {
 protected:
  Core() {
    set_device_source(FakeProvider::get());
    nic = open();
    memory = std::make_unique<Memory>(nic, &rdma_allowed);
  }
  ~Core() override {
    memory.reset();
    for (const VIP_NIC_HANDLE it : nics_) VipCloseNic(it);
    Fabric::get().release();
    Fabric::get().refusals = 0;
    Fabric::get().accepts = -1;
    Fabric::get().broken_posts = false;
    Fabric::get().withholds_acks = false;
    Fabric::get().before_receive = nullptr;
    Fabric::get().forgets_late_receives = false;
  }

  VIP_NIC_HANDLE open() {
    VIP_NIC_HANDLE handle = nullptr;
    EXPECT_EQ(VipOpenNic("fake0", &handle), VIP_SUCCESS);
    nics_.push_back(handle);
    return handle;
  }
  // Of the errors of a NIC; they may come until it is closed.
  Reports& report_errors(VIP_NIC_HANDLE of) {
    Reports& reports = reports_.emplace_back();
    EXPECT_EQ(VipErrorCallback(of, &reports, &Reports::handle), VIP_SUCCESS);
    return reports;
  }
  VIP_VI_HANDLE make_vi(VIP_CQ_HANDLE send_cq = nullptr, VIP_CQ_HANDLE receive_cq = nullptr,
                        VIP_VI_ATTRIBUTES attributes = vi_attributes()) {
    VIP_VI_HANDLE handle = nullptr;
    EXPECT_EQ(VipCreateVi(nic, &attributes, send_cq, receive_cq, &handle), VIP_SUCCESS);
    return handle;
  }
  VIP_CQ_HANDLE make_cq(VIP_ULONG entries) {
    VIP_CQ_HANDLE handle = nullptr;
    EXPECT_EQ(VipCreateCQ(nic, entries, &handle), VIP_SUCCESS);
    return handle;
  }

  // What the connection managers of two hosts do together.
  static void connect(VIP_VI_HANDLE a, VIP_VI_HANDLE b) {
    Vi& first = *Vi::find(a);
    Vi& second = *Vi::find(b);
    ASSERT_EQ(first.begin_pending(a), VIP_SUCCESS);
    ASSERT_EQ(second.begin_pending(b), VIP_SUCCESS);
    const EndpointInfo card = first.card();
    const EndpointInfo other = second.card();
    ASSERT_TRUE(second.establish(card));
    ASSERT_TRUE(first.establish(other));
  }
  static void disconnect(VIP_VI_HANDLE vi) {
    ASSERT_EQ(Vi::find(vi)->back_to_idle(vi), VIP_SUCCESS);
  }

  static VIP_VI_STATE state(VIP_VI_HANDLE vi) {
    VIP_VI_STATE state{};
    EXPECT_EQ(VipQueryVi(vi, &state, nullptr, nullptr, nullptr), VIP_SUCCESS);
    return state;
  }

  void post_send(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* d) {
    ASSERT_EQ(VipPostSend(vi, d, memory->handle()), VIP_SUCCESS);
  }
  void post_receive(VIP_VI_HANDLE vi, VIP_DESCRIPTOR* d) {
    ASSERT_EQ(VipPostRecv(vi, d, memory->handle()), VIP_SUCCESS);
  }
  // The next descriptor of a queue is `expected`, and well.
  static void expect_sent(VIP_VI_HANDLE vi, const VIP_DESCRIPTOR* expected) {
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_EQ(VipSendDone(vi, &d), VIP_SUCCESS);
    EXPECT_EQ(d, expected);
  }
  static void expect_received(VIP_VI_HANDLE vi, const VIP_DESCRIPTOR* expected) {
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_EQ(VipRecvDone(vi, &d), VIP_SUCCESS);
    EXPECT_EQ(d, expected);
  }
  // ... or has these error bits.
  static void expect_send_error(VIP_VI_HANDLE vi, const VIP_DESCRIPTOR* expected,
                                std::uint32_t bits) {
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_EQ(VipSendDone(vi, &d), VIP_DESCRIPTOR_ERROR);
    expect_error(d, expected, bits);
  }
  static void expect_receive_error(VIP_VI_HANDLE vi, const VIP_DESCRIPTOR* expected,
                                   std::uint32_t bits) {
    VIP_DESCRIPTOR* d = nullptr;
    EXPECT_EQ(VipRecvDone(vi, &d), VIP_DESCRIPTOR_ERROR);
    expect_error(d, expected, bits);
  }
  static void expect_error(const VIP_DESCRIPTOR* d, const VIP_DESCRIPTOR* expected,
                           std::uint32_t bits) {
    ASSERT_EQ(d, expected);
    if (d == nullptr) return;
    EXPECT_EQ(d->CS.Status & VIP_STATUS_ERROR_MASK, bits);
    EXPECT_NE(d->CS.Status & VIP_STATUS_DONE, 0u);
  }
  static void expect_send_queue_empty(VIP_VI_HANDLE vi) { expect_send_error(vi, nullptr, 0); }
  static void expect_receive_queue_empty(VIP_VI_HANDLE vi) { expect_receive_error(vi, nullptr, 0); }

  VIP_MEM_ATTRIBUTES rdma_allowed{nullptr, VIP_TRUE, VIP_TRUE};
  VIP_NIC_HANDLE nic = nullptr;
  std::unique_ptr<Memory> memory;

 private:
  std::vector<VIP_NIC_HANDLE> nics_;
  std::list<Reports> reports_;
};

}  // namespace viaduct::vipl::test
