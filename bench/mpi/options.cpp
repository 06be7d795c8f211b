// The command line of mpi_bench and its --help. Parsed by hand rather than with CLI11, so that a
// host with an MPI library and nothing else can build the program.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "bench.hpp"

namespace bench {
namespace {

// Printed by rank 0 only.
void print_help() {
  std::cout
      << "NAME\n"
         "    mpi_bench - what an MPI library costs, by operation and message size\n\n"
         "SYNOPSIS\n"
         "    mpiexec -n RANKS mpi_bench [--test NAME,...] [--sizes A:B|A,B,...] [--rounds N]\n"
         "        [--seconds S] [--warmup N] [--pin] [--multiple] [--json FILE]\n\n"
         "TESTS (point-to-point and one-sided ones use the first and the last rank)\n";
  for (const Test& test : all_tests()) {
    std::string name = test.name;
    name.resize(18, ' ');
    std::cout << "    " << name << test.what << "\n";
  }
  std::cout
      << "\n"
         "OPTIONS\n"
         "    --test NAME,...   only these tests (default: all)\n"
         "    --sizes A:B       message sizes from A to B bytes, each twice the one before;\n"
         "                      K and M are allowed; A,B,... lists them (default 8:1M)\n"
         "    --rounds N        samples of each row, at most (default 2000)\n"
         "    --seconds S       take fewer samples if they need longer than this (default 0.5)\n"
         "    --warmup N        calls before the first sample, at least (default 10); a tenth of\n"
         "                      the time besides, and 0.1 s before the first row\n"
         "    --pin             bind rank i to core i, modulo the number of cores\n"
         "    --multiple        ask for MPI_THREAD_MULTIPLE; thread-rate is run only with it\n"
         "    --json FILE       write the figures to FILE too\n"
         "    --help            this text\n\n"
         "    Collectives are given bytes for each rank (gather, scatter, allgather, alltoall)\n"
         "    or of the whole vector (bcast, reduce, allreduce, scan); their time is that of the\n"
         "    slowest rank.\n";
}

// "8", "64K", "1M"; false if it is none.
bool read_size(const std::string& text, std::size_t& size) {
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text.c_str(), &end, 10);
  std::string unit = end;
  if (end == text.c_str() || text[0] == '-') return false;
  unsigned shift = 0;
  if (unit == "K")
    shift = 10;
  else if (unit == "M")
    shift = 20;
  else if (!unit.empty())
    return false;
  constexpr std::size_t kLargest = std::size_t{1} << 30;
  if (number > kLargest >> shift) return false;
  size = static_cast<std::size_t>(number) << shift;
  return true;
}

// "8:1M" or "8,64,1K". A size of 0 is allowed alone, not at the start of a range, which could not
// double it.
bool read_sizes(const std::string& text, std::vector<std::size_t>& sizes) {
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    const auto colon = item.find(':');
    std::size_t from, to;
    if (!read_size(item.substr(0, colon), from)) return false;
    to = from;
    if (colon != std::string::npos && (!read_size(item.substr(colon + 1), to) || from == 0))
      return false;
    for (std::size_t size = from; size <= to; size *= 2) {
      sizes.push_back(size);
      if (size == 0) break;
    }
  }
  return !sizes.empty();
}

bool read_tests(const std::string& text, std::vector<std::string>& tests) {
  const std::vector<Test> known = all_tests();
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    if (std::none_of(known.begin(), known.end(), [&](const Test& t) { return item == t.name; }))
      return false;
    tests.push_back(item);
  }
  return !tests.empty();
}

// False if the text is no number from `least` to `most`.
template <class T>
bool read_number(const std::string& text, T least, T most, T& number) {
  std::istringstream in(text);
  return in >> number && in.eof() && number >= least && number <= most;
}

// Takes one option with its value; false if either is not understood.
bool read_option(const std::string& option, const std::string& value, Options& options) {
  if (option == "--test") return read_tests(value, options.tests);
  if (option == "--sizes") return read_sizes(value, options.sizes);
  if (option == "--rounds") return read_number(value, 1, 1000000, options.rounds);
  if (option == "--seconds") return read_number(value, 0.001, 3600.0, options.seconds);
  if (option == "--warmup") return read_number(value, 0, 1000000, options.warmup);
  if (option == "--json") options.json = value;
  return option == "--json" && !value.empty();
}

}  // namespace

bool parse_options(int argc, char** argv, bool print, Options& options, int& status) {
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help" || option == "-h") {
      if (print) print_help();
      status = 0;
      return false;
    }
    if (option == "--pin" || option == "--multiple") {
      (option == "--pin" ? options.pin : options.multiple) = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (!read_option(option, value, options)) {
      if (print)
        std::cerr << "mpi_bench: " << option << " '" << value
                  << "' is not understood; see --help\n";
      status = 2;
      return false;
    }
  }
  if (options.sizes.empty()) read_sizes("8:1M", options.sizes);
  return true;
}

}  // namespace bench
