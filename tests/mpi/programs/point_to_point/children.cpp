// Processes that the program starts itself.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "sections.hpp"

namespace {
bool is_child = false;
}  // namespace

// LeakSanitizer asks when a process ends. A child has a copy of all that its parent has allocated
// and gives back none of it.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() {
  return is_child;
}

namespace p2p {
namespace {

// One that ends as programs do, with everything that exit() does.
int status_of_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    is_child = true;
    std::exit(0);
  }
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
