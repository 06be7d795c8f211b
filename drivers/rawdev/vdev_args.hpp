// The arguments of --vdev rawdev_...0,port=NAME_OR_ID[,name=number]...
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

namespace viaduct::rawdev {

// What a driver is opened with; Conf is its struct rte_pmd_..._conf.
template <class Conf>
struct VdevArgs {
  std::string port;  // as port::PortConfig::devargs has it: "port:NAME_OR_ID"
  Conf conf{};
};

// An argument that is a number from 1, and where it goes.
struct NumberArgument {
  std::string_view name;
  std::variant<std::uint32_t*, std::uint64_t*> into;
};

// Fills in the numbers and returns the port. Throws SetupError that names the bad argument and
// shows what is accepted.
std::string parse_vdev_args(std::string_view text, std::initializer_list<NumberArgument> numbers);

}  // namespace viaduct::rawdev
