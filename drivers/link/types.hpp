// The small types that every layer above the link speaks: time, addresses, lanes, peers.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "drivers/base/setup_error.hpp"
#include "drivers/base/time.hpp"

namespace viaduct::link {

using base::Duration;
using base::SetupError;
using base::text;
using base::Time;

// An Ethernet (MAC) address. One process owns one port, so an address names a process.
struct Address {
  std::array<std::uint8_t, 6> bytes{};

  auto operator<=>(const Address&) const = default;
  // "02:00:00:00:00:01"
  std::string text() const;
  static std::optional<Address> parse(std::string_view text);
};

// Names one life of one peer: it stays invalid for ever once that life has ended, so a message can
// never reach a successor by mistake. 0 names nobody.
struct PeerId {
  std::uint32_t value = 0;

  auto operator<=>(const PeerId&) const = default;
  explicit operator bool() const { return value != 0; }
};

// Independent streams to one peer. Each has sequence numbers, window and credits of its own: a
// lane that is not drained never stops another. When the port is short, `high` goes first.
enum class Lane : std::uint8_t { high, low, bulk };
inline constexpr std::size_t kLanes = 3;

// Both are delivered exactly once. Ordered messages arrive in the order they were sent (within
// their lane), unordered ones as soon as they arrive.
enum class Order : std::uint8_t { ordered, unordered };

inline constexpr std::array<std::string_view, kLanes> kLaneNames{"high", "low", "bulk"};

// Serial-number arithmetic (RFC 1982) for 32-bit sequence numbers that wrap.
constexpr bool sequence_before(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

}  // namespace viaduct::link
