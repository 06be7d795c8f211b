// What the test programs have in common: NICs, memory, VIs and connected pairs, made with nothing
// but vipl.h, as a program would, and ended when they go out of scope.
#pragma once

#include <gtest/gtest.h>
#include <vipl.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libvipl/api/code_names.hpp"

namespace viaduct::vipl_test {

// The two RDMA devices of viaduct-vm's guest.
inline constexpr const char* kNicNames[2] = {"rxe1", "rxe2"};

// For what must happen, however busy the machine is that emulates the guest; and for what must not.
inline constexpr VIP_ULONG kSoon = 20'000;
inline constexpr VIP_ULONG kMoment = 100;

// Codes by name, so that a failed comparison can be read.
inline std::string name(VIP_RETURN code) {
  return vipl::code_name(code);
}
#define EXPECT_VIP(code, call) EXPECT_EQ(name(code), name(call))
#define ASSERT_VIP(code, call) ASSERT_EQ(name(code), name(call))

// A handle that is none: not NULL, and nothing the library gave out.
VIP_PVOID no_handle();

class Nic {
 public:
  explicit Nic(const char* device);
  ~Nic();
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  operator VIP_NIC_HANDLE() const { return handle_; }
  const VIP_NIC_ATTRIBUTES& attributes() const { return attributes_; }

 private:
  VIP_NIC_HANDLE handle_ = nullptr;
  VIP_NIC_ATTRIBUTES attributes_{};
};

// A VIP_NET_ADDRESS with room behind it.
class Address {
 public:
  Address() : Address(std::span<const VIP_UINT8>{}, "") {}
  Address(const Nic& nic, std::string_view discriminator);
  Address(std::span<const VIP_UINT8> host, std::string_view discriminator);

  operator VIP_NET_ADDRESS*() { return reinterpret_cast<VIP_NET_ADDRESS*>(bytes_); }
  VIP_NET_ADDRESS* operator->() { return *this; }
  std::span<const VIP_UINT8> host();
  std::string discriminator();

 private:
  alignas(8) std::byte bytes_[64] = {};
};

// A discriminator that no other test uses.
std::string fresh_discriminator();

class Ptag {
 public:
  explicit Ptag(const Nic& nic);
  ~Ptag();
  Ptag(const Ptag&) = delete;
  Ptag& operator=(const Ptag&) = delete;
  operator VIP_PROTECTION_HANDLE() const { return handle_; }

 private:
  VIP_NIC_HANDLE nic_;
  VIP_PROTECTION_HANDLE handle_ = nullptr;
};

VIP_MEM_ATTRIBUTES memory_attributes(VIP_PROTECTION_HANDLE ptag = nullptr, bool write = false,
                                     bool read = false);

// Registered memory with room for descriptors of up to kSegments segments, each with a buffer.
class Memory {
 public:
  static constexpr std::size_t kSegments = 14;
  static constexpr std::size_t kDescriptorBytes =
      sizeof(VIP_CONTROL_SEGMENT) + kSegments * sizeof(VIP_DATA_SEGMENT);
  static_assert(kDescriptorBytes % VIP_DESCRIPTOR_ALIGNMENT == 0);

