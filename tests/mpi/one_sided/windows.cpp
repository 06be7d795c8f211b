// Windows: each flavour, its attributes, memory, names, hints, groups, error handlers, and the end.
#include <cstring>
#include <string>
#include <vector>

#include "job.hpp"

namespace {

using job::rank;
using job::size;

template <class T>
T attribute(MPI_Win win, int keyval) {
  T* value = nullptr;
  int flag = 0;
  MPI_Win_get_attr(win, keyval, &value, &flag);
  CHECK(flag != 0 && value != nullptr);
  return *value;
}

void check_attributes(MPI_Win win, const void* base, MPI_Aint bytes, int unit, int flavor) {
  void* at = &at;
  int flag = 0;
  MPI_Win_get_attr(win, MPI_WIN_BASE, &at, &flag);
  CHECK(flag != 0);
  CHECK_EQ(at, base);
  CHECK_EQ(attribute<MPI_Aint>(win, MPI_WIN_SIZE), bytes);
  CHECK_EQ(attribute<int>(win, MPI_WIN_DISP_UNIT), unit);
  CHECK_EQ(attribute<int>(win, MPI_WIN_CREATE_FLAVOR), flavor);
  CHECK_EQ(attribute<int>(win, MPI_WIN_MODEL), MPI_WIN_UNIFIED);
  CHECK_CLASS(MPI_Win_set_attr(win, MPI_WIN_SIZE, nullptr), MPI_ERR_KEYVAL);
}

void return_errors(MPI_Win win) {
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
}

void flavors() {
  job::section("windows of each flavour and their attributes");
  std::vector<double> mine(static_cast<std::size_t>(rank() + 1));
  MPI_Win win;
  const auto bytes = static_cast<MPI_Aint>(mine.size() * sizeof(double));
  MPI_Win_create(mine.data(), bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  return_errors(win);
  check_attributes(win, mine.data(), bytes, sizeof(double), MPI_WIN_FLAVOR_CREATE);
  CHECK_EQ(MPI_Win_toint(win) != 0 && MPI_Win_fromint(MPI_Win_toint(win)) == win, true);
  MPI_Win_free(&win);
  CHECK_EQ(win, MPI_WIN_NULL);

  MPI_Win_create(nullptr, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  return_errors(win);
  check_attributes(win, nullptr, 0, 1, MPI_WIN_FLAVOR_CREATE);
  MPI_Win_free(&win);

  MPI_Win_create_c(mine.data(), bytes, 3, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  return_errors(win);
  check_attributes(win, mine.data(), bytes, 3, MPI_WIN_FLAVOR_CREATE);
  MPI_Win_free(&win);

  int* memory = nullptr;
  MPI_Win_allocate(100 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  return_errors(win);
  check_attributes(win, memory, 100 * sizeof(int), sizeof(int), MPI_WIN_FLAVOR_ALLOCATE);
  for (int i = 0; i < 100; ++i) memory[i] = i;
  MPI_Win_free(&win);
  MPI_Win_allocate_c(rank() == 0 ? 0 : 10, 2, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  return_errors(win);
  check_attributes(win, memory, rank() == 0 ? 0 : 10, 2, MPI_WIN_FLAVOR_ALLOCATE);
  MPI_Win_free(&win);

  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  return_errors(win);
  check_attributes(win, MPI_BOTTOM, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
  MPI_Win_free(&win);
}

void shared_memory() {
  job::section("shared memory: neighbours, gaps, loads and stores");
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  const int me = job::rank_in(node), n = job::size_of(node);
  for (const char* gaps : {"false", "true"}) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", gaps);
    int* mine = nullptr;
    MPI_Win win;
    // The first rank has nothing.
    const MPI_Aint bytes = me == 0 && n > 1 ? 0 : (me + 1) * 4;
    MPI_Win_allocate_shared(bytes, 4, info, node, &mine, &win);
    MPI_Info_free(&info);
    return_errors(win);
    check_attributes(win, mine, bytes, 4, MPI_WIN_FLAVOR_SHARED);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    for (int i = 0; i < bytes / 4; ++i) mine[i] = 100 * me + i;
    MPI_Win_sync(win);
    MPI_Barrier(node);
    MPI_Win_sync(win);
    const int* expected = nullptr;
    for (int r = 0; r < n; ++r) {
      MPI_Aint length = -1;
      int unit = -1;
      int* theirs = nullptr;
      MPI_Win_shared_query(win, r, &length, &unit, &theirs);
      CHECK_EQ(length, r == 0 && n > 1 ? 0 : (r + 1) * 4);
      CHECK_EQ(unit, 4);
      for (int i = 0; i < length / 4; ++i) CHECK_EQ(theirs[i], 100 * r + i);
      if (std::strcmp(gaps, "false") == 0 && expected && length > 0) CHECK_EQ(theirs, expected);
      if (length > 0) expected = theirs + length / 4;
    }
    MPI_Aint length = -1, unit = -1;
    int* first = nullptr;
    MPI_Win_shared_query_c(win, MPI_PROC_NULL, &length, &unit, &first);
    CHECK_EQ(length, n > 1 ? 8 : 4);
    CHECK_EQ(first[0], n > 1 ? 100 : 0);
    MPI_Barrier(node);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
  }
  MPI_Comm_free(&node);

  job::section("MPI_Win_shared_query of other windows");
  int value = 0, unit = 0;
  MPI_Win win;
  MPI_Win_create(&value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  return_errors(win);
  for (int r = 0; r < size(); ++r) {
    MPI_Aint length = -1;
    void* at = nullptr;
    CHECK_CLASS(MPI_Win_shared_query(win, r, &length, &unit, &at), MPI_SUCCESS);
    CHECK_EQ(length, r == rank() ? 4 : 0);
  }
  MPI_Win_free(&win);
}

int deletions = 0;
int on_delete(MPI_Win, int, void* value, void* extra) {
  CHECK_EQ(*static_cast<int*>(extra), 5);
  CHECK_EQ(*static_cast<int*>(value), 7);
  ++deletions;
  return MPI_SUCCESS;
}

void attributes_names_hints() {
  job::section("attributes, names, hints and groups of windows");
  MPI_Win win;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "no_locks", "false");
  MPI_Info_set(info, "accumulate_ordering", "none");
  MPI_Info_set(info, "unheard_of", "true");
  MPI_Win_create(nullptr, 0, 1, info, MPI_COMM_WORLD, &win);
  return_errors(win);
  const auto hint = [&](const char* key) {
    MPI_Info used;
    MPI_Win_get_info(win, &used);
    char value[100] = "";
    int flag = 0, length = sizeof value;
    MPI_Info_get_string(used, key, &length, value, &flag);
    MPI_Info_free(&used);
    return flag ? std::string(value) : std::string("absent");
  };
  CHECK_EQ(hint("accumulate_ordering"), "none");
  CHECK_EQ(hint("no_locks"), "false");
  CHECK_EQ(hint("accumulate_ops"), "same_op_no_op");
  CHECK_EQ(hint("same_size"), "false");
  CHECK_EQ(hint("unheard_of"), "absent");
  CHECK_EQ(hint("alloc_shared_noncontig"), "absent");
  MPI_Info_set(info, "same_size", "true");
  MPI_Win_set_info(win, info);
  CHECK_EQ(hint("same_size"), "true");
  MPI_Info_free(&info);
  CHECK_CLASS(MPI_Win_set_info(win, MPI_INFO_NULL), MPI_ERR_INFO);

  char name[MPI_MAX_OBJECT_NAME];
  int length = -1;
  MPI_Win_get_name(win, name, &length);
  CHECK_EQ(length, 0);
  MPI_Win_set_name(win, "halo");
  MPI_Win_get_name(win, name, &length);
  CHECK_EQ(std::string(name), "halo");
  MPI_Win_get_name(MPI_WIN_NULL, name, &length);
  CHECK_EQ(std::string(name), "MPI_WIN_NULL");

  MPI_Group group, world;
  int result;
  MPI_Win_get_group(win, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_compare(group, world, &result);
  CHECK_EQ(result, MPI_IDENT);
  MPI_Group_free(&group);
  MPI_Group_free(&world);

  int extra = 5, value = 7, keyval, other, flag;
  void* got;
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &keyval, &extra);
  MPI_Win_create_keyval(MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, &other, nullptr);
  MPI_Win_get_attr(win, keyval, &got, &flag);
  CHECK_EQ(flag, 0);
  MPI_Win_set_attr(win, keyval, &value);
  MPI_Win_set_attr(win, other, &value);
  MPI_Win_get_attr(win, keyval, &got, &flag);
  CHECK(flag != 0 && got == &value);
  MPI_Win_delete_attr(win, other);
  CHECK_CLASS(MPI_Win_delete_attr(win, other), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Win_get_attr(win, 12345678, &got, &flag), MPI_ERR_KEYVAL);
  MPI_Win_free_keyval(&other);
  CHECK_EQ(other, MPI_KEYVAL_INVALID);
  MPI_Win_free_keyval(&keyval);
  CHECK_EQ(deletions, 0);
  MPI_Win_free(&win);
  CHECK_EQ(deletions, 1);
}

MPI_Win raised_on;
int raised_code = 0, raised = 0;
void handler(MPI_Win* win, int* code, ...) {
  raised_on = *win;
  raised_code = *code;
  ++raised;
}

void errhandlers() {
  job::section("error handlers of windows");
  MPI_Win win;
  MPI_Errhandler mine, got;
  MPI_Win_create(nullptr, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_get_errhandler(win, &got);
  CHECK_EQ(got, MPI_ERRORS_ARE_FATAL);
  MPI_Win_create_errhandler(handler, &mine);
  MPI_Win_set_errhandler(win, mine);
  MPI_Win_get_errhandler(win, &got);
  CHECK_EQ(got, mine);
  MPI_Errhandler_free(&got);
  MPI_Errhandler_free(&mine);
  CHECK_EQ(MPI_Win_call_errhandler(win, MPI_ERR_OTHER), MPI_SUCCESS);
  CHECK_EQ(raised, 1);
  CHECK_EQ(raised_on, win);
  CHECK_EQ(raised_code, MPI_ERR_OTHER);
  CHECK_CLASS(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
  CHECK_EQ(raised, 2);
  CHECK_EQ(raised_code, MPI_ERR_RMA_SYNC);
  MPI_Win_free(&win);
}

void many() {
  job::section("many windows, one after the other and at a time");
  std::vector<MPI_Win> wins(40);
  std::vector<int> memory(40, -1);
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < wins.size(); ++i)
      MPI_Win_create(&memory[i], sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[i]);
    for (MPI_Win win : wins) MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    const int next = (rank() + 1) % size();
    std::vector<int> values(wins.size());
    for (std::size_t i = 0; i < wins.size(); ++i) {
      values[i] = 1000 * turn + 50 * rank() + static_cast<int>(i);
      MPI_Put(&values[i], 1, MPI_INT, next, 0, 1, MPI_INT, wins[i]);
    }
    for (MPI_Win win : wins) MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    const int before = (rank() + size() - 1) % size();
    for (std::size_t i = 0; i < wins.size(); ++i)
      CHECK_EQ(memory[i], 1000 * turn + 50 * before + static_cast<int>(i));
    for (MPI_Win& win : wins) MPI_Win_free(&win);
  }
}

void attached() {
  job::section("dynamic windows: attached, detached, attached again");
  MPI_Win win;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  return_errors(win);
  std::vector<int> a(10, -1), b(10, -1);
  CHECK_CLASS(MPI_Win_attach(win, a.data(), 40), MPI_SUCCESS);
  CHECK_CLASS(MPI_Win_attach(win, a.data() + 9, 40), MPI_ERR_RMA_ATTACH);
  CHECK_CLASS(MPI_Win_attach(win, a.data() + 2, 4), MPI_ERR_RMA_ATTACH);
  CHECK_CLASS(MPI_Win_attach(win, a.data(), 4), MPI_ERR_RMA_ATTACH);
  CHECK_CLASS(MPI_Win_attach(win, b.data(), -1), MPI_ERR_SIZE);
  CHECK_CLASS(MPI_Win_attach(win, b.data(), 40), MPI_SUCCESS);
  CHECK_CLASS(MPI_Win_detach(win, b.data() + 1), MPI_ERR_BASE);
  CHECK_CLASS(MPI_Win_detach(win, b.data()), MPI_SUCCESS);
  MPI_Aint mine[2];
  MPI_Get_address(a.data(), &mine[0]);
  MPI_Get_address(b.data(), &mine[1]);
  std::vector<MPI_Aint> all(static_cast<std::size_t>(2 * size()));
  MPI_Allgather(mine, 2, MPI_AINT, all.data(), 2, MPI_AINT, MPI_COMM_WORLD);
  const int next = (rank() + 1) % size();
  const MPI_Aint there = all[static_cast<std::size_t>(2 * next)];
  const MPI_Aint gone = all[static_cast<std::size_t>(2 * next + 1)];
  std::vector<int> value(40'000, rank());
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
  MPI_Put(value.data(), 10, MPI_INT, next, there, 10, MPI_INT, win);
  CHECK_CLASS(MPI_Win_flush(next, win), MPI_SUCCESS);
  // Short and long, each way: an error where it is completed, and memory as it was.
  for (const int count : {1, 40'000}) {
    MPI_Put(value.data(), count, MPI_INT, next, gone, count, MPI_INT, win);
    CHECK_CLASS(MPI_Win_flush(next, win), MPI_ERR_RMA_RANGE);
    CHECK_CLASS(MPI_Win_flush(next, win), MPI_SUCCESS);
    MPI_Accumulate(value.data(), count, MPI_INT, next, gone, count, MPI_INT, MPI_SUM, win);
    CHECK_CLASS(MPI_Win_flush(next, win), MPI_ERR_RMA_RANGE);
    MPI_Get(value.data(), count, MPI_INT, next, gone, count, MPI_INT, win);
    CHECK_CLASS(MPI_Win_flush_local(next, win), MPI_ERR_RMA_RANGE);
    MPI_Request request;
    MPI_Rget(value.data(), count, MPI_INT, next, gone, count, MPI_INT, win, &request);
    CHECK_CLASS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_RMA_RANGE);
    CHECK_CLASS(MPI_Win_flush(next, win), MPI_ERR_RMA_RANGE);
  }
  MPI_Put(value.data(), 11, MPI_INT, next, there, 11, MPI_INT, win);  // one too many
  CHECK_CLASS(MPI_Win_unlock(next, win), MPI_ERR_RMA_RANGE);
  MPI_Barrier(MPI_COMM_WORLD);
  const int before = (rank() + size() - 1) % size();
  for (const int x : a) CHECK_EQ(x, before);
  for (const int x : b) CHECK_EQ(x, -1);
  CHECK_CLASS(MPI_Win_detach(win, a.data()), MPI_SUCCESS);
  MPI_Win_free(&win);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  flavors();
  shared_memory();
  attributes_names_hints();
  errhandlers();
  many();
  attached();
  return job::report();
}
