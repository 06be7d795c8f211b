// mpi_bench: what an MPI library costs, by test and message size. Knows nothing but mpi.h, so that
// it builds with any MPI library and compares them with the same loops. Every rank runs the same
// tests in the same order; one thread a rank, but in thread-rate.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace bench {

struct Options {
  std::vector<std::string> tests;  // names; empty: all
  std::vector<std::size_t> sizes;
  int rounds = 2000;     // samples of each row, at most
  double seconds = 0.5;  // for each row, about
  int warmup = 10;       // calls before the first sample, at least; and a tenth of `seconds`
  bool pin = false;
  bool multiple = false;  // ask for MPI_THREAD_MULTIPLE
  std::string json;       // file; empty: none
};
// Every rank parses the same arguments; rank 0 (`print`) says what is wrong. False: exit with
// `status`.
bool parse_options(int argc, char** argv, bool print, Options& options, int& status);

// How a row's figure comes out of the time of one call.
enum class Unit : unsigned char {
  us,          // microseconds, times `factor`
  mb_per_s,    // 10^6 bytes per second; `factor`: bytes a call moves
  per_second,  // `factor`: messages a call moves
};
const char* name_of(Unit unit);

// One row of the table: `call` does the thing once, on every rank.
struct Case {
  std::string test;
  std::size_t bytes;
  Unit unit;
  double factor;
  // May several calls be made without a barrier between them? Where no rank can run ahead of the
  // others, yes: then a sample is long enough for the clock. Otherwise each sample is one call.
  bool batched;
  // Whose clock: rank 0, which sees the end of the exchange, or the slowest rank.
  bool root_clock;
  std::function<void()> call;
};

// One row of the table: figures in `unit`. Meaningful at rank 0 only.
struct Row {
  std::string test;
  std::size_t bytes;
  Unit unit;
  double min, median, max;  // over the samples
  int samples;
};
// Runs one case: warms up (longer before the `first` one), decides how many samples to take, takes
// them. Collective.
Row measure(const Case& test, const Options& options, bool first);

// The tests by name, in the order in which they are run.
struct Test {
  const char* name;
  const char* what;
  bool sized;  // runs once for each size
  std::function<Case(std::size_t bytes)> make;
  bool multiple = false;  // needs MPI_THREAD_MULTIPLE
};
std::vector<Test> point_to_point_tests();
std::vector<Test> collective_tests();
std::vector<Test> one_sided_tests();
std::vector<Test> all_tests();

// MPI_COMM_WORLD's, asked once.
int world_rank();
int world_size();
// Ends the job.
[[noreturn]] void fail(const std::string& what);

// Called by rank 0.
void print_heading();
void print_row(const Row& row);
void write_json(const std::string& file, const std::vector<Row>& rows);

}  // namespace bench
