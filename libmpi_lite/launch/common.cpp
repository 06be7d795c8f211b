// Helpers of the classes that implement Launch; common.hpp says what each one does.
#include "libmpi_lite/launch/common.hpp"

#include <mpi.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

#include "drivers/base/random.hpp"
#include "drivers/link/types.hpp"
#include "libmpi_lite/core/error.hpp"

namespace viaduct::mpi {
namespace {

constexpr std::string_view kJobKey = "viaduct-job";  // under which rank 0 publishes the job key

// Not isprint(), whose answer depends on the program's locale.
bool printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

std::optional<int> environment_number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return {};
  const std::string_view value(text);
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 0)
    throw base::SetupError(std::string(name) + "=" + text +
                           " in the environment is not a number; was this process started by "
                           "mpiexec or srun?");
  return number;
}

void check_key_value(std::string_view key, std::string_view value, std::size_t max_key,
                     std::size_t max_value) {
  const std::string shown = "value '" + std::string(value) + "' of key '" + std::string(key) + "'";
  if (key.empty() || key.size() > max_key || !printable(key) || key.find('=') != key.npos)
    throw Error(MPI_ERR_INTERN, "the process manager stores no " + shown +
                                    ": the key must have 1 to " + std::to_string(max_key) +
                                    " printable characters other than '='");
  if (value.empty() || value.size() > max_value || !printable(value))
    throw Error(MPI_ERR_INTERN, "the process manager stores no " + shown +
                                    ": the value must have 1 to " + std::to_string(max_value) +
                                    " printable characters");
}

std::uint64_t agree_on_job_key(Launch& launch) {
  // From the kernel, so that nobody outside the job can guess it.
  const std::uint64_t drawn = base::random_word();
  if (launch.size() == 1) return drawn;
  if (launch.rank() == 0) launch.put(kJobKey, std::to_string(drawn));
  launch.fence();
  const std::string text = launch.get(0, kJobKey);
  const char* const last = text.data() + text.size();
  std::uint64_t key = 0;
  if (const auto [end, error] = std::from_chars(text.data(), last, key);
      error != std::errc() || end != last)
    throw base::SetupError("rank 0 has put the job key '" + text +
                           "', which is not a number; run all ranks with the same version of the "
                           "library");
  return key;
}

int exit_status(int exit_code) {
  return (exit_code & 0xff) != 0 ? exit_code & 0xff : 1;
}

}  // namespace viaduct::mpi
