// MPI_Info.
#include "comm_checks.hpp"

#include <cstring>
#include <string>

using namespace job;

namespace {

std::string get(MPI_Info info, const char* key, int room = MPI_MAX_INFO_VAL - 1) {
  char value[MPI_MAX_INFO_VAL + 1];
  std::memset(value, '#', sizeof value);
  int flag = -1;
  MPI_Info_get(info, key, room, value, &flag);
  return flag ? value : "(none)";
}
int keys_of(MPI_Info info) {
  int n = -1;
  MPI_Info_get_nkeys(info, &n);
  return n;
}

void pairs() {
  section("keys and values");
  MPI_Info info, dup;
  MPI_Info_create(&info);
  CHECK_EQ(keys_of(info), 0);
  MPI_Info_set(info, "sea", "north");
  MPI_Info_set(info, "boat", "small");
  MPI_Info_set(info, "sea", "baltic");
  CHECK_EQ(keys_of(info), 2);
  CHECK_EQ(get(info, "sea"), "baltic");
  CHECK_EQ(get(info, "boat"), "small");
  CHECK_EQ(get(info, "Sea"), "(none)");
#ifndef MPICH  // which refuses what the standard lets it cut off
  CHECK_EQ(get(info, "sea", 3), "bal");
#endif
  CHECK_EQ(get(info, "sea", 6), "baltic");
  int length = -1, flag = -1;
  MPI_Info_get_valuelen(info, "sea", &length, &flag);
  CHECK_EQ(length, 6);
  CHECK_EQ(flag, 1);
  length = -7;
  MPI_Info_get_valuelen(info, "ocean", &length, &flag);
  CHECK_EQ(length, -7);  // untouched
  CHECK_EQ(flag, 0);
  char key[MPI_MAX_INFO_KEY];
  std::string all;
  for (int i = 0; i < 2; ++i) {
    MPI_Info_get_nthkey(info, i, key);
    all += key;
  }
  CHECK(all == "seaboat" || all == "boatsea");

  MPI_Info_dup(info, &dup);
  MPI_Info_delete(info, "sea");
  CHECK_EQ(keys_of(info), 1);
  CHECK_EQ(get(info, "sea"), "(none)");
  CHECK_EQ(get(dup, "sea"), "baltic");
  MPI_Info_free(&info);
  CHECK(info == MPI_INFO_NULL);
  CHECK_EQ(keys_of(dup), 2);
  const std::string long_key(MPI_MAX_INFO_KEY - 1, 'k'), long_value(MPI_MAX_INFO_VAL - 1, 'v');
  MPI_Info_set(dup, long_key.c_str(), long_value.c_str());
  CHECK_EQ(get(dup, long_key.c_str()), long_value);
  MPI_Info_free(&dup);
}

void strings() {
#if MPI_VERSION >= 4
  section("MPI_Info_get_string");
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "sea", "baltic");
  char value[16] = "untouched";
  int room = 0, flag = -1;
  MPI_Info_get_string(info, "sea", &room, value, &flag);
  CHECK_EQ(room, 7);
  CHECK_EQ(flag, 1);
  CHECK_EQ(std::string(value), "untouched");
  room = 4;
  MPI_Info_get_string(info, "sea", &room, value, &flag);
  CHECK_EQ(room, 7);
  CHECK_EQ(std::string(value), "bal");
  room = 16;
  MPI_Info_get_string(info, "sea", &room, value, &flag);
  CHECK_EQ(room, 7);
  CHECK_EQ(std::string(value), "baltic");
  room = 5;
  MPI_Info_get_string(info, "ocean", &room, value, &flag);
  CHECK_EQ(room, 5);
  CHECK_EQ(flag, 0);
  MPI_Info_free(&info);
#endif
}

// All that it says, a line for each key.
[[maybe_unused]] std::string all_of(MPI_Info info) {
  std::string all;
  for (int n = 0; n < keys_of(info); ++n) {
    char key[MPI_MAX_INFO_KEY];
    MPI_Info_get_nthkey(info, n, key);
    all += std::string(key) + "=" + get(info, key) + "\n";
  }
  return all;
}

