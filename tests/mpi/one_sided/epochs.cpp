// Epochs of each kind: what they order, what they wait for, and what they do not.
#include <vector>

#include "job.hpp"

namespace {

using job::rank;
using job::size;

struct Ints {
  explicit Ints(std::size_t count) : data(count, 0) {
    MPI_Win_create(data.data(), static_cast<MPI_Aint>(count * 4), 4, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &win);
  }
  ~Ints() { MPI_Win_free(&win); }
  std::vector<int> data;
  MPI_Win win = MPI_WIN_NULL;
};

MPI_Group group_of(const std::vector<int>& ranks) {
  MPI_Group all, part;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &part);
  MPI_Group_free(&all);
  return part;
}
void free_group(MPI_Group group) {
  if (group != MPI_GROUP_EMPTY) MPI_Group_free(&group);
}

void fences() {
  job::section("fences with each assert");
  Ints w(static_cast<std::size_t>(size()));
  const int asserts[] = {0, MPI_MODE_NOSTORE, MPI_MODE_NOPUT, MPI_MODE_NOSTORE | MPI_MODE_NOPUT};
  int value = 0;
  MPI_Win_fence(MPI_MODE_NOPRECEDE, w.win);
  for (int turn = 1; turn <= 40; ++turn) {
    value = 100 * turn + rank();
    for (int r = 0; r < size(); ++r) MPI_Put(&value, 1, MPI_INT, r, rank(), 1, MPI_INT, w.win);
    MPI_Win_fence(turn == 40 ? MPI_MODE_NOSUCCEED : asserts[turn % 2], w.win);
    for (int r = 0; r < size(); ++r) CHECK_EQ(w.data[static_cast<std::size_t>(r)], 100 * turn + r);
    if (turn < 40) MPI_Win_fence(MPI_MODE_NOPRECEDE | asserts[turn % 4], w.win);
  }
  MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED, w.win);
}

// Each rank puts to its right neighbour; with MPI_MODE_NOCHECK the program orders post and start.
void posts() {
  job::section("post, start, complete, wait and test, with and without MPI_MODE_NOCHECK");
  Ints w(4);
  const int next = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
  MPI_Group to = group_of({next}), from = group_of({before});
  for (int turn = 1; turn <= 60; ++turn) {
    const int nocheck = turn % 3 == 0 ? MPI_MODE_NOCHECK : 0;
    const int value = 1000 * turn + rank();
    MPI_Win_post(from, nocheck | (turn % 2 ? MPI_MODE_NOSTORE : 0), w.win);
    if (nocheck) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_start(to, nocheck, w.win);
    MPI_Put(&value, 1, MPI_INT, next, 1, 1, MPI_INT, w.win);
    MPI_Win_complete(w.win);
    int flag = 0;
    while (turn % 2 && !flag) MPI_Win_test(w.win, &flag);
    if (turn % 2 == 0) MPI_Win_wait(w.win);
    CHECK_EQ(w.data[1], 1000 * turn + before);
  }
  free_group(to);
  free_group(from);
}

