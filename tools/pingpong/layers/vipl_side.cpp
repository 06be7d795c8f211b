// Opens and connects one VI (vipl_side.hpp), by the client-server model of VIPL: VipConnectRequest
// on the client, VipConnectWait and VipConnectAccept on the server.
#include "tools/pingpong/layers/vipl_side.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "libvipl/api/code_names.hpp"
#include "tools/pingpong/error.hpp"
#include "tools/pingpong/layers/messages.hpp"
#include "tools/pingpong/testbed/rdma_devices.hpp"

namespace viaduct::pingpong {

namespace {

// What the listener and the request have to agree in.
constexpr std::string_view kDiscriminator = "viaduct-pingpong";
constexpr VIP_ULONG kListenTimeout = 50;    // ms that a server waits in one attempt
constexpr VIP_ULONG kAcceptTimeout = 2000;  // ms that a client waits for the server's accept
constexpr std::size_t kPage = 4096;

// For calls that must not fail; throws Failure.
void require(VIP_RETURN code, const char* what) {
  if (code != VIP_SUCCESS)
    throw Failure(std::string(what) + " failed with " + vipl::code_name(code) +
                  "; viaduct-info says what this host lacks");
}

std::size_t rounded(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

void describe(VIP_DESCRIPTOR* d, void* data, VIP_MEM_HANDLE memory, std::size_t bytes) {
  std::memset(static_cast<void*>(d), 0, sizeof(*d));
  d->CS.Length = static_cast<VIP_UINT32>(bytes);
  if (bytes == 0) return;
  d->CS.SegCount = 1;
  d->DS[0].Local.Data.Address = data;
  d->DS[0].Local.Handle = memory;
  d->DS[0].Local.Length = static_cast<VIP_UINT32>(bytes);
}

void ViplSide::Free::operator()(void* memory) const {
  std::free(memory);
}

ViplSide::ViplSide(const TurnConfig& config, std::size_t descriptors, std::size_t bytes,
                   bool writable)
    : client_(config.client), ip_(config.ip), peer_ip_(config.peer_ip) {
  const std::size_t head = rounded(descriptors * sizeof(VIP_DESCRIPTOR));
  const std::size_t all = head + rounded(bytes);
  bytes_.reset(std::aligned_alloc(kPage, all));
  if (!bytes_) throw std::bad_alloc();
  std::memset(bytes_.get(), 0, all);
  descriptors_ = static_cast<VIP_DESCRIPTOR*>(bytes_.get());
  data_ = static_cast<std::byte*>(bytes_.get()) + head;
  try {
    open(ip_);
    VIP_MEM_ATTRIBUTES memory{nullptr, writable, VIP_FALSE};
    require(VipRegisterMem(nic_, bytes_.get(), all, &memory, &memory_), "VipRegisterMem");
    VIP_VI_ATTRIBUTES vi{
        VIP_SERVICE_RELIABLE_DELIVERY, kMaxPacketBytes, nullptr, nullptr, writable, VIP_FALSE};
    require(VipCreateVi(nic_, &vi, nullptr, nullptr, &vi_), "VipCreateVi");
  } catch (...) {
    end();
    throw;
  }
}

ViplSide::~ViplSide() {
  end();
}

void ViplSide::open(const std::string& ip) {
  const vi::DeviceInfo device = rdma_device(ip);
  // The name of the interface is the better one: a device may have several ports, and an interface
  // belongs to one.
  const std::string& name = device.interface.empty() ? device.name : device.interface;
  require(VipOpenNic(name.c_str(), &nic_), "VipOpenNic");
  require(VipNSInit(nic_, nullptr), "VipNSInit");
}

// Takes down what has been made so far, in reverse order; also after a failure in the constructor.
void ViplSide::end() {
  if (vi_ != nullptr) {
    VipDisconnect(vi_);
    VipDestroyVi(vi_);
  }
  if (memory_ != 0) VipDeregisterMem(nic_, bytes_.get(), memory_);
  if (nic_ != nullptr) VipCloseNic(nic_);
}

// Builds a VIPL address in `room`: the host's address, and behind it the discriminator.
VIP_NET_ADDRESS* ViplSide::address(std::byte* room, const std::string& ip) {
  auto* const out = reinterpret_cast<VIP_NET_ADDRESS*>(room);
  out->HostAddressLen = 0;
  out->DiscriminatorLen = 0;
  std::string host = ip;
  require(VipNSGetHostByName(nic_, host.data(), out, 0), "VipNSGetHostByName");
  out->DiscriminatorLen = static_cast<VIP_UINT16>(kDiscriminator.size());
  std::byte* const behind = room + offsetof(VIP_NET_ADDRESS, HostAddress) + out->HostAddressLen;
  std::memcpy(behind, kDiscriminator.data(), kDiscriminator.size());
  return out;
}

bool ViplSide::connect() {
  alignas(VIP_NET_ADDRESS) std::byte local[64], remote[64];
  VIP_VI_ATTRIBUTES attributes;
  VIP_NET_ADDRESS* const here = address(local, ip_);
  VIP_RETURN code;
  if (client_) {
    code = VipConnectRequest(vi_, here, address(remote, peer_ip_), kAcceptTimeout, &attributes);
  } else {
    VIP_CONN_HANDLE connection;
    code = VipConnectWait(nic_, here, kListenTimeout, reinterpret_cast<VIP_NET_ADDRESS*>(remote),
                          &attributes, &connection);
    if (code == VIP_SUCCESS) code = VipConnectAccept(connection, vi_);
  }
  if (code == VIP_SUCCESS) return true;
  // VIP_TIMEOUT, VIP_NO_MATCH: the other side has not come so far yet.
  if (code != VIP_TIMEOUT && code != VIP_NO_MATCH) fail(code, "connecting");
  return false;
}

void ViplSide::fail(VIP_RETURN code, const char* what) {
  if (failure_.empty()) failure_ = std::string(what) + ": " + vipl::code_name(code);
}

}  // namespace viaduct::pingpong
