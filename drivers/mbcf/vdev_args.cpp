// MBCF's device arguments; rawdev/vdev_args.cpp has the parser that the drivers share.
#include "drivers/mbcf/vdev_args.hpp"

namespace viaduct::mbcf {

VdevArgs parse_vdev_args(const std::string& text) {
  VdevArgs args;
  args.port = rawdev::parse_vdev_args(text, {{"max_keys", &args.conf.max_keys},
                                             {"max_requests", &args.conf.max_requests},
                                             {"max_writers", &args.conf.max_writers},
                                             {"job", &args.conf.job_key}});
  return args;
}

}  // namespace viaduct::mbcf
