// Names, defaults, units and limits of libvipl's configuration variables. nic.cpp reads most of
// them when a NIC is opened.
#include "libvipl/core/config_vars.hpp"

#include <array>

#include "libvipl/core/queues/work_reader.hpp"

namespace viaduct::vipl {
namespace {

using namespace base;

constexpr std::array kTable{
    ConfigVar{
        "VIADUCT_VIPL_DEVICES", "", "",
        "verbs devices of VIPL programs, in this order, e.g. rxe1,mlx5_0@10.9.0.1; empty: all"},
    ConfigVar{"VIADUCT_VIPL_HOSTS", "", "",
              "file that VipNSGetHostByName reads before it asks the host database"},
    ConfigVar{"VIADUCT_VIPL_PORT", "18650", "",
              "TCP port at which VIPL programs take connection requests; equal on all hosts",
              whole_number(1, 65535)},
    ConfigVar{"VIADUCT_VIPL_DESCRIPTORS", "256", "descriptors",
              "MaxDescriptorsPerQueue, or what the device allows; a VI has memory for all of them, "
              "unless VipSetViCapacity has said less",
              whole_number(1, 32768)},
    ConfigVar{"VIADUCT_VIPL_SEGMENTS", "32", "segments",
              "MaxSegmentsPerDesc, or what the device allows; likewise",
              whole_number(1, kMaxSegments)},
    ConfigVar{"VIADUCT_VIPL_SPIN", "20", "us",
              "how long Wait functions look for a completion before they sleep",
              whole_number(0, 1000000)},
    ConfigVar{"VIADUCT_VIPL_STATS", "off", "",
              "VipCloseNic prints how many messages on unreliable VIs were dropped", kOnOff},
    ConfigVar{"VIADUCT_VIPL_TRAFFIC_CLASS", "0", "",
              "byte of the IP headers of VIPL packets, four times their DSCP; equal on all hosts",
              whole_number(0, 255)},
};

}  // namespace

const ConfigTable& config_vars() {
  static constexpr ConfigTable table(kTable);
  return table;
}

}  // namespace viaduct::vipl
