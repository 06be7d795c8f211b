// Asks the kernel how this program was started: MPI_INFO_ENV may be used before
// MPI_Init, and MPI_Init need not get argc and argv.
#include "libmpi_lite/core/environment_info.hpp"

#include <mpi.h>
#include <sys/utsname.h>

#include <filesystem>
#include <fstream>

namespace viaduct::mpi {

namespace {

void add(Info& info, const char* key, const std::string& value) {
  if (!value.empty() && value.size() < MPI_MAX_INFO_VAL) info.entries.emplace_back(key, value);
}

void add_command_line(Info& info) {
  std::ifstream cmdline("/proc/self/cmdline");
  std::string command, argument, arguments;
  std::getline(cmdline, command, '\0');
  while (std::getline(cmdline, argument, '\0'))
    arguments += (arguments.empty() ? "" : " ") + argument;
  add(info, "command", command);
  add(info, "argv", arguments);
}

}  // namespace

Ref<Info> environment_info(int processes) {
  Ref<Info> info = make<Info>();
  add_command_line(*info);
  if (processes > 0) add(*info, "maxprocs", std::to_string(processes));
  utsname machine;
  if (::uname(&machine) == 0) add(*info, "arch", machine.machine);
  std::error_code error;
  add(*info, "wdir", std::filesystem::current_path(error).string());
  return info;
}

}  // namespace viaduct::mpi
