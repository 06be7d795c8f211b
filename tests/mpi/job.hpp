// Tests that run as MPI jobs: every rank checks, rank 0 prints one TAP line for each section.
//
//   int main(int argc, char** argv) {
//     MPI_Init(&argc, &argv);
//     section("a message arrives");   // ends the section before; collective
//     CHECK(value == 7);
//     CHECK_EQ(value, 7);
//     return report();                // collective; MPI_Finalize is in it
//   }
#pragma once

#include <mpi.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace job {

struct State {
  int failures = 0;  // of this rank in this section
  int sections = 0, failed_sections = 0;
  std::string name;
};
inline State& state() {
  static State s;
  return s;
}

inline int rank_in(MPI_Comm comm) {
  int r;
  MPI_Comm_rank(comm, &r);
  return r;
}
inline int size_of(MPI_Comm comm) {
  int n;
  MPI_Comm_size(comm, &n);
  return n;
}
inline int rank() {
  return rank_in(MPI_COMM_WORLD);
}
inline int size() {
  return size_of(MPI_COMM_WORLD);
}

// Of so many messages or bytes, those that this machine has the time for: JOB_SHARE=10 is a tenth.
inline int share_of(int number) {
  static const char* const divisor = std::getenv("JOB_SHARE");
  return divisor ? number / std::atoi(divisor) : number;
}

// By messages, not by a collective, so that the tests of those do not lean on them.
inline void end_section() {
  State& s = state();
  if (s.name.empty()) return;
  int all = s.failures;
  if (rank() == 0) {
    for (int r = 1; r < size(); ++r) {
      int theirs;
      MPI_Recv(&theirs, 1, MPI_INT, r, 9999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      all += theirs;
    }
    ++s.sections;
    if (all) ++s.failed_sections;
    std::cout << (all ? "not ok " : "ok ") << s.sections << " - " << s.name << std::endl;
    for (int r = 1; r < size(); ++r) MPI_Send(&all, 1, MPI_INT, r, 9998, MPI_COMM_WORLD);
  } else {
    MPI_Send(&s.failures, 1, MPI_INT, 0, 9999, MPI_COMM_WORLD);
    MPI_Recv(&all, 1, MPI_INT, 0, 9998, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (all) ++s.failed_sections;
  }
  s.failures = 0;
  s.name.clear();
}

inline void section(const std::string& name) {
  end_section();
  state().name = name;
}

inline int report() {
  end_section();
  const State s = state();
  if (rank() == 0) std::cout << "1.." << s.sections << std::endl;
  MPI_Finalize();
  return s.failed_sections != 0;
}

template <class A, class B>
void check_equal(const A& a, const B& b, const char* what, const char* file, int line) {
  if (a == b) return;
  ++state().failures;
  std::cerr << file << ":" << line << ": rank " << rank() << ": " << what << ": " << a << " is not "
            << b << std::endl;
}
inline void check(bool good, const char* what, const char* file, int line) {
  if (good) return;
  ++state().failures;
  std::cerr << file << ":" << line << ": rank " << rank() << ": not true: " << what << std::endl;
}

}  // namespace job

#define CHECK(condition) job::check((condition), #condition, __FILE__, __LINE__)
#define CHECK_EQ(a, b) job::check_equal((a), (b), #a " == " #b, __FILE__, __LINE__)
// The error class of what a call returned.
#define CHECK_CLASS(call, expected)          \
  do {                                       \
    int class_of_call = -1;                  \
    MPI_Error_class((call), &class_of_call); \
    CHECK_EQ(class_of_call, (expected));     \
  } while (0)
