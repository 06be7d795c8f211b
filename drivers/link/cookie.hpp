// Connection cookies, like TCP's SYN cookies (RFC 4987 section 3.6) and QUIC's Retry tokens (RFC
// 9000 section 8.1). A requester that returns a cookie has received a frame at the address that it
// claims; the link keeps nothing for a request until then. A cookie is a keyed hash of address,
// incarnation and time period, so the responder can check a cookie without having stored it.
#pragma once

#include "drivers/base/random.hpp"
#include "drivers/link/peer.hpp"

namespace viaduct::link {

class Cookies {
 public:
  // The secrets are the key of the hash: random, and never sent.
  Cookies(std::uint64_t secret_a, std::uint64_t secret_b) : key_{secret_a, secret_b} {}

  // The cookie for that incarnation at that address. Never 0, which on the wire means "no cookie".
  std::uint64_t make(const Address& address, std::uint64_t incarnation, Time now) const {
    return make(address, incarnation, period(now));
  }
  // Whether make() gave this cookie, in the present period or the one before: a cookie is good for
  // four to eight seconds.
  bool is_valid(std::uint64_t cookie, const Address& address, std::uint64_t incarnation,
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
  // CBC-MAC with SipHash as the block function, over a message of always three words (CBC-MAC is
  // sound for messages of one length only). `| 1` keeps 0 free.
  std::uint64_t make(const Address& address, std::uint64_t incarnation,
                     std::uint64_t period) const {
    const std::uint64_t first = base::siphash(key_, address_key(address));
    return base::siphash(key_, base::siphash(key_, first ^ incarnation) ^ period) | 1;
  }

  std::array<std::uint64_t, 2> key_;
};

}  // namespace viaduct::link
