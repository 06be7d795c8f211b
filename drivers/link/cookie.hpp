// Connection cookies, as TCP's SYN cookies and QUIC's Retry tokens: whoever returns one has
// received what was sent to its address. Nothing is kept for a request until then.
#pragma once

#include "drivers/base/random.hpp"
#include "drivers/link/peer.hpp"

namespace viaduct::link {

class Cookies {
 public:
  Cookies(std::uint64_t secret_a, std::uint64_t secret_b) : key_{secret_a, secret_b} {}

  // For that incarnation at that address; never 0.
  std::uint64_t make(const Address& address, std::uint64_t incarnation, Time now) const {
    return make(address, incarnation, period(now));
  }
  // Good for one to two periods.
  bool good(std::uint64_t cookie, const Address& address, std::uint64_t incarnation,
            Time now) const {
    const std::uint64_t present = period(now);
    return cookie == make(address, incarnation, present) ||
           cookie == make(address, incarnation, present - 1);
  }

 private:
  static constexpr Duration kPeriod = std::chrono::seconds{4};

  static std::uint64_t period(Time now) {
    return static_cast<std::uint64_t>(now.time_since_epoch() / kPeriod);
  }
  // CBC-MAC of three words.
  std::uint64_t make(const Address& address, std::uint64_t incarnation,
                     std::uint64_t period) const {
    const std::uint64_t first = base::siphash(key_, address_key(address));
    return base::siphash(key_, base::siphash(key_, first ^ incarnation) ^ period) | 1;
  }

  std::array<std::uint64_t, 2> key_;
};

}  // namespace viaduct::link
