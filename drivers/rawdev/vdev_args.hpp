// The arguments of --vdev rawdev_...0,port=NAME_OR_ID[,name=number]...: what both
// drivers' rawdevs use. Plain functions, which any thread may call.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

namespace viaduct::rawdev {

// What a rawdev is opened with; Conf is the driver's struct rte_pmd_..._conf.
template <class Conf>
struct VdevArgs {
  std::string port;  // as port::PortConfig::devargs has it: "port:NAME_OR_ID"
  Conf conf{};       // zeros mean defaults
};

// An argument that is a number from 1, and the field of the configuration that gets it.
struct NumberArgument {
  std::string_view name;
  std::variant<std::uint32_t*, std::uint64_t*> into;
};

// Fills in the numbers and returns the port. Throws SetupError that names the bad argument and
// shows what is accepted.
std::string parse_vdev_args(const std::string& text, std::initializer_list<NumberArgument> numbers);

}  // namespace viaduct::rawdev
