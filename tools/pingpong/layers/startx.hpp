// What the StarT-X layers have in common: a NIU (network interface unit, drivers/startx_emul) on
// the port for one turn.
#pragma once

#include "drivers/startx_emul/niu.hpp"
#include "tools/pingpong/layers/link_side.hpp"

namespace viaduct::pingpong {

// The user header word of this program's packets: data, or a right to write (startx_rdma.cpp).
enum StartxTag : std::uint32_t { kTagData = 1, kTagRight = 2 };

// A message as StarT-X packets: how many, and how many payload words of 4 bytes each has. All are
// full but the last.
struct Packets {
  Packets() = default;
  explicit Packets(std::size_t bytes) {
    const std::size_t words = (bytes + 3) / 4;
    count = static_cast<std::uint32_t>((words + startx::kMaxWords - 1) / startx::kMaxWords);
    last_words = static_cast<std::uint8_t>(
        std::max(startx::kMinWords, words - (count - 1) * startx::kMaxWords));
  }
  std::uint8_t words(std::uint32_t i) const {
    return i + 1 == count ? last_words : static_cast<std::uint8_t>(startx::kMaxWords);
  }
  std::uint32_t count = 1;
  std::uint8_t last_words = startx::kMinWords;
};

// Owns the link and the NIU. One thread uses it. Ready as soon as the connection is up: there is
// nothing to exchange.
class StartxSide : public LinkSide {
 public:
  using Niu = startx::Niu<port::Port>;

  explicit StartxSide(const TurnConfig& config)
      : LinkSide(config), niu_(link(), startx::NiuConfig{}) {}

  bool ready() const { return up(); }

  Niu& niu() { return niu_; }
  const Niu& niu() const { return niu_; }
  void poll(link::Time now) { niu_.poll(now); }

 private:
  Niu niu_;
};

}  // namespace viaduct::pingpong
