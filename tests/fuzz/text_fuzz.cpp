// What users write: fault specifications and addresses. Anything is either understood, and then
// means what it says, or refused.
#include <cstdlib>

#include "drivers/base/fault_injector.hpp"
#include "drivers/base/setup_error.hpp"
#include "drivers/link/types.hpp"

using namespace viaduct;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  if (const auto address = link::Address::parse(text))
    if (link::Address::parse(address->text()) != address) std::abort();
  try {
    const base::FaultSpec spec = base::FaultSpec::parse(text);
    for (const double p : {spec.loss, spec.duplicate, spec.reorder, spec.corrupt, spec.truncate})
      if (!(p >= 0 && p <= 1)) std::abort();
  } catch (const base::SetupError&) {
  }
  return 0;
}
