// Addresses as text and back. No locale is involved, so a user's settings cannot change the form.

#include "drivers/link/types.hpp"

namespace viaduct::link {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

// The value of a hexadecimal digit in either case, or -1.
int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string Address::text() const {
  std::string out;
  for (const std::uint8_t byte : bytes) {
    if (!out.empty()) out += ':';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

// Strict: exactly two digits a byte and colons between the bytes. A lenient parser could turn a
// typing error into the address of another port.
std::optional<Address> Address::parse(std::string_view text) {
  Address address;
  if (text.size() != address.bytes.size() * 3 - 1) return std::nullopt;
  for (std::size_t i = 0; i < address.bytes.size(); ++i) {
    const int high = digit(text[i * 3]), low = digit(text[i * 3 + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    if (i > 0 && text[i * 3 - 1] != ':') return std::nullopt;
    address.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return address;
}

}  // namespace viaduct::link
