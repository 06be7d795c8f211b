#include "libmpi_lite/launch/common.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "drivers/link/types.hpp"
#include "libmpi_lite/core/error.hpp"

namespace viaduct::mpi {
namespace {

constexpr std::string_view kJobKey = "viaduct-job";

std::string random_text() {
  std::random_device random;
  std::array<char, 17> text;
  std::snprintf(text.data(), text.size(), "%08x%08x", random(), random());
  return text.data();
}

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
    throw link::SetupError(std::string(name) + "=" + text +
                           " in the environment is not a number; was this process started by "
                           "mpiexec or srun?");
  return number;
}

void check_card(std::string_view key, std::string_view value, std::size_t longest_key,
                std::size_t longest_value) {
  const std::string shown = "value '" + std::string(value) + "' of key '" + std::string(key) + "'";
  if (key.empty() || key.size() > longest_key || !printable(key) || key.find('=') != key.npos)
    throw Error(MPI_ERR_INTERN, "the process manager stores no " + shown +
                                    ": the key must have 1 to " + std::to_string(longest_key) +
                                    " printable characters other than '='");
  if (value.empty() || value.size() > longest_value || !printable(value))
    throw Error(MPI_ERR_INTERN, "the process manager stores no " + shown +
                                    ": the value must have 1 to " + std::to_string(longest_value) +
                                    " printable characters");
}

std::string agree_on_job_name(Launch& launch, const std::string& managers_name) {
  if (launch.size() == 1) return managers_name + "." + random_text();
  if (launch.rank() == 0) launch.put(kJobKey, random_text());
  launch.fence();
  return managers_name + "." + launch.get(0, kJobKey);
}

int exit_status(int exit_code) {
  return (exit_code & 0xff) != 0 ? exit_code & 0xff : 1;
}

}  // namespace viaduct::mpi
