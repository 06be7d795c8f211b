#include "libvipl/core/knobs.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "drivers/vi_over_verbs/verbs.hpp"
#include "libvipl/core/work_reader.hpp"

namespace viaduct::vipl {
namespace {

constexpr std::array kKnobs{
    Knob{"VIADUCT_VIPL_DEVICES", "", "",
         "verbs devices of VIPL programs, in this order, e.g. rxe1,mlx5_0@10.9.0.1; empty: all"},
    Knob{"VIADUCT_VIPL_HOSTS", "", "",
         "file that VipNSGetHostByName reads before it asks the host database"},
    Knob{"VIADUCT_VIPL_PORT", "18650", "",
         "TCP port at which VIPL programs take connection requests; equal on all hosts", 1, 65535},
    Knob{"VIADUCT_VIPL_DESCRIPTORS", "256", "descriptors",
         "MaxDescriptorsPerQueue, or what the device allows; a VI has memory for all of them", 1,
         32768},
    Knob{"VIADUCT_VIPL_SEGMENTS", "32", "segments",
         "MaxSegmentsPerDesc, or what the device allows; likewise", 1, kMostSegments},
    Knob{"VIADUCT_VIPL_SPIN", "20", "us",
         "how long Wait functions look for a completion before they sleep", 0, 1000000},
    Knob{"VIADUCT_VIPL_TRAFFIC_CLASS", "0", "",
         "byte of the IP headers of VIPL packets, four times their DSCP; equal on all hosts", 0,
         255},
};

const Knob& row(std::string_view name) {
  return *std::ranges::find(kKnobs, name, &Knob::name);
}

}  // namespace

std::span<const Knob> knobs() {
  return kKnobs;
}

// Set to nothing is the same as not set: that is how a shell user takes a knob back.
std::string knob_text(std::string_view name) {
  const Knob& knob = row(name);
  const char* const set = std::getenv(std::string(name).c_str());
  return set != nullptr && *set != '\0' ? set : std::string(knob.default_value);
}

std::uint64_t knob_number(std::string_view name) {
  const Knob& knob = row(name);
  const std::string text = knob_text(name);
  std::uint64_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc() || end != text.data() + text.size() || value < knob.least ||
      value > knob.most)
    throw vi::SetupError(std::string(name) + "=" + text + ": must be a number from " +
                         std::to_string(knob.least) + " to " + std::to_string(knob.most));
  return value;
}

}  // namespace viaduct::vipl
