#include "tests/vipl/programs/support/bed.hpp"

#include <cstdlib>
#include <thread>

namespace viaduct::vipl_test {

VIP_PVOID no_handle() {
  static std::array<std::uint64_t, 64> something{};
  return something.data();
}

Nic::Nic(const char* device) {
  EXPECT_VIP(VIP_SUCCESS, VipOpenNic(device, &handle_)) << device;
  EXPECT_VIP(VIP_SUCCESS, VipQueryNic(handle_, &attributes_));
}
Nic::~Nic() {
  EXPECT_VIP(VIP_SUCCESS, VipCloseNic(handle_));
}

Address::Address(const Nic& nic, std::string_view discriminator)
    : Address({nic.attributes().LocalNicAddress, nic.attributes().NicAddressLen}, discriminator) {}

Address::Address(std::span<const VIP_UINT8> host, std::string_view discriminator) {
  VIP_NET_ADDRESS* const address = *this;
  address->HostAddressLen = static_cast<VIP_UINT16>(host.size());
  address->DiscriminatorLen = static_cast<VIP_UINT16>(discriminator.size());
  std::byte* const at = bytes_ + offsetof(VIP_NET_ADDRESS, HostAddress);
  if (!host.empty()) std::memcpy(at, host.data(), host.size());
  if (!discriminator.empty())
    std::memcpy(at + host.size(), discriminator.data(), discriminator.size());
}

std::span<const VIP_UINT8> Address::host() {
  VIP_NET_ADDRESS* const address = *this;
  return {address->HostAddress, address->HostAddressLen};
}
std::string Address::discriminator() {
  const auto address = host();
  return {reinterpret_cast<const char*>(address.data() + address.size()),
          (*this)->DiscriminatorLen};
}

std::string fresh_discriminator() {
  static int number = 0;
  return "test" + std::to_string(++number);
}

Ptag::Ptag(const Nic& nic) : nic_(nic) {
  EXPECT_VIP(VIP_SUCCESS, VipCreatePtag(nic_, &handle_));
}
Ptag::~Ptag() {
  EXPECT_VIP(VIP_SUCCESS, VipDestroyPtag(nic_, handle_));
}

VIP_MEM_ATTRIBUTES memory_attributes(VIP_PROTECTION_HANDLE ptag, bool write, bool read) {
  VIP_MEM_ATTRIBUTES out{};
  out.Ptag = ptag;
  out.EnableRdmaWrite = write;
  out.EnableRdmaRead = read;
  return out;
}

void Memory::Free::operator()(std::byte* bytes) const {
  std::free(bytes);
}

Memory::Memory(const Nic& nic, std::size_t count, std::size_t bytes_each,
               VIP_MEM_ATTRIBUTES attributes)
    : nic_(nic),
      count_(count),
      bytes_each_(bytes_each),
      size_((count * (kDescriptorBytes + bytes_each) + 4095) / 4096 * 4096),
      bytes_(static_cast<std::byte*>(std::aligned_alloc(4096, size_))) {
  std::memset(bytes_.get(), 0, size_);
  EXPECT_VIP(VIP_SUCCESS, VipRegisterMem(nic_, bytes_.get(), size_, &attributes, &handle_));
  EXPECT_NE(0u, handle_);
}
Memory::~Memory() {
  EXPECT_VIP(VIP_SUCCESS, VipDeregisterMem(nic_, bytes_.get(), handle_));
}

std::byte* Memory::buffer(std::size_t i) const {
  return bytes_.get() + count_ * kDescriptorBytes + i * bytes_each_;
}
VIP_DESCRIPTOR* Memory::raw(std::size_t i) const {
  return reinterpret_cast<VIP_DESCRIPTOR*>(bytes_.get() + i * kDescriptorBytes);
}

VIP_DESCRIPTOR* Memory::send(std::size_t i, std::size_t length) const {
  VIP_DESCRIPTOR* const d = raw(i);
  std::memset(static_cast<void*>(d), 0, kDescriptorBytes);
  d->CS.Length = static_cast<VIP_UINT32>(length);
  if (length == 0) return d;
  d->CS.SegCount = 1;
  d->DS[0].Local = {{}, handle_, static_cast<VIP_UINT32>(length)};
  d->DS[0].Local.Data.Address = buffer(i);
  return d;
}

VIP_DESCRIPTOR* Memory::rdma(std::size_t i, std::size_t length, VIP_UINT16 operation,
                             const void* remote, VIP_MEM_HANDLE remote_handle) const {
  VIP_DESCRIPTOR* const d = send(i, length);
  d->DS[1] = d->DS[0];
  d->DS[0].Remote = {{}, remote_handle, 0};
  d->DS[0].Remote.Data.Address = const_cast<void*>(remote);
  d->CS.SegCount = static_cast<VIP_UINT16>(d->CS.SegCount + 1);
  d->CS.Control = operation;
  return d;
}

void Memory::fill(std::size_t i, std::string_view text) const {
  std::memcpy(buffer(i), text.data(), text.size());
}
std::string Memory::text(std::size_t i, std::size_t length) const {
  return {reinterpret_cast<const char*>(buffer(i)), length};
}

VIP_VI_ATTRIBUTES vi_attributes(VIP_RELIABILITY_LEVEL level, VIP_PROTECTION_HANDLE ptag) {
  VIP_VI_ATTRIBUTES out{};
  out.ReliabilityLevel = level;
  out.MaxTransferSize = 65536;
  out.Ptag = ptag;
  return out;
}

Cq::Cq(const Nic& nic, VIP_ULONG entries) {
  EXPECT_VIP(VIP_SUCCESS, VipCreateCQ(nic, entries, &handle_));
}
Cq::~Cq() {
  EXPECT_VIP(VIP_SUCCESS, VipDestroyCQ(handle_));
}

Vi::Vi(const Nic& nic, VIP_VI_ATTRIBUTES attributes, VIP_CQ_HANDLE send, VIP_CQ_HANDLE receive)
    : nic_(nic) {
  EXPECT_VIP(VIP_SUCCESS, VipCreateVi(nic, &attributes, send, receive, &handle_));
}

VIP_VI_STATE Vi::state() const {
  VIP_VI_STATE state = VIP_STATE_ERROR;
  VIP_VI_ATTRIBUTES attributes;
  VIP_BOOLEAN send_empty, receive_empty;
  EXPECT_VIP(VIP_SUCCESS, VipQueryVi(handle_, &state, &attributes, &send_empty, &receive_empty));
  return state;
}

void Vi::end() {
  if (handle_ == nullptr) return;
  EXPECT_VIP(VIP_SUCCESS, VipDisconnect(handle_));
  VIP_DESCRIPTOR* d;
  do VipRecvDone(handle_, &d);
  while (d != nullptr);
  do VipSendDone(handle_, &d);
  while (d != nullptr);
  EXPECT_VIP(VIP_SUCCESS, VipDestroyVi(handle_));
  handle_ = nullptr;
}

VIP_RETURN request(const Vi& client, VIP_NET_ADDRESS* local, VIP_NET_ADDRESS* remote,
                   VIP_ULONG timeout, VIP_VI_ATTRIBUTES* attributes) {
  VIP_RETURN code = VIP_NO_MATCH;
  eventually([&] {
    code = VipConnectRequest(client, local, remote, timeout, attributes);
    return code != VIP_NO_MATCH;
  });
  return code;
}

void connect(const Vi& client, const Vi& server) {
  const std::string discriminator = fresh_discriminator();
  std::thread waiting([&] {
    Address local(server.nic(), discriminator), remote;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE connection;
    const VIP_RETURN waited =
        VipConnectWait(server.nic(), local, kSoon, remote, &attributes, &connection);
    EXPECT_VIP(VIP_SUCCESS, waited);
    if (waited == VIP_SUCCESS) {
      EXPECT_VIP(VIP_SUCCESS, VipConnectAccept(connection, server));
    }
  });
  Address local(client.nic(), "client"), remote(server.nic(), discriminator);
  EXPECT_VIP(VIP_SUCCESS, request(client, local, remote));
  waiting.join();
}

namespace {

VIP_DESCRIPTOR* next(VIP_VI_HANDLE vi, decltype(VipSendWait)* wait) {
  VIP_DESCRIPTOR* d = nullptr;
  const VIP_RETURN code = wait(vi, kSoon, &d);
  if (d == nullptr) {
    ADD_FAILURE() << "nothing completed: " << name(code);
    return nullptr;
  }
  EXPECT_VIP(errors(d) ? VIP_DESCRIPTOR_ERROR : VIP_SUCCESS, code);
  EXPECT_TRUE(done(d));
  return d;
}

}  // namespace

VIP_DESCRIPTOR* next_sent(VIP_VI_HANDLE vi) {
  return next(vi, VipSendWait);
}
VIP_DESCRIPTOR* next_received(VIP_VI_HANDLE vi) {
  return next(vi, VipRecvWait);
}

std::optional<Entry> next_entry(VIP_CQ_HANDLE cq, VIP_ULONG timeout) {
  Entry out;
  VIP_BOOLEAN receive = VIP_FALSE;
  const VIP_RETURN code = VipCQWait(cq, timeout, &out.vi, &receive);
  out.receive = receive == VIP_TRUE;
  if (code == VIP_SUCCESS) return out;
  EXPECT_VIP(VIP_TIMEOUT, code);
  return std::nullopt;
}

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{kSoon};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  return true;
}

}  // namespace viaduct::vipl_test
