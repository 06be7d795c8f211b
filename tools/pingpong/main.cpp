// viaduct-pingpong: latency and streaming bandwidth of StarT-X, MBCF and MPI, of the bare port
// beneath them, of VIPL and verbs, and of the kernel's network stack, by message size and in one
// run. This file picks the mode; the run itself is run.hpp.
#include "tools/pingpong/main.hpp"

#include <array>
#include <cstdio>
#include <iostream>

#include "drivers/link/config.hpp"
#include "drivers/port/config_vars.hpp"
#include "libmpi_lite/core/config_vars.hpp"
#include "libvipl/core/config_vars.hpp"
#include "tools/pingpong/error.hpp"
#include "tools/pingpong/run.hpp"
#include "tools/pingpong/testbed/bed.hpp"
#include "tools/pingpong/testbed/hosts.hpp"
#include "tools/pingpong/watch.hpp"

namespace viaduct::pingpong {

int report_errors(const std::function<int()>& body) try {
  return body();
} catch (const UsageError& error) {
  std::fprintf(stderr, "viaduct-pingpong: %s; see viaduct-pingpong --help\n", error.what());
  return kExitUsage;
} catch (const PeerGone&) {
  return kExitPeerGone;
} catch (const Interrupted&) {
  return kExitInterrupted;
} catch (const std::exception& error) {
  std::fprintf(stderr, "viaduct-pingpong: %s\n", error.what());
  return kExitFailure;
}

namespace {

// Both sides in this process: no children, no control channel.
int run_ring(const Options& options) {
  const auto session = ring_session(options.mtu, options.checksum);
  report(options, measure(*session, options));
  return 0;
}

int run(const Options& options) {
  const std::array tables{port::config_vars(), link::config_vars(), mpi::config_vars(),
                          vipl::config_vars()};
  for (const std::string& name : base::unknown_config_vars(tables))
    std::fprintf(stderr,
                 "viaduct-pingpong: there is no configuration variable %s, it is ignored; "
                 "viaduct-info --config prints those there are\n",
                 name.c_str());
  // Bad variables are reported here, before two sides are started that would both complain.
  for (const base::ConfigTable& table : tables) table.check();
  check_outputs(options);
  catch_interrupts();
  nanoseconds_per_tick();  // before anything is pinned or measured
  switch (options.mode) {
    case Options::Mode::netns:
    case Options::Mode::verbs:
    case Options::Mode::memif: return run_testbed(options);
    case Options::Mode::ring: return run_ring(options);
    case Options::Mode::listen: return run_listen(options);
    case Options::Mode::connect: return run_connect(options);
    case Options::Mode::help: break;
  }
  std::cout << help_text(layer_infos());
  return 0;
}

}  // namespace

}  // namespace viaduct::pingpong

int main(int argc, char** argv) {
  using namespace viaduct::pingpong;
  int status = report_errors([&] {
    const Options options = parse_options(
        {const_cast<const char* const*>(argv) + 1, static_cast<std::size_t>(argc) - 1},
        layer_infos());
    if (options.mode == Options::Mode::help) {
      std::cout << help_text(layer_infos());
      return 0;
    }
    return run(options);
  });
  if (status == kExitPeerGone) {
    std::fprintf(stderr, "viaduct-pingpong: the other side has ended\n");
    status = kExitFailure;
  }
  return status;
}
