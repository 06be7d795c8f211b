#include "libvipl/core/knobs.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::vipl {
namespace {

constexpr std::array kKnobs{
    Knob{"VIADUCT_VIPL_DEVICES", "", "",
         "verbs devices that VIPL programs see, in this order, separated by commas; empty: all"},
    Knob{"VIADUCT_VIPL_HOSTS", "", "",
         "file that VipNSGetHostByName reads before it asks the host database"},
    Knob{"VIADUCT_VIPL_PORT", "18650", "",
         "TCP port at which VIPL programs take connection requests; equal on all hosts"},
    Knob{"VIADUCT_VIPL_DESCRIPTORS", "256", "descriptors",
         "MaxDescriptorsPerQueue, or what the device allows; a VI has memory for all of them"},
    Knob{"VIADUCT_VIPL_SEGMENTS", "32", "segments",
         "MaxSegmentsPerDesc, or what the device allows; likewise"},
    Knob{"VIADUCT_VIPL_SPIN", "20", "us",
         "how long Wait functions look for a completion before they sleep"},
};

}  // namespace

std::span<const Knob> knobs() {
  return kKnobs;
}

std::string knob_text(std::string_view name) {
  const char* const set = std::getenv(std::string(name).c_str());
  if (set != nullptr) return set;
  return std::string(std::ranges::find(kKnobs, name, &Knob::name)->default_value);
}

std::uint64_t knob_number(std::string_view name, std::uint64_t least, std::uint64_t most) {
  const std::string text = knob_text(name);
  std::uint64_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc() || end != text.data() + text.size() || value < least || value > most)
    throw vi::SetupError(std::string(name) + "=" + text + ": must be a number from " +
                         std::to_string(least) + " to " + std::to_string(most));
  return value;
}

}  // namespace viaduct::vipl
