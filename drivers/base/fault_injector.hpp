// Fault injection, seeded, so that a failure can be replayed. Used by SimNetwork and, in every
// build, by Port (VIADUCT_FAULTS="loss=1%,dup=0.1%,reorder=1%,corrupt=0.1%,truncate=0.1%,seed=7").
// The injector decides; its user loses, delays or duplicates the frame. One owner thread.
#pragma once

#include <random>
#include <span>
#include <string_view>

#include "drivers/base/cxx20.hpp"

namespace viaduct::base {

struct FaultSpec {
  double loss = 0, duplicate = 0, reorder = 0, corrupt = 0, truncate = 0;  // probabilities, 0..1
  std::uint64_t seed = 1;

  bool any() const { return loss + duplicate + reorder + corrupt + truncate > 0; }
  // From the syntax above; every part may be absent. The SetupError for a wrong text names the bad
  // part and shows the syntax.
  static FaultSpec parse(std::string_view text);
};

struct FaultCounts {
  std::uint64_t lost = 0, duplicated = 0, reordered = 0, corrupted = 0, truncated = 0;
};

// What happens to one frame. A lost frame suffers nothing else.
struct Fate {
  bool lose = false, duplicate = false, reorder = false, corrupt = false, truncate = false;
};

class FaultInjector {
 public:
  explicit FaultInjector(const FaultSpec& spec) : spec_(spec), random_(spec.seed) {}
  // The fate of the next frame; counts it.
  Fate next();
  // Flips one to three bits of the frame, anywhere.
  void corrupt(std::span<std::byte> frame);
  // To what length a frame of `size` bytes is cut: 0 to size - 1 (0 for an empty one).
  std::size_t truncated(std::size_t size);
  const FaultCounts& counts() const { return counts_; }
  // For further random decisions of the user, which the seed then determines, too.
  std::mt19937_64& random() { return random_; }

 private:
  FaultSpec spec_;
  std::mt19937_64 random_;
  FaultCounts counts_;
};

}  // namespace viaduct::base
