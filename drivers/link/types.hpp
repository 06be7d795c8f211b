// The small types that the link shares with every layer above: time, addresses, lanes, peers. All
// are plain values, so any thread may copy them.
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
  // Six pairs of lower-case hexadecimal digits: "02:00:00:00:00:01".
  std::string text() const;
  // The inverse of text(); accepts upper-case digits, too. nullopt: not exactly that form.
  static std::optional<Address> parse(std::string_view text);
};

// Names one incarnation of one peer. Once that incarnation has ended, its PeerId stays invalid, so
// a message can never reach a successor by mistake. (The upper 16 bits count the incarnations of a
// slot of the connection table, the lower 16 bits are the slot: an id returns only after 65,535
// incarnations in its slot.) 0 names no peer.
struct PeerId {
  std::uint32_t value = 0;

  auto operator<=>(const PeerId&) const = default;
  explicit operator bool() const { return value != 0; }
};

// Independent streams to one peer. Each lane has its own sequence numbers, window and credit, so a
// lane that the receiver does not drain never stops another lane. When the device cannot take all
// waiting frames, those of `high` leave first, then `low`, then `bulk`.
enum class Lane : std::uint8_t { high, low, bulk };
inline constexpr std::size_t kLanes = 3;
// The place of a lane in an array with an element for each.
constexpr std::size_t index_of(Lane lane) {
  return static_cast<std::size_t>(lane);
}

// The link delivers both kinds exactly once: ordered messages in the order in which they were sent
// in their lane, unordered messages as soon as their frame arrives.
enum class Order : std::uint8_t { ordered, unordered };

// By the value of Lane; for dumps and tools.
inline constexpr std::array<std::string_view, kLanes> kLaneNames{"high", "low", "bulk"};

// Whether `a` comes before `b`: serial-number arithmetic (RFC 1982) for 32-bit sequence numbers
// that wrap. Right as long as the two are less than 2^31 apart; windows have at most kMaxWindow
// frames.
constexpr bool sequence_before(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

}  // namespace viaduct::link
