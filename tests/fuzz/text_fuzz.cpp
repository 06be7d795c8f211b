// What users write: fault specifications and addresses. Anything is either understood, and then
// means what it says, or refused.
#include <cstdlib>

#include "drivers/link/fault.hpp"

using namespace viaduct::link;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  if (const auto address = Address::parse(text))
    if (Address::parse(address->text()) != address) std::abort();
  try {
    const FaultSpec spec = FaultSpec::parse(text);
    for (const double p : {spec.loss, spec.duplicate, spec.reorder, spec.corrupt, spec.truncate})
      if (!(p >= 0 && p <= 1)) std::abort();
  } catch (const SetupError&) {
  }
  return 0;
}
