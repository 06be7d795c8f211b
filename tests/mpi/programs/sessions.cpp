// Sessions (MPI 5.0, section 11.3): a program that never calls MPI_Init; with the argument "world",
// one that calls it between sessions. Communicators are made of groups only.
#include <mpi.h>

#include <cstring>
#include <iostream>
#include <string>
#include <vector>

namespace {

int failures = 0, sections = 0, failed = 0;
MPI_Comm everybody = MPI_COMM_NULL;  // made of mpi://WORLD

void check(bool good, const char* what, int line) {
  if (good) return;
  ++failures;
  std::cerr << "line " << line << ": not true: " << what << std::endl;
}
#define CHECK(condition) check((condition), #condition, __LINE__)
bool has_class(int code, int expected) {
  int error_class = -1;
  MPI_Error_class(code, &error_class);
  return error_class == expected;
}

// Ends a section of the test: one line for all ranks.
void done(const std::string& what) {
  int all = 0, rank = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, everybody);
  MPI_Comm_rank(everybody, &rank);
  ++sections;
  failed += all != 0;
  if (rank == 0) std::cout << (all ? "not ok " : "ok ") << sections << " - " << what << std::endl;
  failures = 0;
}

MPI_Group group_of(MPI_Session session, const char* set) {
  MPI_Group group = MPI_GROUP_NULL;
  CHECK(MPI_Group_from_session_pset(session, set, &group) == MPI_SUCCESS);
  return group;
}

MPI_Comm comm_of(MPI_Group group, const char* tag) {
  MPI_Comm comm = MPI_COMM_NULL;
  CHECK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) ==
        MPI_SUCCESS);
  return comm;
}

void process_sets(MPI_Session session) {
  int sets = 0;
  MPI_Session_get_num_psets(session, MPI_INFO_NULL, &sets);
  CHECK(sets == 2);
  std::vector<std::string> names;
  for (int n = 0; n < sets; ++n) {
    int length = 0;
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, nullptr);
    std::string name(static_cast<std::size_t>(length), 'x');
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, name.data());
    name.pop_back();
    names.push_back(name);
    char few[4];
    length = sizeof few;
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, few);
    CHECK(std::strcmp(few, "mpi") == 0 && length == static_cast<int>(name.size()) + 1);
  }
  CHECK(names[0] == "mpi://WORLD" && names[1] == "mpi://SELF");
  MPI_Group world = group_of(session, "mpi://WORLD"), self = group_of(session, "MPI://self");
  int ranks = 0, one = 0, flag = 0;
  MPI_Group_size(world, &ranks);
  MPI_Group_size(self, &one);
  CHECK(one == 1);
  MPI_Info info;
  char value[16] = "";
  MPI_Session_get_pset_info(session, "mpi://WORLD", &info);
  MPI_Info_get(info, "mpi_size", 15, value, &flag);
  CHECK(flag && std::to_string(ranks) == value);
  MPI_Info_free(&info);
  MPI_Session_get_info(session, &info);
  MPI_Info_get(info, "thread_level", 15, value, &flag);
  CHECK(flag && std::strncmp(value, "MPI_THREAD_SER", 14) == 0);
  MPI_Info_free(&info);
  MPI_Group_free(&world);
  MPI_Group_free(&self);
}

void communicators(MPI_Session session) {
  MPI_Group world = group_of(session, "mpi://WORLD"), even, odd;
  int ranks = 0, rank = 0;
  MPI_Group_size(world, &ranks);
  MPI_Group_rank(world, &rank);
  int range[1][3] = {{0, ranks - 1, 2}};
  MPI_Group_range_incl(world, 1, range, &even);
  MPI_Group_range_excl(world, 1, range, &odd);
  const MPI_Group mine = rank % 2 ? odd : even, theirs = rank % 2 ? even : odd;
  MPI_Comm half = comm_of(mine, rank % 2 ? "odd" : "even");
  int sum = 0, expected = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
  for (int r = rank % 2; r < ranks; r += 2) expected += r;
  CHECK(sum == expected);
  MPI_Comm_free(&half);
  CHECK(comm_of(MPI_GROUP_EMPTY, "nobody") == MPI_COMM_NULL);
  if (ranks > 1) {
    MPI_Comm inter = MPI_COMM_NULL;
    CHECK(MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, "two halves", MPI_INFO_NULL,
                                           MPI_ERRORS_RETURN, &inter) == MPI_SUCCESS);
    int least = -1;
    MPI_Allreduce(&rank, &least, 1, MPI_INT, MPI_MIN, inter);
    CHECK(least == 1 - rank % 2);
    MPI_Comm_free(&inter);
  }
  for (MPI_Group* group : {&world, &even, &odd})
    if (*group != MPI_GROUP_EMPTY) MPI_Group_free(group);
}

void buffers(MPI_Session session) {
  std::vector<std::byte> memory(4096);
  const std::vector<int> out(100, 5);
  std::vector<int> in(100);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(everybody, &rank);
  MPI_Comm_size(everybody, &ranks);
  CHECK(has_class(MPI_Bsend(out.data(), 100, MPI_INT, rank, 0, everybody), MPI_ERR_BUFFER));
  MPI_Session_attach_buffer(session, memory.data(), static_cast<int>(memory.size()));
  CHECK(MPI_Bsend(out.data(), 100, MPI_INT, (rank + 1) % ranks, 0, everybody) == MPI_SUCCESS);
  MPI_Recv(in.data(), 100, MPI_INT, (rank + ranks - 1) % ranks, 0, everybody, MPI_STATUS_IGNORE);
  CHECK(in == out);
  MPI_Session_flush_buffer(session);
  MPI_Request flushed;
  MPI_Session_iflush_buffer(session, &flushed);
  MPI_Wait(&flushed, MPI_STATUS_IGNORE);
  void* detached = nullptr;
  MPI_Count bytes = 0;
  MPI_Session_detach_buffer_c(session, &detached, &bytes);
  CHECK(detached == memory.data() && bytes == static_cast<MPI_Count>(memory.size()));
}

