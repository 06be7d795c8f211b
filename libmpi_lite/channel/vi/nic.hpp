// The NIC of a process, as the channel uses VIPL: opened for a program that drives its NIC itself
// (no thread of the library), with one completion queue for all Virtual Interfaces.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <vipl.h>

#include "libmpi_lite/channel/vi/registrations.hpp"
#include "libmpi_lite/channel/vi/wire.hpp"

namespace viaduct::mpi {

// Of VipConnect...: why there is no connection, as part of a sentence for the user.
std::string_view vi_reason(VIP_RETURN result);

// A NIC's address: an IPv4 address and a TCP port.
struct ViAddress {
  std::array<std::uint8_t, 6> bytes{};
  std::string text() const;  // twelve hexadecimal digits
  static std::optional<ViAddress> parse(std::string_view text);
  // With a discriminator behind it, as VIPL's functions take it.
  VIP_ADDRESS_ROOM with(const ViDiscriminator& discriminator) const;
};

// Owns the NIC handle; one thread. Everything that was made of it must be gone before it.
class ViNic final : public MemoryRegistrar {
 public:
  // Opens the NIC of that name, and listens for peers that know the job's key. Throws SetupError.
  ViNic(const std::string& name, std::uint64_t job_key);
  ~ViNic();
  ViNic(const ViNic&) = delete;
  ViNic& operator=(const ViNic&) = delete;

  VIP_NIC_HANDLE handle() const { return nic_; }
  VIP_CQ_HANDLE completions() const { return completions_; }
  const std::string& name() const { return name_; }
  const ViAddress& address() const { return address_; }
  // What all Virtual Interfaces are made with.
  const VIP_VI_ATTRIBUTES& vi_attributes() const { return attributes_; }

  // The name of a process of the job in peer requests.
  ViDiscriminator peer(int rank) const { return vi_discriminator(kViPeers, job_key_, rank); }
  ViDiscriminator client(int rank) const { return vi_discriminator(kViClients, job_key_, rank); }
  // Connection requests without the job's key.
  std::uint64_t unauthorized_requests() const;

  VIP_MEM_HANDLE register_memory(const AddressRange& range) override;
  void deregister_memory(const AddressRange& range, VIP_MEM_HANDLE handle) override;

  // Sleeps until a message, a connection request or a timer of the library is due, until `bell`
  // (-1: none) is readable, or for that long. false: something is there already.
  bool sleep(std::chrono::nanoseconds most, int bell);

 private:
  // What VipPeerListen was given: all peer requests for this address.
  VIP_ADDRESS_ROOM listened() const;

  std::string name_;
  std::uint64_t job_key_;
  VIP_NIC_HANDLE nic_ = nullptr;
  VIP_CQ_HANDLE completions_ = nullptr;
  int descriptor_ = -1;  // the library's
  ViAddress address_;
  VIP_VI_ATTRIBUTES attributes_{};
};

}  // namespace viaduct::mpi
