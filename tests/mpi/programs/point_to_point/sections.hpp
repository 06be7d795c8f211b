// Every point-to-point function of MPI-1.3 and its corner cases (MPI 5.0, chapter 3). Each rank
// sends to the next one and receives from the one before, in a ring; alone, a process talks to
// itself.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "job.hpp"

namespace p2p {

inline int next() {
  return (job::rank() + 1) % job::size();
}
inline int before() {
  return (job::rank() + job::size() - 1) % job::size();
}

// Small, at the usual crossover of protocols, large.
inline const std::vector<int> kSizes{0, 1, 1000, 65536, job::share_of(1000003)};

inline char byte_of(int salt, std::size_t i) {
  return static_cast<char>(static_cast<std::size_t>(salt) * 31 + i * 7 + (i >> 8));
}
inline std::vector<char> pattern(int bytes, int salt) {
  std::vector<char> data(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = byte_of(salt, i);
  return data;
}
inline int count_of(const MPI_Status& status, MPI_Datatype type = MPI_CHAR) {
  int count = -1;
  MPI_Get_count(&status, type, &count);
  return count;
}

// Of what was not done: null and inactive requests (section 3.7.3).
inline bool is_empty(const MPI_Status& status) {
  int cancelled = 1;
  MPI_Test_cancelled(&status, &cancelled);
  return status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG &&
         status.MPI_ERROR == MPI_SUCCESS && count_of(status) == 0 && !cancelled;
}
inline MPI_Status scrambled() {
  MPI_Status status{};
  status.MPI_SOURCE = status.MPI_TAG = 4711;
  status.MPI_ERROR = 4712;
  return status;
}

// A message of no bytes that says: I have come this far.
inline void signal(int to, int tag = 900) {
  MPI_Send(nullptr, 0, MPI_CHAR, to, tag, MPI_COMM_WORLD);
}
inline void await(int from, int tag = 900) {
  MPI_Recv(nullptr, 0, MPI_CHAR, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void modes();
void completion();
void probes();
void cancel();
void errors();
void load();
void children();

}  // namespace p2p
