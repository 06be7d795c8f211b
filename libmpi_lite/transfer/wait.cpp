#include "libmpi_lite/transfer/wait.hpp"

#include <sched.h>
#include <time.h>

#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

constexpr unsigned kSpins = 2000;     // polls in vain before others get the CPU; about 100 us
constexpr unsigned kYields = 20'000;  // yields in vain before sleeping; at least some 10 ms
constexpr timespec kNap{0, 50'000};

}  // namespace

void Idle::pause() {
  ++polls_;
  if (Transfer::self().config().spin && polls_ < kSpins) {
    __builtin_ia32_pause();
  } else if (polls_ < kSpins + kYields) {
    ::sched_yield();
  } else {
    ::nanosleep(&kNap, nullptr);
    polls_ = kSpins + kYields;  // until something happens
  }
}

}  // namespace viaduct::mpi
