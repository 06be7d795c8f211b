// Wrong arguments and wrong epochs: the class that the standard has for each, through the window's
// error handler, and memory as it was.
#include <vector>

#include "job.hpp"

// AddressSanitizer ends a program that asks for too much memory, unless it is told that the program
// expects to be refused.
extern "C" const char* __asan_default_options();
const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}

namespace {

using job::rank;
using job::size;

void creation() {
  job::section("errors of the functions that make windows");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int x = 0;
  void* base = nullptr;
  MPI_Win win = nullptr;
  const MPI_Comm world = MPI_COMM_WORLD;
  CHECK_CLASS(MPI_Win_create(&x, -1, 1, MPI_INFO_NULL, world, &win), MPI_ERR_SIZE);
  CHECK_EQ(win, MPI_WIN_NULL);
  CHECK_CLASS(MPI_Win_create(&x, 4, 0, MPI_INFO_NULL, world, &win), MPI_ERR_DISP);
  CHECK_CLASS(MPI_Win_create(&x, 4, -4, MPI_INFO_NULL, world, &win), MPI_ERR_DISP);
  CHECK_CLASS(MPI_Win_create(nullptr, 4, 1, MPI_INFO_NULL, world, &win), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Win_create(&x, 4, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Win_create(&x, 4, 1, reinterpret_cast<MPI_Info>(&x), world, &win), MPI_ERR_INFO);
  CHECK_CLASS(MPI_Win_create(&x, 4, 1, MPI_INFO_NULL, world, nullptr), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Win_allocate(-1, 1, MPI_INFO_NULL, world, &base, &win), MPI_ERR_SIZE);
  CHECK_CLASS(MPI_Win_allocate(4, 1, MPI_INFO_NULL, world, nullptr, &win), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Win_allocate_shared(4, 0, MPI_INFO_NULL, world, &base, &win), MPI_ERR_DISP);
  // More than any machine has; all ranks hear of it.
  CHECK_CLASS(MPI_Win_allocate(MPI_Aint{1} << 60, 1, MPI_INFO_NULL, world, &base, &win),
              MPI_ERR_NO_MEM);
  MPI_Comm node;
  MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN);
  CHECK_CLASS(MPI_Win_allocate_shared(MPI_Aint{1} << 60, 1, MPI_INFO_NULL, node, &base, &win),
              MPI_ERR_RMA_SHARED);
  // A communicator of several nodes cannot share memory.
  if (job::size_of(node) < size())
    CHECK_CLASS(MPI_Win_allocate_shared(4, 1, MPI_INFO_NULL, world, &base, &win),
                MPI_ERR_RMA_SHARED);
  MPI_Comm_free(&node);
}

struct Window {
  Window() : data(10, -1) {
    MPI_Win_create(data.data(), 40, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  }
  ~Window() {
    MPI_Barrier(MPI_COMM_WORLD);
    for (const int x : data) CHECK_EQ(x, -1);
    MPI_Win_free(&win);
  }
  std::vector<int> data;
  MPI_Win win;
};

void handles() {
  job::section("what is not a window");
  int flag;
  MPI_Win null = MPI_WIN_NULL;
  CHECK_CLASS(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Win_free(&null), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Win_free(nullptr), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Win_test(reinterpret_cast<MPI_Win>(MPI_COMM_WORLD), &flag), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Put(&flag, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_WIN_NULL), MPI_ERR_WIN);
  CHECK_CLASS(MPI_Win_set_name(MPI_WIN_NULL, "x"), MPI_ERR_WIN);
  MPI_Win win;
  MPI_Win_create(nullptr, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  const MPI_Win stale = win;
  MPI_Win_free(&win);
  CHECK_CLASS(MPI_Win_sync(stale), MPI_ERR_WIN);
}

void flavors() {
  job::section("functions for other flavours");
  Window w;
  int x = 0;
  CHECK_CLASS(MPI_Win_attach(w.win, &x, 4), MPI_ERR_RMA_FLAVOR);
  CHECK_CLASS(MPI_Win_detach(w.win, &x), MPI_ERR_RMA_FLAVOR);
  MPI_Win dynamic;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
  MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN);
  MPI_Aint bytes;
  int unit;
  void* base;
  CHECK_CLASS(MPI_Win_shared_query(dynamic, 0, &bytes, &unit, &base), MPI_ERR_RMA_FLAVOR);
  CHECK_CLASS(MPI_Win_shared_query(w.win, size(), &bytes, &unit, &base), MPI_ERR_RANK);
  MPI_Win_free(&dynamic);
}

void arguments() {
  job::section("arguments of data functions");
  Window w;
  int x[20] = {}, y[20] = {};
  MPI_Datatype uncommitted, mixed;
  MPI_Type_contiguous(2, MPI_INT, &uncommitted);
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, 8};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
  MPI_Type_create_struct(2, lengths, places, types, &mixed);
  MPI_Type_commit(&mixed);
  MPI_Op user;
  MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &user);
  const int to = (rank() + 1) % size();
  MPI_Win_lock_all(0, w.win);
  const auto put = [&](int n, MPI_Datatype type, int rank, MPI_Aint at, int m, MPI_Datatype there) {
    return MPI_Put(x, n, type, rank, at, m, there, w.win);
  };
  CHECK_CLASS(put(-1, MPI_INT, to, 0, 1, MPI_INT), MPI_ERR_COUNT);
  CHECK_CLASS(put(1, MPI_INT, to, 0, -1, MPI_INT), MPI_ERR_COUNT);
  CHECK_CLASS(put(1, MPI_DATATYPE_NULL, to, 0, 1, MPI_INT), MPI_ERR_TYPE);
  CHECK_CLASS(put(1, MPI_INT, to, 0, 1, uncommitted), MPI_ERR_TYPE);
  CHECK_CLASS(put(1, MPI_INT, size(), 0, 1, MPI_INT), MPI_ERR_RANK);
  CHECK_CLASS(put(1, MPI_INT, -1, 0, 1, MPI_INT), MPI_ERR_RANK);
  CHECK_CLASS(put(1, MPI_INT, to, -1, 1, MPI_INT), MPI_ERR_DISP);
  CHECK_CLASS(put(1, MPI_INT, to, 10, 1, MPI_INT), MPI_ERR_RMA_RANGE);
  CHECK_CLASS(put(11, MPI_INT, to, 0, 11, MPI_INT), MPI_ERR_RMA_RANGE);
  CHECK_CLASS(put(2, MPI_INT, to, 9, 2, MPI_INT), MPI_ERR_RMA_RANGE);
  CHECK_CLASS(put(1, MPI_INT, to, MPI_Aint{1} << 62, 1, MPI_INT), MPI_ERR_DISP);
  CHECK_CLASS(put(3, MPI_INT, to, 0, 2, MPI_INT), MPI_ERR_TRUNCATE);
  CHECK_CLASS(MPI_Put(nullptr, 1, MPI_INT, to, 0, 1, MPI_INT, w.win), MPI_ERR_BUFFER);
  CHECK_CLASS(MPI_Get(x, 1, MPI_INT, to, 0, 2, MPI_INT, w.win), MPI_ERR_TRUNCATE);
  CHECK_CLASS(MPI_Get(x, 1, MPI_INT, to, 40, 1, MPI_INT, w.win), MPI_ERR_RMA_RANGE);
  CHECK_CLASS(MPI_Put_c(x, MPI_Count{1} << 62, MPI_INT, to, 0, 1, MPI_INT, w.win), MPI_ERR_COUNT);
  const auto accumulate = [&](MPI_Datatype from, MPI_Datatype there, MPI_Op op) {
    return MPI_Accumulate(x, 1, from, to, 0, 1, there, op, w.win);
  };
  CHECK_CLASS(accumulate(MPI_INT, MPI_INT, MPI_OP_NULL), MPI_ERR_OP);
  CHECK_CLASS(accumulate(MPI_INT, MPI_INT, user), MPI_ERR_OP);
  CHECK_CLASS(accumulate(MPI_INT, MPI_INT, MPI_NO_OP), MPI_ERR_OP);
  CHECK_CLASS(accumulate(MPI_DOUBLE, MPI_DOUBLE, MPI_BAND), MPI_ERR_OP);
  CHECK_CLASS(accumulate(MPI_INT, MPI_INT, MPI_MINLOC), MPI_ERR_OP);
  CHECK_CLASS(accumulate(MPI_FLOAT, MPI_INT, MPI_SUM), MPI_ERR_TYPE);
  CHECK_CLASS(accumulate(mixed, mixed, MPI_REPLACE), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Get_accumulate(x, 1, MPI_INT, y, 0, MPI_INT, to, 0, 1, MPI_INT, MPI_SUM, w.win),
              MPI_ERR_TRUNCATE);
  CHECK_CLASS(MPI_Fetch_and_op(x, y, mixed, to, 0, MPI_SUM, w.win), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Fetch_and_op(x, y, MPI_INT, to, 0, MPI_OP_NULL, w.win), MPI_ERR_OP);
  CHECK_CLASS(MPI_Compare_and_swap(x, y, x, MPI_DOUBLE, to, 0, w.win), MPI_ERR_TYPE);
  CHECK_CLASS(MPI_Compare_and_swap(x, nullptr, x, MPI_INT, to, 0, w.win), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Compare_and_swap(x, y, x, MPI_INT, to, 10, w.win), MPI_ERR_RMA_RANGE);
  CHECK_CLASS(MPI_Rput(x, 1, MPI_INT, to, 0, 1, MPI_INT, w.win, nullptr), MPI_ERR_ARG);
  // MPI_REPLACE and MPI_NO_OP are no reductions.
  CHECK_CLASS(MPI_Reduce_local(x, y, 1, MPI_INT, MPI_REPLACE), MPI_ERR_OP);
  MPI_Win_unlock_all(w.win);
  MPI_Type_free(&uncommitted);
  MPI_Type_free(&mixed);
  MPI_Op_free(&user);
}

