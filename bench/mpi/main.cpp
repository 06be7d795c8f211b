// mpi_bench: see --help. Builds with any MPI library: mpicxx -std=c++20 -O2 bench/mpi/*.cpp. This
// file runs the tests one after another, each at each size.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "bench.hpp"

namespace bench {

int world_rank() {
  static const int rank = [] {
    int r;
    MPI_Comm_rank(MPI_COMM_WORLD, &r);
    return r;
  }();
  return rank;
}

int world_size() {
  static const int size = [] {
    int n;
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    return n;
  }();
  return size;
}

// MPI_Abort may return with some libraries; exit() does not.
void fail(const std::string& what) {
  std::cerr << "mpi_bench: " << what << std::endl;
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::exit(1);
}

std::vector<Test> all_tests() {
  std::vector<Test> tests = point_to_point_tests();
  for (Test& test : collective_tests()) tests.push_back(std::move(test));
  for (Test& test : one_sided_tests()) tests.push_back(std::move(test));
  return tests;
}

namespace {

// Binds rank i to core i, modulo the cores of this host.
void pin() {
  const long cores = std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(world_rank() % cores), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    fail("cannot bind rank " + std::to_string(world_rank()) + " to a core; run it without --pin");
}

void print_library() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(version, &length);
  const std::string text(version, static_cast<std::size_t>(length));
  std::cout << "# " << text.substr(0, text.find('\n')) << ", " << world_size() << " ranks"
            << std::endl;
}

// Without --test all tests are run that can be.
bool wanted(const Test& test, const Options& options) {
  const bool possible = !test.multiple || options.multiple;
  if (options.tests.empty()) return possible;
  const bool named =
      std::find(options.tests.begin(), options.tests.end(), test.name) != options.tests.end();
  if (named && !possible) fail(std::string(test.name) + " needs --multiple");
  return named;
}

// The level is said to MPI before the options are read, as only a rank knows whether it is to
// print.
void init_mpi(int& argc, char**& argv) {
  const bool multiple = std::find(argv, argv + argc, std::string("--multiple")) != argv + argc;
  const int wanted = multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  int provided;
  MPI_Init_thread(&argc, &argv, wanted, &provided);
  if (provided < wanted)
    fail("this library does not give MPI_THREAD_MULTIPLE; leave --multiple out");
}

// The same tests and sizes in the same order at every rank.
void run(const Options& options) {
  const bool root = world_rank() == 0;
  std::vector<Row> rows;
  if (root) {
    print_library();
    print_heading();
  }
  for (const Test& test : all_tests()) {
    if (!wanted(test, options)) continue;
    const std::vector<std::size_t> once{0};
    for (const std::size_t size : test.sized ? options.sizes : once) {
      rows.push_back(measure(test.make(size), options, rows.empty()));
      if (root) print_row(rows.back());
    }
  }
  if (root && !options.json.empty()) write_json(options.json, rows);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::init_mpi(argc, argv);
  bench::Options options;
  int status = 0;
  if (bench::parse_options(argc, argv, bench::world_rank() == 0, options, status)) {
    if (options.pin) bench::pin();
    bench::run(options);
  }
  MPI_Finalize();
  return status;
}
