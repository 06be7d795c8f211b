// The programs for people who embed the library do what they say.
#include <cstdio>
#include <cstdlib>

#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

namespace {

// Runs both sides at once; what they print, the first one's in front.
std::string both(const std::string& first, const std::string& second) {
  const char* const directory = std::getenv("VIPL_EXAMPLES");  // set by meson.build
  if (directory == nullptr) return "VIPL_EXAMPLES is not set";
  const std::string stem = std::string(directory) + "/vipl_";
  const std::string command = "out=$(mktemp) && trap 'rm -f $out' EXIT; " + stem + second +
                              " >$out & " + stem + first + "; wait $! && cat $out";
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "no shell";
  std::string said;
  for (int c; (c = std::fgetc(pipe)) != EOF;) said += static_cast<char>(c);
  EXPECT_EQ(0, ::pclose(pipe)) << command;
  return said;
}

TEST(Examples, ClientServer) {
  EXPECT_EQ("the client says: hello, server\nthe server says: hello, client\n",
            both("client_server rxe2", "client_server rxe1 10.9.0.2"));
}

TEST(Examples, Peer) {
  EXPECT_EQ("the peer is called bob\nthe peer is called ann\n",
            both("peer rxe1 10.9.0.2 ann", "peer rxe2 10.9.0.1 bob"));
}

TEST(Examples, RdmaWrite) {
  EXPECT_EQ("15 bytes were written: without asking\nwritten\n",
            both("rdma_write rxe2", "rdma_write rxe1 10.9.0.2"));
}

}  // namespace

}  // namespace viaduct::vipl_test
