#include "completion.hpp"

#include <sched.h>

#include <algorithm>

namespace stress {
namespace {

using Requests = std::vector<MPI_Request>;
using Statuses = std::vector<MPI_Status>;

int count(const Requests& requests) {
  return static_cast<int>(requests.size());
}

// What the error handler says of MPI_ERR_IN_STATUS is nothing; it is told what the status has.
void check(int code, const Statuses& statuses, std::size_t given) {
  if (code == MPI_SUCCESS) return;
  const auto end = statuses.begin() + static_cast<std::ptrdiff_t>(given);
  const auto failed = std::find_if(statuses.begin(), end, [](const MPI_Status& status) {
    return status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING;
  });
  MPI_Comm_call_errhandler(MPI_COMM_WORLD, failed != end ? failed->MPI_ERROR : MPI_ERR_INTERN);
}

// One at a time: MPI_Waitany or MPI_Testany, until there is no active request left.
template <class Any>
void by_any(Requests& requests, Statuses& statuses, Any any) {
  for (;;) {
    int index = MPI_UNDEFINED, flag = 1;
    MPI_Status status;
    any(count(requests), requests.data(), &index, &flag, &status);
    if (!flag)
      sched_yield();
    else if (index == MPI_UNDEFINED)
      return;
    else
      statuses[static_cast<std::size_t>(index)] = status;
  }
}

template <class Some>
void by_some(Requests& requests, Statuses& statuses, Some some) {
  std::vector<int> indices(requests.size());
  Statuses found(requests.size());
  for (;;) {
    int finished = 0;
    const int code =
        some(count(requests), requests.data(), &finished, indices.data(), found.data());
    if (finished == MPI_UNDEFINED) return;
    check(code, found, static_cast<std::size_t>(finished));
    if (finished == 0) sched_yield();
    for (std::size_t i = 0; i < static_cast<std::size_t>(finished); ++i)
      statuses[static_cast<std::size_t>(indices[i])] = found[i];
  }
}

void by_test(Requests& requests, Statuses& statuses) {
  std::vector<char> done(requests.size());
  for (std::size_t left = requests.size(); left > 0;) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      int flag = 0;
      if (!done[i]) MPI_Test(&requests[i], &flag, &statuses[i]);
      if (flag) {
        done[i] = 1;
        --left;
      }
    }
    sched_yield();
  }
}

void by_testall(Requests& requests, Statuses& statuses) {
  for (int flag = 0; !flag; sched_yield())
    check(MPI_Testall(count(requests), requests.data(), &flag, statuses.data()), statuses,
          statuses.size());
}

void by_waitall(Requests& requests, Statuses& statuses) {
  check(MPI_Waitall(count(requests), requests.data(), statuses.data()), statuses, statuses.size());
}

void by_wait(Requests& requests, Statuses& statuses) {
  for (std::size_t i = requests.size(); i-- > 0;) MPI_Wait(&requests[i], &statuses[i]);
}

}  // namespace

void complete_all(Requests& requests, Statuses& statuses, WaitStyle style) {
  switch (style) {
    case WaitStyle::wait: return by_wait(requests, statuses);
    case WaitStyle::waitall: return by_waitall(requests, statuses);
    case WaitStyle::waitany:
      return by_any(requests, statuses, [](int n, MPI_Request* r, int* index, int*, MPI_Status* s) {
        MPI_Waitany(n, r, index, s);
      });
    case WaitStyle::testany: return by_any(requests, statuses, MPI_Testany);
    case WaitStyle::waitsome: return by_some(requests, statuses, MPI_Waitsome);
    case WaitStyle::testsome: return by_some(requests, statuses, MPI_Testsome);
    case WaitStyle::test: return by_test(requests, statuses);
    case WaitStyle::testall: return by_testall(requests, statuses);
  }
}

}  // namespace stress
