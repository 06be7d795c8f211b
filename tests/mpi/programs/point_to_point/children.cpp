// Processes that the program starts itself.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "sections.hpp"

namespace p2p {
namespace {

// One that ends as programs do, with everything that exit() does.
int status_of_child() {
  const pid_t child = ::fork();
  if (child == 0) std::exit(0);
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace

void children() {
  job::section("a child that the program forks takes nothing away from it");
  constexpr int kBytes = 1000003;
  const std::vector<char> out = pattern(kBytes, job::rank());
  for (int round = 0; round < 3; ++round) {
    CHECK_EQ(status_of_child(), 0);
    std::vector<char> in(out.size());
    MPI_Sendrecv(out.data(), kBytes, MPI_CHAR, next(), 60, in.data(), kBytes, MPI_CHAR, before(),
                 60, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in == pattern(kBytes, before()));
  }
}

}  // namespace p2p