void epochs() {
  job::section("wrong epochs, asserts, lock types and groups");
  Window w;
  const int to = (rank() + 1) % size();
  int x = -1, flag;
  MPI_Request request;
  MPI_Group world, empty = MPI_GROUP_EMPTY;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const auto put = [&] { return MPI_Put(&x, 1, MPI_INT, to, 0, 1, MPI_INT, w.win); };

  CHECK_CLASS(put(), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_unlock(to, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_unlock_all(w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_flush(to, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_flush_all(w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_flush_local(to, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_flush_local_all(w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_complete(w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_wait(w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_test(w.win, &flag), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_lock(77, to, 0, w.win), MPI_ERR_LOCKTYPE);
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, size(), 0, w.win), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, to, MPI_MODE_NOPUT, w.win), MPI_ERR_ASSERT);
  CHECK_CLASS(MPI_Win_lock_all(1, w.win), MPI_ERR_ASSERT);
  CHECK_CLASS(MPI_Win_fence(MPI_MODE_NOCHECK, w.win), MPI_ERR_ASSERT);
  CHECK_CLASS(MPI_Win_post(empty, MPI_MODE_NOPRECEDE, w.win), MPI_ERR_ASSERT);
  CHECK_CLASS(MPI_Win_start(empty, MPI_MODE_NOPUT, w.win), MPI_ERR_ASSERT);
  CHECK_CLASS(MPI_Win_start(MPI_GROUP_NULL, 0, w.win), MPI_ERR_GROUP);

  MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w.win);
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_lock_all(0, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_start(empty, 0, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_fence(0, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_unlock_all(w.win), MPI_ERR_RMA_SYNC);
  MPI_Win kept = w.win;
  CHECK_CLASS(MPI_Win_free(&kept), MPI_ERR_RMA_SYNC);
  CHECK_EQ(kept, w.win);
  if (size() > 1)
    CHECK_CLASS(MPI_Put(&x, 1, MPI_INT, (to + 1) % size(), 0, 1, MPI_INT, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_unlock(to, w.win), MPI_SUCCESS);

  MPI_Win_lock_all(0, w.win);
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_unlock(to, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_lock_all(0, w.win), MPI_ERR_RMA_SYNC);
  MPI_Win_unlock_all(w.win);

  MPI_Win_start(empty, 0, w.win);
  CHECK_CLASS(put(), MPI_ERR_RMA_SYNC);  // not in the group
  CHECK_CLASS(MPI_Win_start(empty, 0, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_fence(0, w.win), MPI_ERR_RMA_SYNC);
  MPI_Win_complete(w.win);
  MPI_Win_post(empty, 0, w.win);
  CHECK_CLASS(MPI_Win_post(empty, 0, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_fence(0, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_free(&kept), MPI_ERR_RMA_SYNC);
  MPI_Win_wait(w.win);

  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_fence(0, w.win);
  CHECK_CLASS(MPI_Rput(&x, 1, MPI_INT, to, 0, 1, MPI_INT, w.win, &request), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(put(), MPI_SUCCESS);
  CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_post(empty, 0, w.win), MPI_ERR_RMA_SYNC);
  CHECK_CLASS(MPI_Win_free(&kept), MPI_ERR_RMA_SYNC);
  MPI_Win_fence(0, w.win);
  // The epoch that this fence has opened has no operations, so another kind may follow.
  MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w.win);
  MPI_Win_unlock(to, w.win);
  CHECK_CLASS(put(), MPI_ERR_RMA_SYNC);
  MPI_Group_free(&world);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  creation();
  handles();
  flavors();
  arguments();
  epochs();
  return job::report();
}
