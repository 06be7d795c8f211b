#include "libvipl/core/knobs.hpp"

#include <array>

#include "libvipl/core/work_reader.hpp"

namespace viaduct::vipl {
namespace {

constexpr std::array kKnobs{
    Knob{"VIADUCT_VIPL_DEVICES", "", "",
         "verbs devices of VIPL programs, in this order, e.g. rxe1,mlx5_0@10.9.0.1; empty: all"},
    Knob{"VIADUCT_VIPL_HOSTS", "", "",
         "file that VipNSGetHostByName reads before it asks the host database"},
    Knob{"VIADUCT_VIPL_PORT", "18650", "",
         "TCP port at which VIPL programs take connection requests; equal on all hosts",
         whole_number(1, 65535)},
    Knob{"VIADUCT_VIPL_DESCRIPTORS", "256", "descriptors",
         "MaxDescriptorsPerQueue, or what the device allows; a VI has memory for all of them, "
         "unless VipSetViCapacity has said less",
         whole_number(1, 32768)},
    Knob{"VIADUCT_VIPL_SEGMENTS", "32", "segments",
         "MaxSegmentsPerDesc, or what the device allows; likewise", whole_number(1, kMostSegments)},
    Knob{"VIADUCT_VIPL_SPIN", "20", "us",
         "how long Wait functions look for a completion before they sleep",
         whole_number(0, 1000000)},
    Knob{"VIADUCT_VIPL_STATS", "off", "",
         "VipCloseNic prints how many messages on unreliable VIs were dropped", kOnOff},
    Knob{"VIADUCT_VIPL_TRAFFIC_CLASS", "0", "",
         "byte of the IP headers of VIPL packets, four times their DSCP; equal on all hosts",
         whole_number(0, 255)},
};

}  // namespace

const KnobTable& knobs() {
  static constexpr KnobTable table(kKnobs);
  return table;
}

std::string knob_text(std::string_view name) {
  return knobs().text(name);
}

std::uint64_t knob_number(std::string_view name) {
  return knobs().number(name);
}

}  // namespace viaduct::vipl