// One rank is the origin for all others, and ranks come at different times.
void one_to_all() {
  job::section("one origin, all other ranks targets; empty groups");
  Ints w(100'000);
  std::vector<int> others;
  for (int r = 1; r < size(); ++r) others.push_back(r);
  MPI_Group targets = group_of(others), origin = group_of({0}), none = group_of({});
  for (int turn = 1; turn <= 5; ++turn) {
    if (rank() == 0) {
      std::vector<int> values(100'000, turn);
      MPI_Win_start(targets, 0, w.win);
      for (const int r : others)
        MPI_Put(values.data(), 100'000, MPI_INT, r, 0, 100'000, MPI_INT, w.win);
      MPI_Win_complete(w.win);
    } else {
      MPI_Win_post(origin, 0, w.win);
      MPI_Win_start(none, 0, w.win);
      MPI_Win_complete(w.win);
      MPI_Win_wait(w.win);
      CHECK_EQ(w.data[0], turn);
      CHECK_EQ(w.data[99'999], turn);
    }
  }
  MPI_Win_post(none, 0, w.win);
  MPI_Win_wait(w.win);
  free_group(targets);
  free_group(origin);
}

// An exclusive lock makes an increment by get and put safe; shared locks let all in at once.
void locks() {
  job::section("exclusive and shared locks");
  Ints w(2);
  MPI_Barrier(MPI_COMM_WORLD);
  const int turns = job::share_of(100);
  for (int i = 0; i < turns; ++i) {
    int value = -1;
    const int target = i % size();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w.win);
    MPI_Get(&value, 1, MPI_INT, target, 0, 1, MPI_INT, w.win);
    MPI_Win_flush_local(target, w.win);
    ++value;
    MPI_Put(&value, 1, MPI_INT, target, 0, 1, MPI_INT, w.win);
    MPI_Win_unlock(target, w.win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  int turns_here = 0;
  for (int i = 0; i < turns; ++i) turns_here += i % size() == rank();
  MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, w.win);
  CHECK_EQ(w.data[0], turns_here * size());
  MPI_Win_unlock(rank(), w.win);

  // All hold the shared lock of rank 0 while they meet in a barrier.
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w.win);
  int got = -1;
  MPI_Get(&got, 1, MPI_INT, 0, 1, 1, MPI_INT, w.win);
  MPI_Win_flush(0, w.win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_unlock(0, w.win);
  CHECK_EQ(got, 0);

  // Locks of several targets at a time, with and without asking.
  for (const int assertion : {0, MPI_MODE_NOCHECK}) {
    const int one = 1;
    for (int r = 0; r < size(); ++r) MPI_Win_lock(MPI_LOCK_SHARED, r, assertion, w.win);
    for (int r = 0; r < size(); ++r)
      MPI_Accumulate(&one, 1, MPI_INT, r, 1, 1, MPI_INT, MPI_SUM, w.win);
    MPI_Win_flush_all(w.win);
    for (int r = size() - 1; r >= 0; --r) MPI_Win_unlock(r, w.win);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  CHECK_EQ(w.data[1], 2 * size());
}

// An exclusive lock waits for all that hold the lock by MPI_Win_lock_all, and the other way round.
void lock_all() {
  job::section("lock_all against exclusive locks");
  Ints w(2);
  MPI_Barrier(MPI_COMM_WORLD);
  const int turns = job::share_of(60);
  for (int i = 0; i < turns; ++i) {
    if ((i + rank()) % 3 == 0) {
      int values[2] = {-1, -1};
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w.win);
      MPI_Get(values, 2, MPI_INT, 0, 0, 2, MPI_INT, w.win);
      MPI_Win_flush(0, w.win);
      CHECK_EQ(values[0], values[1]);  // nobody is half done
      MPI_Win_unlock(0, w.win);
    } else {
      const int one = 1;
      MPI_Win_lock_all(0, w.win);
      MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, w.win);
      MPI_Win_flush_local_all(w.win);
      MPI_Accumulate(&one, 1, MPI_INT, 0, 1, 1, MPI_INT, MPI_SUM, w.win);
      MPI_Win_unlock_all(w.win);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, w.win);
  MPI_Win_sync(w.win);
  CHECK_EQ(w.data[0], w.data[1]);
  MPI_Win_unlock_all(w.win);
}

// Rank 0 never calls a function of the window until the others are done: it is in a barrier.
void passive() {
  job::section("a passive target in a barrier, and one that tests a receive");
  Ints w(1);
  MPI_Barrier(MPI_COMM_WORLD);
  const int one = 1;
  if (rank() > 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w.win);
    MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, w.win);
    MPI_Win_unlock(0, w.win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) CHECK_EQ(w.data[0], size() - 1);
  // Every process fetches from the next while it only flushes locally: nobody may starve another.
  MPI_Win_lock_all(0, w.win);
  for (int i = 0; i < 200; ++i) {
    int got = -1;
    MPI_Fetch_and_op(&one, &got, MPI_INT, (rank() + 1) % size(), 0, MPI_SUM, w.win);
    MPI_Win_flush_local((rank() + 1) % size(), w.win);
    CHECK(got >= i);
  }
  MPI_Win_unlock_all(w.win);
}

// A put or an accumulate that is flushed alone asks for the answer itself if the one before was
// flushed alone as well. So the numbers of operations before a flush vary, and some are long ones,
// which take another way.
void flushes() {
  job::section("flushes after one operation, and after several");
  constexpr int kLong = 40'000;
  Ints w(kLong + 8);
  const int next = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
  std::vector<int> long_value(kLong);
  int sum = 0;
  MPI_Win_lock_all(0, w.win);
  for (int turn = 0; turn < 40; ++turn) {
    const int value = 100 * turn + rank(), puts = turn % 7 == 6 ? 3 : 1, one = 1;
    long_value[kLong - 1] = value;
    if (turn % 9 == 8) MPI_Put(long_value.data(), kLong, MPI_INT, next, 8, kLong, MPI_INT, w.win);
    for (int i = 0; i < puts; ++i) MPI_Put(&value, 1, MPI_INT, next, i, 1, MPI_INT, w.win);
    MPI_Win_flush(next, w.win);
    MPI_Accumulate(&one, 1, MPI_INT, next, 7, 1, MPI_INT, MPI_SUM, w.win);
    turn % 2 ? MPI_Win_flush(next, w.win) : MPI_Win_flush_all(w.win);
    ++sum;
    // The message tells the next rank that all of it is there.
    MPI_Sendrecv(nullptr, 0, MPI_INT, next, 0, nullptr, 0, MPI_INT, before, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Win_sync(w.win);
    const int theirs = 100 * turn + before;
    for (int i = 0; i < puts; ++i) CHECK_EQ(w.data[static_cast<std::size_t>(i)], theirs);
    if (turn % 9 == 8) CHECK_EQ(w.data[kLong + 7], theirs);
    CHECK_EQ(w.data[7], sum);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Win_unlock_all(w.win);
}

// Messages of the program in every communicator, while operations of a window are under way.
void among_messages() {
  job::section("operations among messages of the program");
  Ints w(50'000);
  std::vector<int> values(50'000, rank()), got(50'000, -1), sent(30'000, rank());
  const int next = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
  for (int turn = 0; turn < 5; ++turn) {
    MPI_Request receive, send;
    MPI_Irecv(got.data(), 50'000, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receive);
    MPI_Win_fence(0, w.win);
    MPI_Put(values.data(), 50'000, MPI_INT, next, 0, 50'000, MPI_INT, w.win);
    MPI_Isend(sent.data(), 30'000, MPI_INT, next, turn, MPI_COMM_WORLD, &send);
    MPI_Win_fence(0, w.win);
    MPI_Status status;
    int count = -1;
    MPI_Wait(&receive, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK_EQ(count, 30'000);
    CHECK_EQ(status.MPI_TAG, turn);
    CHECK_EQ(got[29'999], before);
    CHECK_EQ(w.data[49'999], before);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  fences();
  posts();
  one_to_all();
  locks();
  lock_all();
  passive();
  flushes();
  among_messages();
  return job::report();
}
