#include "libmpi_lite/channel/vi/nic.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "drivers/base/setup_error.hpp"
#include "libmpi_lite/core/threads/library_lock.hpp"

namespace viaduct::mpi {
namespace {

// Bytes of the largest RDMA write. Both ends of a connection must name the same number, and every
// device has at least this one (Soft-RoCE: 8 MiB).
constexpr VIP_ULONG kMaxTransfer = 4u << 20;
constexpr VIP_ULONG kFirstEntries = 256;  // of the completion queue, which grows

// The ends of connections are seen by their flushed descriptors. Without this handler the library
// would print what the user is told by other words.
void ignore_error(VIP_PVOID, VIP_ERROR_DESCRIPTOR*) {}

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw base::SetupError("the VI channel cannot use NIC " + name + ": " + what);
}

}  // namespace

std::string_view vi_reason(VIP_RETURN result) {
  switch (result) {
    case VIP_ERROR_RESOURCE:
      return "no queue pair or memory is left: end other programs, raise the limit of locked "
             "memory (ulimit -l), or set VIADUCT_VI_LIMIT";
    case VIP_NO_MATCH: return "it no longer listens";
    case VIP_NOT_REACHABLE: return "there is no way to its NIC's address";
    case VIP_REJECT: return "it has refused the connection";
    case VIP_TIMEOUT: return "it has not answered";
    case VIP_INVALID_RELIABILITY_LEVEL:
    case VIP_INVALID_MTU:
    case VIP_INVALID_QOS: return "it has another version of this library";
    default: return "the connection was not made";
  }
}

std::string ViAddress::text() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xf];
  }
  return text;
}

std::optional<ViAddress> ViAddress::parse(std::string_view text) {
  ViAddress address;
  if (text.size() != 2 * address.bytes.size()) return {};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = std::string_view("0123456789abcdef").find(text[i]);
    if (digit == std::string_view::npos) return {};
    address.bytes[i / 2] = static_cast<std::uint8_t>(address.bytes[i / 2] << 4 | digit);
  }
  return address;
}

VIP_ADDRESS_ROOM ViAddress::with(const ViDiscriminator& discriminator) const {
  VIP_ADDRESS_ROOM room{};
  static_assert(sizeof room >= offsetof(VIP_NET_ADDRESS, HostAddress) + 6 + sizeof discriminator);
  room.Address.HostAddressLen = static_cast<VIP_UINT16>(bytes.size());
  room.Address.DiscriminatorLen = static_cast<VIP_UINT16>(discriminator.size());
  VIP_UINT8* const to = room.Room + offsetof(VIP_NET_ADDRESS, HostAddress);
  std::memcpy(to, bytes.data(), bytes.size());
  std::memcpy(to + bytes.size(), discriminator.data(), discriminator.size());
  return room;
}

ViNic::ViNic(const std::string& name, std::uint64_t job_key) : name_(name), job_key_(job_key) {
  if (VipOpenNic(name.c_str(), &nic_) != VIP_SUCCESS)
    fail(name,
         "it does not open; viaduct-info lists the NICs of this host, VIADUCT_VI_NIC names "
         "others");
  try {
    // A port of its own: requests for this process do not wait for processes that compute.
    if (VipNicOwnProgress(nic_, VIP_TRUE) != VIP_SUCCESS)
      fail(name, "no TCP port is left for its connections: end other programs");
    VIP_NIC_ATTRIBUTES nic{};
    VipQueryNic(nic_, &nic);
    std::memcpy(address_.bytes.data(), nic.LocalNicAddress, address_.bytes.size());
    attributes_.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes_.MaxTransferSize = std::min<VIP_ULONG>(nic.MaxTransferSize, kMaxTransfer);
    attributes_.EnableRdmaWrite = VIP_TRUE;
    VipErrorCallback(nic_, nullptr, ignore_error);
    if (VipNicDescriptor(nic_, &descriptor_) != VIP_SUCCESS ||
        VipCreateCQ(nic_, kFirstEntries, &completions_) != VIP_SUCCESS)
      fail(name, "no completion queue is left: end other programs that use the device");
    VIP_ADDRESS_ROOM all = listened();
    if (VipPeerListen(nic_, &all.Address, reinterpret_cast<VIP_UINT8*>(&job_key_),
                      sizeof job_key_) != VIP_SUCCESS)
      fail(name, "it cannot be listened at for connection requests");
  } catch (...) {
    VipCloseNic(nic_);
    throw;
  }
}

ViNic::~ViNic() {
  VipCloseNic(nic_);
}

VIP_ADDRESS_ROOM ViNic::listened() const {
  VIP_ADDRESS_ROOM room = address_.with({});
  room.Address.DiscriminatorLen = static_cast<VIP_UINT16>(kViPeers.size());
  std::memcpy(room.Room + offsetof(VIP_NET_ADDRESS, HostAddress) + address_.bytes.size(),
              kViPeers.data(), kViPeers.size());
  return room;
}

std::uint64_t ViNic::unauthorized_requests() const {
  VIP_ADDRESS_ROOM all = listened();
  VIP_ULONG count = 0;
  VipPeerQuery(nic_, &all.Address, nullptr, &count);
  return count;
}

// Any process of the job may write into registered memory: they trust each other, and a remote key
// leaves the process only with an open receive.
VIP_MEM_HANDLE ViNic::register_memory(const AddressRange& range) {
  VIP_MEM_ATTRIBUTES attributes{nullptr, VIP_TRUE, VIP_FALSE};
  VIP_MEM_HANDLE handle = 0;
  const VIP_RETURN result = VipRegisterMem(nic_, reinterpret_cast<VIP_PVOID>(range.begin),
                                           range.end - range.begin, &attributes, &handle);
  return result == VIP_SUCCESS ? handle : 0;
}

void ViNic::deregister_memory(const AddressRange& range, VIP_MEM_HANDLE handle) {
  VipDeregisterMem(nic_, reinterpret_cast<VIP_PVOID>(range.begin), handle);
}

bool ViNic::sleep(std::chrono::nanoseconds most, int bell) {
  if (VipNicArm(nic_, &completions_, 1) != VIP_SUCCESS) return false;
  pollfd fds[2]{{descriptor_, POLLIN, 0}, {bell, POLLIN, 0}};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(most);
  const timespec limit{seconds.count(), (most - seconds).count()};
  const LibraryLock::Unlocked others_turn;
  ::ppoll(fds, bell >= 0 ? 2 : 1, &limit, nullptr);
  return true;
}

}  // namespace viaduct::mpi
