// Who is called: the network address of a NIC and a discriminator, as programs write them into a
// VIP_NET_ADDRESS.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <vipl.h>

namespace viaduct::vipl {

// What VIP_NIC_ATTRIBUTES.LocalNicAddress points to: six bytes, as on every VIA network there was
// (programs have the 6 in their source). The IPv4 address of the port's network interface, and the
// TCP port at which its processes take connection requests.
struct NicAddress {
  static constexpr std::size_t kBytes = 6;

  std::array<std::uint8_t, 4> ip{};
  std::uint16_t port = 0;  // host order

  std::array<std::uint8_t, kBytes> bytes() const;  // network order
  static NicAddress from(std::span<const std::uint8_t, kBytes> bytes);
  std::string text() const;  // "10.9.0.1:18650"

  auto operator<=>(const NicAddress&) const = default;
};

// Bytes that tell the waiting programs of one NIC address apart.
class Discriminator {
 public:
  // MaxDiscriminatorLen. Programs have the remote address that VipConnectWait fills in within 40
  // bytes (facts of NT and ARMCI), so what a stranger sends must not be longer.
  static constexpr std::size_t kMax = 16;

  Discriminator() = default;
  // nullopt: too long.
  static std::optional<Discriminator> from(std::span<const std::uint8_t> bytes);

  std::span<const std::uint8_t> bytes() const { return {bytes_.data(), size_}; }
  auto operator<=>(const Discriminator&) const = default;

 private:
  std::uint8_t size_ = 0;
  std::array<std::uint8_t, kMax> bytes_{};  // zero beyond size_
};

struct Endpoint {
  NicAddress nic;
  Discriminator discriminator;

  auto operator<=>(const Endpoint&) const = default;
};

// The discriminator lies behind as many address bytes as the program says. nullopt: too long, or
// too many.
std::optional<Discriminator> discriminator_of(const VIP_NET_ADDRESS& address);
// nullopt: of another length.
std::optional<NicAddress> nic_of(const VIP_NET_ADDRESS& address);
// nullopt: either of these.
std::optional<Endpoint> endpoint_of(const VIP_NET_ADDRESS& address);
void write(const Endpoint& endpoint, VIP_NET_ADDRESS& to);

}  // namespace viaduct::vipl