void environment([[maybe_unused]] const char* program) {
  section("MPI_INFO_ENV");
  CHECK_EQ(get(MPI_INFO_ENV, "no such key"), "(none)");
#ifdef VIADUCT_MPI_H
  CHECK_EQ(get(MPI_INFO_ENV, "command"), program);
  CHECK_EQ(get(MPI_INFO_ENV, "maxprocs"), std::to_string(size()));
  CHECK_EQ(get(MPI_INFO_ENV, "argv"), "an argument");
  CHECK(get(MPI_INFO_ENV, "wdir")[0] == '/');
  CHECK(get(MPI_INFO_ENV, "arch") != "(none)");
  MPI_Info copy;
  MPI_Info_dup(MPI_INFO_ENV, &copy);
  CHECK_EQ(keys_of(copy), keys_of(MPI_INFO_ENV));
  MPI_Info_set(copy, "command", "other");
  CHECK_EQ(get(MPI_INFO_ENV, "command"), program);
  MPI_Info_free(&copy);
  MPI_Info_create_env(0, nullptr, &copy);
  CHECK_EQ(get(copy, "command"), program);
  MPI_Info_free(&copy);
#endif
}

void communicators() {
  section("hints of communicators");
  MPI_Info hints, used;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "mpi_assert_no_any_tag", "true");
  MPI_Info_set(hints, "no_such_hint", "true");
  MPI_Comm comm, dup;
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, hints, &comm);
  MPI_Comm_get_info(comm, &used);
#ifdef VIADUCT_MPI_H
  CHECK_EQ(get(used, "mpi_assert_no_any_tag"), "true");
  CHECK_EQ(get(used, "no_such_hint"), "(none)");
  CHECK_EQ(get(used, "mpi_assert_no_any_source"), "false");
  CHECK_EQ(keys_of(used), 4);
#endif
  MPI_Info_free(&used);
  MPI_Info_set(hints, "mpi_assert_no_any_tag", "false");
  MPI_Comm_set_info(comm, hints);
  MPI_Info_free(&hints);
  MPI_Comm_get_info(comm, &used);
#ifdef VIADUCT_MPI_H
  CHECK_EQ(get(used, "mpi_assert_no_any_tag"), "false");
  CHECK_EQ(keys_of(used), 4);
#endif
  MPI_Info_free(&used);
  MPI_Comm_dup(comm, &dup);
  crossfire(dup);
  MPI_Comm_get_info(dup, &used);
#ifdef VIADUCT_MPI_H
  CHECK_EQ(get(used, "mpi_assert_no_any_tag"), "false");  // since MPI-4, hints do not go along
  CHECK_EQ(get(used, "mpi_assert_allow_overtaking"), "false");
#endif
  MPI_Info_free(&used);
  MPI_Comm_free(&dup);
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
#ifdef VIADUCT_MPI_H
  // All of this is allowed before MPI_Init and after MPI_Finalize (MPI 5.0, section 11.4.1).
  MPI_Info early, late;
  MPI_Info_create(&early);
  MPI_Info_set(early, "when", "early");
  int flag = -1, own_class, own_code, back;
  MPI_Initialized(&flag);
  MPI_Add_error_class(&own_class);
  MPI_Add_error_code(own_class, &own_code);
#endif
#ifdef VIADUCT_MPI_H
  const std::string environment_before = all_of(MPI_INFO_ENV);
#endif
  int provided = -1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  section("what was made before MPI_Init");
#ifdef VIADUCT_MPI_H
  CHECK_EQ(flag, 0);
  CHECK_EQ(get(early, "when"), "early");
  MPI_Error_class(own_code, &back);
  CHECK_EQ(back, own_class);
#endif
  CHECK_EQ(provided, MPI_THREAD_FUNNELED);
  int main_thread = 0;
  MPI_Is_thread_main(&main_thread);
  CHECK(main_thread);
  pairs();
  strings();
  environment(argv[0]);
#ifdef VIADUCT_MPI_H
  CHECK_EQ(all_of(MPI_INFO_ENV), environment_before);
#endif
  communicators();
  const int result = report();
#ifdef VIADUCT_MPI_H
  MPI_Info_create(&late);
  MPI_Info_set(late, "when", "late");
  const bool good = get(early, "when") == "early" && get(late, "when") == "late" &&
                    all_of(MPI_INFO_ENV) == environment_before;
  MPI_Info_free(&early);
  MPI_Info_free(&late);
  int version, subversion;
  MPI_Get_version(&version, &subversion);
  MPI_Initialized(&flag);
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!good || version != 5 || !flag || !finalized) {
    std::cerr << "something is wrong after MPI_Finalize" << std::endl;
    return 1;
  }
#endif
  return result;
}
