// What viaduct-pingpong does about its emulated hosts, with a viaduct-testbed that makes none
// (fake_testbed.sh, beside this program).
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>

#include "tools/pingpong/testbed/testbed.hpp"

namespace viaduct::pingpong {
namespace {

// Called from a destructor, which an exception must not leave: the process would end without a
// word.
TEST(PingpongTestbed, SaysThatItIsStillThereIfNothingCanTakeItDown) {
  const auto end_without_descriptors = [] {
    {
      const Testbed testbed(1500, false);
      const rlimit none{0, 0};
      ::setrlimit(RLIMIT_NOFILE, &none);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(end_without_descriptors(), testing::ExitedWithCode(0),
              "the emulated hosts are still there: cannot make a pipe");
}

}  // namespace
}  // namespace viaduct::pingpong
