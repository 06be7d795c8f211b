// Endpoint addresses of the connection protocol: a NIC address (IPv4 address and TCP port) and a
// discriminator, as programs write them into a VIP_NET_ADDRESS (VIPL 1.0).
//
// All types here are plain values: they own no resource, and any thread may copy them.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <vipl.h>

namespace viaduct::vipl {

// The address of a NIC: the IPv4 address of the port's network interface, and the TCP port at which
// its processes accept connection requests. VIP_NIC_ATTRIBUTES.LocalNicAddress points to its six
// bytes. The length is six because every VIA network had six bytes, and existing programs have that
// number in their source.
struct NicAddress {
  static constexpr std::size_t kBytes = 6;

  std::array<std::uint8_t, 4> ip{};
  std::uint16_t port = 0;  // host order

  std::array<std::uint8_t, kBytes> bytes() const;                       // network order
  static NicAddress from(std::span<const std::uint8_t, kBytes> bytes);  // network order
  std::string text() const;                                             // "10.9.0.1:18650"

  auto operator<=>(const NicAddress&) const = default;
};

// The bytes that tell the listening programs of one NIC address apart, as a port number does in
// TCP. Two discriminators are equal if their lengths and bytes are equal.
class Discriminator {
 public:
  // MaxDiscriminatorLen, in bytes. Existing programs give VipConnectWait 40 bytes for the caller's
  // address. A longer discriminator from the network would be written beyond those.
  static constexpr std::size_t kMax = 16;

  Discriminator() = default;
  // Copies the bytes. nullopt: there are more than kMax.
  static std::optional<Discriminator> from(std::span<const std::uint8_t> bytes);

  std::span<const std::uint8_t> bytes() const { return {bytes_.data(), size_}; }
  bool begins_with(const Discriminator& prefix) const {
    return prefix.size_ <= size_ && Discriminator::from(bytes().first(prefix.size_)) == prefix;
  }
  auto operator<=>(const Discriminator&) const = default;

 private:
  std::uint8_t size_ = 0;
  std::array<std::uint8_t, kMax> bytes_{};  // zero beyond size_
};

// What a connection request is addressed to, and where it comes from.
struct Endpoint {
  NicAddress nic;
  Discriminator discriminator;

  auto operator<=>(const Endpoint&) const = default;
};

// The discriminator of a program's address. It lies behind as many host address bytes as
// HostAddressLen says. nullopt: one of the two lengths is too large to be true.
std::optional<Discriminator> discriminator_of(const VIP_NET_ADDRESS& address);
// The host address of a program's address. nullopt: its length is not that of a NIC address.
std::optional<NicAddress> nic_of(const VIP_NET_ADDRESS& address);
// Both parts of a program's address. nullopt: one of them is invalid.
std::optional<Endpoint> endpoint_of(const VIP_NET_ADDRESS& address);
// Fills in a program's address. The caller answers for the room behind `to`: the struct declares
// only the first byte of what follows the two lengths.
void write(const Endpoint& endpoint, VIP_NET_ADDRESS& to);

}  // namespace viaduct::vipl
