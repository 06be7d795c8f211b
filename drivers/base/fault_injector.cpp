// Parsing a fault specification, and the random decisions about frames. SimNetwork and Port apply
// the decisions to frames.

#include "drivers/base/fault_injector.hpp"

#include <algorithm>
#include <charconv>

#include "drivers/base/setup_error.hpp"

namespace viaduct::base {
namespace {

constexpr std::string_view kSyntax =
    "write for example loss=1%,dup=0.1%,reorder=1%,corrupt=0.1%,truncate=0.1%,seed=7";

[[noreturn]] void refuse(std::string_view part, std::string_view why) {
  throw SetupError("fault specification: '" + std::string(part) + "' " + std::string(why) + "; " +
                   std::string(kSyntax));
}

// A probability as "1%" or "0.01".
double probability(std::string_view part, std::string_view value) {
  const bool percent = value.ends_with('%');
  if (percent) value.remove_suffix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (value.empty() || error != std::errc() || end != value.data() + value.size())
    refuse(part, "is not a number");
  if (percent) number /= 100;
  if (!(number >= 0 && number <= 1)) refuse(part, "is not between 0 and 100%");
  return number;
}

std::uint64_t seed_number(std::string_view part, std::string_view value) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (value.empty() || error != std::errc() || end != value.data() + value.size())
    refuse(part, "is not a whole number");
  return number;
}

// Applies one "name=value" of a specification.
void set(FaultSpec& spec, std::string_view part) {
  const auto equals = part.find('=');
  if (equals == std::string_view::npos) refuse(part, "has no value");
  const auto key = part.substr(0, equals), value = part.substr(equals + 1);
  if (key == "loss") {
    spec.loss = probability(part, value);
  } else if (key == "dup") {
    spec.duplicate = probability(part, value);
  } else if (key == "reorder") {
    spec.reorder = probability(part, value);
  } else if (key == "corrupt") {
    spec.corrupt = probability(part, value);
  } else if (key == "truncate") {
    spec.truncate = probability(part, value);
  } else if (key == "seed") {
    spec.seed = seed_number(part, value);
  } else {
    refuse(part, "names no fault");
  }
}

// Always one draw, whatever the probability, so that changing the probability of one fault does not
// change when a seed makes the other faults happen. Written out (53 random bits make a double in
// [0, 1)) because the standard distributions differ between libraries.
bool happens(std::mt19937_64& random, double probability) {
  return static_cast<double>(random() >> 11) * 0x1p-53 < probability;
}

}  // namespace

FaultSpec FaultSpec::parse(std::string_view text) {
  FaultSpec spec;
  while (!text.empty()) {
    const auto comma = text.find(',');
    set(spec, text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) refuse(",", "is followed by nothing");
  }
  return spec;
}

// All five draws happen before the frame may count as lost, for the same reason as in happens().
Fate FaultInjector::next() {
  const bool lose = happens(random_, spec_.loss), duplicate = happens(random_, spec_.duplicate),
             reorder = happens(random_, spec_.reorder), corrupt = happens(random_, spec_.corrupt),
             truncate = happens(random_, spec_.truncate);
  if (lose) {
    ++counts_.lost;
    return {.lose = true};
  }
  counts_.duplicated += duplicate;
  counts_.reordered += reorder;
  counts_.corrupted += corrupt;
  counts_.truncated += truncate;
  return {false, duplicate, reorder, corrupt, truncate};
}

void FaultInjector::corrupt(std::span<std::byte> frame) {
  const std::uint64_t bits = frame.size() * 8;
  if (bits == 0) return;
  // Different bits: flipping one twice would leave the frame as it was.
  const std::uint64_t flips = std::min<std::uint64_t>(1 + random_() % 3, bits);
  std::array<std::uint64_t, 3> done{};
  for (std::uint64_t i = 0; i < flips;) {
    const std::uint64_t bit = random_() % bits;
    if (std::find(done.begin(), done.begin() + i, bit) != done.begin() + i) continue;
    frame[bit / 8] ^= std::byte{1} << (bit % 8);
    done[i++] = bit;
  }
}

std::size_t FaultInjector::truncated(std::size_t size) {
  return size == 0 ? 0 : random_() % size;
}

}  // namespace viaduct::base