  Memory(const Nic& nic, std::size_t count, std::size_t bytes_each)
      : Memory(nic, count, bytes_each, memory_attributes()) {}
  Memory(const Nic& nic, std::size_t count, std::size_t bytes_each, VIP_MEM_ATTRIBUTES attributes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  VIP_MEM_HANDLE handle() const { return handle_; }
  std::byte* base() const { return bytes_.get(); }
  std::size_t size() const { return size_; }
  std::byte* buffer(std::size_t i) const;
  VIP_DESCRIPTOR* raw(std::size_t i) const;  // as it is

  // Descriptor `i`, for the first `length` bytes of its buffer (no segment for none).
  VIP_DESCRIPTOR* receive(std::size_t i, std::size_t length) const { return send(i, length); }
  VIP_DESCRIPTOR* send(std::size_t i, std::size_t length) const;
  // RDMA between that and `remote`.
  VIP_DESCRIPTOR* rdma(std::size_t i, std::size_t length, VIP_UINT16 operation, const void* remote,
                       VIP_MEM_HANDLE remote_handle) const;

  void fill(std::size_t i, std::string_view text) const;
  std::string text(std::size_t i, std::size_t length) const;

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  VIP_NIC_HANDLE nic_;
  std::size_t count_, bytes_each_, size_;
  std::unique_ptr<std::byte[], Free> bytes_;
  VIP_MEM_HANDLE handle_ = 0;
};

VIP_VI_ATTRIBUTES vi_attributes(VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY,
                                VIP_PROTECTION_HANDLE ptag = nullptr);

class Cq {
 public:
  Cq(const Nic& nic, VIP_ULONG entries);
  ~Cq();
  Cq(const Cq&) = delete;
  Cq& operator=(const Cq&) = delete;
  operator VIP_CQ_HANDLE() const { return handle_; }

 private:
  VIP_CQ_HANDLE handle_ = nullptr;
};

class Vi {
 public:
  explicit Vi(const Nic& nic) : Vi(nic, vi_attributes()) {}
  Vi(const Nic& nic, VIP_VI_ATTRIBUTES attributes, VIP_CQ_HANDLE send = nullptr,
     VIP_CQ_HANDLE receive = nullptr);
  ~Vi() { end(); }
  Vi(const Vi&) = delete;
  Vi& operator=(const Vi&) = delete;

  operator VIP_VI_HANDLE() const { return handle_; }
  const Nic& nic() const { return nic_; }
  VIP_VI_STATE state() const;
  void end();                           // disconnects, drains, destroys
  void forget() { handle_ = nullptr; }  // the test has destroyed it

 private:
  const Nic& nic_;
  VIP_VI_HANDLE handle_ = nullptr;
};

// Asks for a connection until somebody waits for it, as clients do.
VIP_RETURN request(const Vi& client, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                   VIP_ULONG timeout = kSoon, VIP_VI_ATTRIBUTES* attributes = nullptr);
// Connects the two by the client/server model.
void connect(const Vi& client, const Vi& server);

// What a queue that has no CQ completes next; waits for it. nullptr: nothing did in time.
VIP_DESCRIPTOR* next_sent(VIP_VI_HANDLE vi);
VIP_DESCRIPTOR* next_received(VIP_VI_HANDLE vi);
// An entry of a CQ; false: none came in time.
struct Entry {
  VIP_VI_HANDLE vi = nullptr;
  bool receive = false;
  bool operator==(const Entry&) const = default;
};
std::optional<Entry> next_entry(VIP_CQ_HANDLE cq, VIP_ULONG timeout = kSoon);

// Status without the operation.
inline VIP_UINT32 errors(const VIP_DESCRIPTOR* d) {
  return d->CS.Status & VIP_STATUS_ERROR_MASK;
}
inline VIP_UINT32 operation(const VIP_DESCRIPTOR* d) {
  return d->CS.Status & VIP_STATUS_OP_MASK;
}
inline bool done(const VIP_DESCRIPTOR* d) {
  return (d->CS.Status & VIP_STATUS_DONE) != 0;
}

// Until the condition holds; false when it did not for kSoon milliseconds.
bool eventually(const std::function<bool()>& condition);

// Both NICs, and VIs on them.
class PairTest : public testing::Test {
 protected:
  Nic a_{kNicNames[0]}, b_{kNicNames[1]};
};

// A connected pair with memory on both sides: eight descriptors with a page each.
class ConnectedTest : public PairTest {
 protected:
  explicit ConnectedTest(VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY)
      : client_(a_, vi_attributes(level)), server_(b_, vi_attributes(level)) {}
  void SetUp() override { connect(client_, server_); }

  static constexpr std::size_t kCount = 8, kBytes = 4096;
  Memory out_{a_, kCount, kBytes}, in_{b_, kCount, kBytes};
  Vi client_, server_;
};

}  // namespace viaduct::vipl_test
