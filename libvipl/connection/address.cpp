// Conversion between NicAddress, Discriminator and the program's VIP_NET_ADDRESS. Every length that
// a program wrote is checked here before the bytes behind it are read.
#include "libvipl/connection/address.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>

namespace viaduct::vipl {

std::array<std::uint8_t, NicAddress::kBytes> NicAddress::bytes() const {
  return {ip[0],
          ip[1],
          ip[2],
          ip[3],
          static_cast<std::uint8_t>(port >> 8),
          static_cast<std::uint8_t>(port & 0xff)};
}

NicAddress NicAddress::from(std::span<const std::uint8_t, kBytes> bytes) {
  return {{bytes[0], bytes[1], bytes[2], bytes[3]},
          static_cast<std::uint16_t>(bytes[4] << 8 | bytes[5])};
}

std::string NicAddress::text() const {
  std::array<char, sizeof "255.255.255.255:65535"> out{};
  std::snprintf(out.data(), out.size(), "%u.%u.%u.%u:%u", ip[0], ip[1], ip[2], ip[3], port);
  return out.data();
}

std::optional<Discriminator> Discriminator::from(std::span<const std::uint8_t> bytes) {
  if (bytes.size() > kMax) return std::nullopt;
  Discriminator d;
  d.size_ = static_cast<std::uint8_t>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), d.bytes_.begin());
  return d;
}

namespace {

// No VIA network had longer host addresses. A larger HostAddressLen is uninitialised memory, and
// the discriminator would be looked for at a random place.
constexpr VIP_UINT16 kMaxHostBytes = 20;

// The host address and the discriminator follow the two lengths. VIP_NET_ADDRESS declares only the
// first of those bytes, so they are reached through the address of the struct.
const std::uint8_t* host_bytes(const VIP_NET_ADDRESS& address) {
  return reinterpret_cast<const std::uint8_t*>(&address) + offsetof(VIP_NET_ADDRESS, HostAddress);
}

}  // namespace

std::optional<Discriminator> discriminator_of(const VIP_NET_ADDRESS& address) {
  if (address.HostAddressLen > kMaxHostBytes) return std::nullopt;
  return Discriminator::from(
      {host_bytes(address) + address.HostAddressLen, address.DiscriminatorLen});
}

std::optional<NicAddress> nic_of(const VIP_NET_ADDRESS& address) {
  if (address.HostAddressLen != NicAddress::kBytes) return std::nullopt;
  return NicAddress::from(
      std::span<const std::uint8_t, NicAddress::kBytes>(host_bytes(address), NicAddress::kBytes));
}

std::optional<Endpoint> endpoint_of(const VIP_NET_ADDRESS& address) {
  const auto nic = nic_of(address);
  const auto discriminator = discriminator_of(address);
  if (!nic || !discriminator) return std::nullopt;
  return Endpoint{*nic, *discriminator};
}

void write(const Endpoint& endpoint, VIP_NET_ADDRESS& to) {
  const auto nic = endpoint.nic.bytes();
  const auto discriminator = endpoint.discriminator.bytes();
  auto* at = reinterpret_cast<std::uint8_t*>(&to) + offsetof(VIP_NET_ADDRESS, HostAddress);
  to.HostAddressLen = NicAddress::kBytes;
  to.DiscriminatorLen = static_cast<VIP_UINT16>(discriminator.size());
  at = std::copy(nic.begin(), nic.end(), at);
  std::copy(discriminator.begin(), discriminator.end(), at);
}

}  // namespace viaduct::vipl
