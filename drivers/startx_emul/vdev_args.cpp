// StarT-X's names for the numbers in a rawdev's arguments; drivers/rawdev/vdev_args.cpp parses
// them.
#include "drivers/startx_emul/vdev_args.hpp"

namespace viaduct::startx {

VdevArgs parse_vdev_args(const std::string& text) {
  VdevArgs args;
  args.port = rawdev::parse_vdev_args(text, {{"queue_depth", &args.conf.queue_depth},
                                             {"max_open", &args.conf.max_open},
                                             {"max_posted", &args.conf.max_posted},
                                             {"max_regions", &args.conf.max_regions},
                                             {"job", &args.conf.job_key}});
  return args;
}

}  // namespace viaduct::startx
