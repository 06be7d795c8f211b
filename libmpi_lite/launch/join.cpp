// The choice of the process manager.
#include <cstdio>
#include <string>

#include "libmpi_lite/launch/launch.hpp"
#include "libmpi_lite/launch/pmi1.hpp"
#include "libmpi_lite/launch/pmix.hpp"
#include "libmpi_lite/launch/single.hpp"

namespace viaduct::mpi {

// A process may inherit the environment variables of several managers: Slurm, with PMIx, may have
// started Hydra's daemons, which start this process with PMI-1. An open PMI-1 socket is certain to
// come from the manager that started this process, so it goes first.
std::unique_ptr<Launch> join_job() {
  if (Pmi1::connected()) return Pmi1::join();
  if (pmix_announced()) return join_pmix();
  if (Pmi1::announced()) return Pmi1::join();
  if (const std::string warning = foreign_launcher_warning(); !warning.empty())
    std::fprintf(stderr, "viaduct: %s\n", warning.c_str());
  return std::make_unique<Single>();
}

}  // namespace viaduct::mpi
