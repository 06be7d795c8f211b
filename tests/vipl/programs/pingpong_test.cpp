// viaduct-pingpong over RDMA devices: every layer, small and large, several packets to a message.
#include <cstdio>
#include <cstdlib>

#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

namespace {

TEST(Pingpong, MeasuresEveryLayerOverRdma) {
  const char* const program = std::getenv("VIPL_PINGPONG");  // set by meson.build
  ASSERT_NE(nullptr, program);
  const std::string command =
      std::string(program) +
      " --bed verbs --layer verbs,vipl-send,vipl-rdma --sizes 4,8,64K,1100K --rounds 1"
      " --time-per-point 100 --json /dev/fd/3 3>&1 >/dev/null";
  FILE* const pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(nullptr, pipe);
  std::string said;
  for (int c; (c = std::fgetc(pipe)) != EOF;) said += static_cast<char>(c);
  EXPECT_EQ(0, ::pclose(pipe)) << command;
  // A figure that could not be had is null.
  EXPECT_EQ(std::string::npos, said.find("null")) << said;
  std::size_t rows = 0;
  for (std::size_t at = 0; (at = said.find("\"layer\"", at)) != std::string::npos; ++at) ++rows;
  EXPECT_EQ(12u, rows) << said;
}

}  // namespace

}  // namespace viaduct::vipl_test
