// The names of VIPL's return codes, for messages to people.
#pragma once

#include <vipl.h>

#include <array>
#include <string>
#include <string_view>

namespace viaduct::vipl {

// "VIP_TIMEOUT", or "code 42" for a number that is no return code.
inline std::string code_name(VIP_RETURN code) {
  static constexpr std::array<std::string_view, 17> kNames{
      "VIP_SUCCESS",
      "VIP_NOT_DONE",
      "VIP_INVALID_PARAMETER",
      "VIP_ERROR_RESOURCE",
      "VIP_TIMEOUT",
      "VIP_REJECT",
      "VIP_INVALID_RELIABILITY_LEVEL",
      "VIP_INVALID_MTU",
      "VIP_INVALID_QOS",
      "VIP_INVALID_PTAG",
      "VIP_INVALID_RDMAREAD",
      "VIP_DESCRIPTOR_ERROR",
      "VIP_INVALID_STATE",
      "VIP_ERROR_NAMESERVICE",
      "VIP_NO_MATCH",
      "VIP_NOT_REACHABLE",
      "VIP_ERROR_NOT_SUPPORTED",
  };
  const auto index = static_cast<std::size_t>(code);
  return index < kNames.size() ? std::string(kNames[index]) : "code " + std::to_string(index);
}

}  // namespace viaduct::vipl
