#include <gtest/gtest.h>

#include "tests/vipl/programs/support/process.hpp"

int main(int argc, char** argv) {
  int status = 0;
  if (viaduct::vipl_test::play_part(argc, argv, status)) return status;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
