// Each data function, in all its forms: short and long, derived types, MPI_PROC_NULL, nothing at
// all. What a function does to elements of many types is in random.cpp.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "job.hpp"

namespace {

using job::rank;
using job::size;

int next() {
  return (rank() + 1) % size();
}
int before() {
  return (rank() + size() - 1) % size();
}

// A window of ints, all -1, made by MPI_Win_create or MPI_Win_allocate.
struct Ints {
  Ints(int count, bool allocate) : own(static_cast<std::size_t>(count)), n(count) {
    const MPI_Aint bytes = static_cast<MPI_Aint>(count) * 4;
    if (allocate)
      MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &data, &win);
    else
      MPI_Win_create(data = own.data(), bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    clear();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~Ints() { MPI_Win_free(&win); }
  void clear() { std::fill(data, data + n, -1); }

  std::vector<int> own;
  int n;
  int* data = nullptr;
  MPI_Win win = MPI_WIN_NULL;
};

void put_and_get(bool allocate) {
  job::section(std::string("put and get, windows that are ") +
               (allocate ? "allocated" : "created"));
  for (const int count : {1, 100, 5000, 300'000}) {
    Ints w(count, allocate);
    std::vector<int> from(static_cast<std::size_t>(count)), into(from.size(), -2);
    std::iota(from.begin(), from.end(), 1000 * rank());
    MPI_Win_fence(0, w.win);
    MPI_Put(from.data(), count, MPI_INT, next(), 0, count, MPI_INT, w.win);
    MPI_Win_fence(0, w.win);
    for (int i = 0; i < count; i += 97) CHECK_EQ(w.data[i], 1000 * before() + i);
    CHECK_EQ(w.data[count - 1], 1000 * before() + count - 1);
    MPI_Get(into.data(), count, MPI_INT, next(), 0, count, MPI_INT, w.win);
    MPI_Win_fence(0, w.win);
    CHECK(into == from);
    std::fill(into.begin(), into.end(), -2);
    MPI_Put_c(from.data(), count, MPI_INT, before(), 0, count, MPI_INT, w.win);
    MPI_Win_fence(0, w.win);
    MPI_Get_c(into.data(), count, MPI_INT, before(), 0, count, MPI_INT, w.win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win);
    CHECK(into == from);
    CHECK_EQ(w.data[0], 1000 * next());
  }
}

void derived_types() {
  job::section("derived types at both ends: columns of a matrix");
  constexpr int kN = 200;
  Ints w(kN * kN, false);
  MPI_Datatype column;
  MPI_Type_vector(kN, 1, kN, MPI_INT, &column);
  MPI_Type_commit(&column);
  std::vector<int> row(kN), matrix(kN * kN, -3);
  std::iota(row.begin(), row.end(), 7 * rank());
  MPI_Win_fence(0, w.win);
  MPI_Put(row.data(), kN, MPI_INT, next(), 5, 1, column, w.win);  // row to column
  MPI_Win_fence(0, w.win);
  MPI_Get(matrix.data() + 9, 1, column, next(), 5, 1, column, w.win);  // column to column
  MPI_Win_fence(0, w.win);
  for (int i = 0; i < kN; ++i) {
    CHECK_EQ(w.data[i * kN + 5], 7 * before() + i);
    CHECK_EQ(w.data[i * kN + 6], -1);
    CHECK_EQ(matrix[static_cast<std::size_t>(i * kN + 9)], 7 * rank() + i);
  }
  MPI_Win_fence(0, w.win);  // nobody changes what has been looked at
  MPI_Accumulate(matrix.data() + 9, 1, column, next(), 5, 1, column, MPI_SUM, w.win);
  MPI_Type_free(&column);
  MPI_Win_fence(0, w.win);
  for (int i = 0; i < kN; ++i) CHECK_EQ(w.data[i * kN + 5], 2 * (7 * before() + i));
}

void accumulates(bool allocate) {
  job::section(std::string("accumulates of all ranks on one, windows that are ") +
               (allocate ? "allocated" : "created"));
  for (const int count : {1, 50, 20'000}) {
    Ints w(count, allocate);
    std::vector<int> ones(static_cast<std::size_t>(count), 1), got(ones.size(), -2);
    MPI_Win_fence(0, w.win);
    MPI_Accumulate(ones.data(), count, MPI_INT, 0, 0, count, MPI_INT, MPI_SUM, w.win);
    MPI_Accumulate_c(ones.data(), count, MPI_INT, 0, 0, count, MPI_INT, MPI_SUM, w.win);
    MPI_Win_fence(0, w.win);
    if (rank() == 0)
      for (int i = 0; i < count; ++i) CHECK_EQ(w.data[i], 2 * size() - 1);
    MPI_Win_fence(0, w.win);  // nobody changes what is being looked at
    MPI_Get_accumulate(ones.data(), count, MPI_INT, got.data(), count, MPI_INT, 0, 0, count,
                       MPI_INT, MPI_SUM, w.win);
    MPI_Win_fence(0, w.win);
    for (const int x : got) CHECK(x >= 2 * size() - 1 && x <= 3 * size() - 2);
    // MPI_NO_OP: the origin's buffer is not looked at.
    MPI_Get_accumulate_c(nullptr, 0, MPI_DATATYPE_NULL, got.data(), count, MPI_INT, 0, 0, count,
                         MPI_INT, MPI_NO_OP, w.win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win);
    for (const int x : got) CHECK_EQ(x, 3 * size() - 1);
  }
}

void atomics(bool allocate) {
  job::section(std::string("one counter and one lock for all ranks, windows that are ") +
               (allocate ? "allocated" : "created"));
  Ints w(4, allocate);
  std::fill(w.data, w.data + 4, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  const int turns = job::share_of(500);
  const int one = 1;
  std::vector<int> tickets;
  MPI_Win_lock_all(0, w.win);
  for (int i = 0; i < turns; ++i) {
    int ticket = -1;
    MPI_Fetch_and_op(&one, &ticket, MPI_INT, 0, 1, MPI_SUM, w.win);
    MPI_Win_flush(0, w.win);
    CHECK(tickets.empty() || ticket > tickets.back());
    tickets.push_back(ticket);
  }
  // A lock of compare-and-swap around an increment that is not atomic.
  for (int i = 0; i < turns / 10; ++i) {
    const int mine = rank() + 1, free = 0;
    int holder = -1, value = -1;
    do {
      MPI_Compare_and_swap(&mine, &free, &holder, MPI_INT, 0, 2, w.win);
      MPI_Win_flush(0, w.win);
    } while (holder != 0);
    MPI_Get(&value, 1, MPI_INT, 0, 3, 1, MPI_INT, w.win);
    MPI_Win_flush(0, w.win);
    ++value;
    MPI_Put(&value, 1, MPI_INT, 0, 3, 1, MPI_INT, w.win);
    MPI_Win_flush(0, w.win);
    MPI_Fetch_and_op(&free, &holder, MPI_INT, 0, 2, MPI_REPLACE, w.win);
    MPI_Win_flush(0, w.win);
    CHECK_EQ(holder, mine);
  }
  MPI_Win_unlock_all(w.win);
  std::vector<int> all(static_cast<std::size_t>(size() * turns));
  MPI_Gather(tickets.data(), turns, MPI_INT, all.data(), turns, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank() == 0) {
    std::sort(all.begin(), all.end());
    for (int i = 0; i < size() * turns; ++i) CHECK_EQ(all[static_cast<std::size_t>(i)], i);
    CHECK_EQ(w.data[1], size() * turns);
    CHECK_EQ(w.data[2], 0);
    CHECK_EQ(w.data[3], size() * (turns / 10));
  }
}

void requests() {
  job::section("operations with requests");
  for (const int count : {3, 100'000}) {
    Ints w(2 * count, false);
    const auto n = static_cast<std::size_t>(count);
    std::vector<int> from(n), into(n, -2), before_it(n, -2), ones(n, 1);
    std::iota(from.begin(), from.end(), rank());
    MPI_Request r[2];
    MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, w.win);
    MPI_Rput(from.data(), count, MPI_INT, next(), 0, count, MPI_INT, w.win, &r[0]);
    MPI_Rput_c(ones.data(), count, MPI_INT, next(), count, count, MPI_INT, w.win, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    CHECK_EQ(r[0], MPI_REQUEST_NULL);
    MPI_Win_flush(next(), w.win);
    MPI_Rget(into.data(), count, MPI_INT, next(), 0, count, MPI_INT, w.win, &r[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    CHECK(into == from);
    std::fill(into.begin(), into.end(), -2);
    MPI_Rget_c(into.data(), count, MPI_INT, next(), 0, count, MPI_INT, w.win, &r[0]);
    int flag = 0;
    while (!flag) MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
    CHECK(into == from);
    MPI_Raccumulate(ones.data(), count, MPI_INT, next(), 0, count, MPI_INT, MPI_SUM, w.win, &r[0]);
    MPI_Raccumulate_c(ones.data(), count, MPI_INT, next(), 0, count, MPI_INT, MPI_SUM, w.win,
                      &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Rget_accumulate(ones.data(), count, MPI_INT, into.data(), count, MPI_INT, next(), 0, count,
                        MPI_INT, MPI_SUM, w.win, &r[0]);
    MPI_Rget_accumulate_c(ones.data(), count, MPI_INT, before_it.data(), count, MPI_INT, next(), 0,
                          count, MPI_INT, MPI_REPLACE, w.win, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    for (std::size_t i = 0; i < n; i += 31) {  // accumulates of one origin are in order
      CHECK_EQ(into[i], from[i] + 2);
      CHECK_EQ(before_it[i], from[i] + 3);
    }
    MPI_Win_unlock(next(), w.win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQ(w.data[0], 1);
    CHECK_EQ(w.data[2 * count - 1], 1);
  }
}

void nothing() {
  job::section("operations on MPI_PROC_NULL, and of nothing");
  Ints w(2, false);
  int x = 5, y = 6;
  MPI_Request r = MPI_REQUEST_NULL;
  MPI_Win_lock_all(0, w.win);
  MPI_Put(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, w.win);
  MPI_Get(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, w.win);
  MPI_Accumulate(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, w.win);
  MPI_Fetch_and_op(&x, &y, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, w.win);
  MPI_Compare_and_swap(&x, &x, &y, MPI_INT, MPI_PROC_NULL, 0, w.win);
  MPI_Rput(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, w.win, &r);
  CHECK(r != MPI_REQUEST_NULL);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Win_flush(MPI_PROC_NULL, w.win);
  MPI_Put(&x, 0, MPI_INT, next(), 0, 0, MPI_INT, w.win);
  MPI_Put(&x, 0, MPI_INT, next(), 0, 2, MPI_INT, w.win);
  MPI_Rget(&x, 0, MPI_INT, next(), 2, 0, MPI_INT, w.win, &r);
  MPI_Wait(&r, MPI_STATUS_IGNORE);
  MPI_Win_unlock_all(w.win);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_EQ(w.data[0], -1);
  CHECK_EQ(x, 5);
  CHECK_EQ(y, 6);
}

// Origins that never enter the library between their operations must not need to.
void many_operations() {
  job::section("many operations in one epoch, in order");
  constexpr int kMany = 20'000;
  Ints w(16, false);
  std::fill(w.data, w.data + 16, 0);
  MPI_Win_fence(0, w.win);
  std::vector<int> values(kMany), results(kMany, -1);
  std::iota(values.begin(), values.end(), 1);
  for (int i = 0; i < kMany; ++i)
    MPI_Get_accumulate(&values[static_cast<std::size_t>(i)], 1, MPI_INT,
                       &results[static_cast<std::size_t>(i)], 1, MPI_INT, next(), 3, 1, MPI_INT,
                       MPI_REPLACE, w.win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win);
  for (int i = 0; i < kMany; ++i) CHECK_EQ(results[static_cast<std::size_t>(i)], i);
  CHECK_EQ(w.data[3], kMany);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  for (const bool allocate : {false, true}) {
    put_and_get(allocate);
    accumulates(allocate);
    atomics(allocate);
  }
  derived_types();
  requests();
  nothing();
  many_operations();
  return job::report();
}
