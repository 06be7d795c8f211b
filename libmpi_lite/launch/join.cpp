#include <cstdio>
#include <string>

#include "libmpi_lite/launch/launch.hpp"
#include "libmpi_lite/launch/pmi1.hpp"
#include "libmpi_lite/launch/pmix.hpp"
#include "libmpi_lite/launch/single.hpp"

namespace viaduct::mpi {

// A process may inherit what several managers have said: Hydra's own daemons may be started by a
// Slurm that speaks PMIx. An open connection is certain to be from the manager that started us.
std::unique_ptr<Launch> join_job() {
  if (Pmi1::connected()) return Pmi1::join();
  if (pmix_announced()) return join_pmix();
  if (Pmi1::announced()) return Pmi1::join();
  if (const std::string warning = foreign_launcher_warning(); !warning.empty())
    std::fprintf(stderr, "viaduct: %s\n", warning.c_str());
  return std::make_unique<Single>();
}

}  // namespace viaduct::mpi