MPI_Session seen = MPI_SESSION_NULL;
int seen_code = 0;
void handler(MPI_Session* session, int* code, ...) {
  seen = *session;
  seen_code = *code;
}

void errors(MPI_Session session) {
  int number = 0;
  char name[16];
  MPI_Group group;
  MPI_Info info;
  CHECK(has_class(MPI_Group_from_session_pset(session, "mpi://NONE", &group), MPI_ERR_ARG));
  CHECK(has_class(MPI_Group_from_session_pset(session, nullptr, &group), MPI_ERR_ARG));
  CHECK(has_class(MPI_Group_from_session_pset(session, "mpi://SELF", nullptr), MPI_ERR_ARG));
  CHECK(has_class(MPI_Session_get_pset_info(session, "mpi://NONE", &info), MPI_ERR_ARG));
  CHECK(has_class(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 2, &number, name), MPI_ERR_ARG));
  CHECK(
      has_class(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, -1, &number, name), MPI_ERR_ARG));
  CHECK(has_class(MPI_Session_get_num_psets(session, MPI_INFO_NULL, nullptr), MPI_ERR_ARG));
  CHECK(has_class(MPI_Session_attach_buffer(session, name, -1), MPI_ERR_ARG));
  CHECK(has_class(MPI_Session_set_errhandler(session, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER));

  MPI_Comm comm = everybody;
  MPI_Group self = group_of(session, "mpi://SELF");
  CHECK(has_class(
      MPI_Comm_create_from_group(MPI_GROUP_NULL, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
      MPI_ERR_GROUP));
  CHECK(comm == MPI_COMM_NULL);
  CHECK(
      has_class(MPI_Comm_create_from_group(self, nullptr, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
                MPI_ERR_ARG));
  const std::string too_long(MPI_MAX_STRINGTAG_LEN, 'x');
  CHECK(has_class(
      MPI_Comm_create_from_group(self, too_long.c_str(), MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm),
      MPI_ERR_ARG));
  CHECK(has_class(MPI_Intercomm_create_from_groups(self, 1, self, 0, "x", MPI_INFO_NULL,
                                                   MPI_ERRORS_RETURN, &comm),
                  MPI_ERR_RANK));
  MPI_Group_free(&self);

  MPI_Errhandler mine, got;
  MPI_Session_create_errhandler(handler, &mine);
  MPI_Session_set_errhandler(session, mine);
  MPI_Session_get_errhandler(session, &got);
  CHECK(got == mine);
  MPI_Errhandler_free(&got);
  MPI_Errhandler_free(&mine);
  CHECK(has_class(MPI_Group_from_session_pset(session, "mpi://NONE", &group), MPI_ERR_ARG));
  CHECK(seen == session && has_class(seen_code, MPI_ERR_ARG));
  CHECK(MPI_Session_call_errhandler(session, MPI_ERR_OTHER) == MPI_SUCCESS);
  CHECK(seen_code == MPI_ERR_OTHER);
  CHECK(MPI_Session_fromint(MPI_Session_toint(session)) == session);
}

MPI_Session begin() {
  MPI_Session session = MPI_SESSION_NULL;
  CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
  return session;
}

}  // namespace

int main(int argc, char** argv) {
  const bool world = argc > 1 && std::string(argv[1]) == "world";
  MPI_Info hints;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "thread_level", "MPI_THREAD_SERIALIZED");
  MPI_Session session;
  CHECK(MPI_Session_init(hints, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
  MPI_Info_free(&hints);
  MPI_Group group = group_of(session, "mpi://WORLD");
  everybody = comm_of(group, "everybody");
  MPI_Group_free(&group);
  int flag = 1;
  MPI_Initialized(&flag);
  CHECK(!flag);
  done("a session begins without MPI_Init");

  process_sets(session);
  done("process sets");
  communicators(session);
  done("communicators made of groups");
  buffers(session);
  done("the session's buffer");
  MPI_Session second = begin();
  if (world) {
    CHECK(MPI_Init(nullptr, nullptr) == MPI_SUCCESS);
    MPI_Initialized(&flag);
    CHECK(flag);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(has_class(MPI_Session_finalize(nullptr), MPI_ERR_SESSION));
    MPI_Session none = MPI_SESSION_NULL;
    CHECK(has_class(MPI_Session_finalize(&none), MPI_ERR_SESSION));
    CHECK(has_class(MPI_Init(nullptr, nullptr), MPI_ERR_OTHER));
    MPI_Finalize();
    MPI_Finalized(&flag);
    CHECK(flag);
    process_sets(second);
    done("MPI_Init and MPI_Finalize while sessions are open");
  }
  CHECK(MPI_Session_finalize(&second) == MPI_SUCCESS);
  CHECK(second == MPI_SESSION_NULL);
  errors(session);
  done("errors");
  int rank = 0;
  MPI_Comm_rank(everybody, &rank);
  if (!world) {
    MPI_Comm_free(&everybody);
    CHECK(MPI_Session_finalize(&session) == MPI_SUCCESS);
    session = begin();  // all have ended, and another one begins
    group = group_of(session, "mpi://WORLD");
    everybody = comm_of(group, "again");
    MPI_Group_free(&group);
    done("a session after the last one");
  }
  MPI_Comm_free(&everybody);
  CHECK(MPI_Session_finalize(&session) == MPI_SUCCESS);
  if (rank == 0) std::cout << "1.." << sections << std::endl;
  return failed != 0 || failures != 0;
}
