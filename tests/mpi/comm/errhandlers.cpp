// Error handlers: which one is called, with what, and what the call returns then.
#include "comm_checks.hpp"

#include <cstring>

using namespace job;

namespace {

struct Seen {
  int calls = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  int error_class = MPI_SUCCESS;
};
Seen first, second;

void note(Seen& seen, MPI_Comm* comm, int* code) {
  ++seen.calls;
  seen.comm = *comm;
  MPI_Error_class(*code, &seen.error_class);
}
void first_handler(MPI_Comm* comm, int* code, ...) {
  note(first, comm, code);
}
void second_handler(MPI_Comm* comm, int* code, ...) {
  note(second, comm, code);
}
struct Thrown {
  int code;
};
void throwing_handler(MPI_Comm* comm, int* code, ...) {
  note(first, comm, code);
  throw Thrown{*code};
}

MPI_Errhandler make_errhandler(MPI_Comm_errhandler_function* function) {
  MPI_Errhandler errhandler;
  MPI_Comm_create_errhandler(function, &errhandler);
  return errhandler;
}

// A call that cannot be done on any of these communicators.
int bad_send(MPI_Comm comm) {
  return MPI_Send(nullptr, 0, MPI_INT, 12345, 0, comm);
}

void user_handlers() {
  section("a user's handler is told, and the call returns the code");
  MPI_Comm comm, dup;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler errhandler = make_errhandler(first_handler);
  MPI_Comm_set_errhandler(comm, errhandler);
  first = {};
  CHECK_CLASS(bad_send(comm), MPI_ERR_RANK);
  CHECK_EQ(first.calls, 1);
  CHECK(first.comm == comm);
  CHECK_EQ(first.error_class, MPI_ERR_RANK);
  CHECK_CLASS(MPI_Send(nullptr, -1, MPI_INT, 0, 0, comm), MPI_ERR_COUNT);
  CHECK_EQ(first.error_class, MPI_ERR_COUNT);
  CHECK_EQ(first.calls, 2);

  // It lives on in communicators when the program frees it, and goes along to new ones.
  MPI_Errhandler_free(&errhandler);
  CHECK(errhandler == MPI_ERRHANDLER_NULL);
  bad_send(comm);
  CHECK_EQ(first.calls, 3);
  MPI_Comm_dup(comm, &dup);
  bad_send(dup);
  CHECK_EQ(first.calls, 4);
  CHECK(first.comm == dup);
  MPI_Comm_free(&comm);
  bad_send(dup);
  CHECK_EQ(first.calls, 5);
  MPI_Comm_split(dup, 0, 0, &comm);
  bad_send(comm);
  CHECK_EQ(first.calls, 6);
  CHECK(first.comm == comm);
  // A child's handler is its own.
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  CHECK_CLASS(bad_send(comm), MPI_ERR_RANK);
  CHECK_EQ(first.calls, 6);
  bad_send(dup);
  CHECK_EQ(first.calls, 7);
  MPI_Comm_free(&dup);
  MPI_Comm_free(&comm);
}

void each_communicator_its_own() {
  section("each communicator has its own handler");
  MPI_Comm comms[2];
  Seen* seen[2] = {&first, &second};
  MPI_Comm_errhandler_function* functions[2] = {first_handler, second_handler};
  first = second = {};
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    MPI_Errhandler errhandler = make_errhandler(functions[i]);
    MPI_Comm_set_errhandler(comms[i], errhandler);
    MPI_Errhandler_free(&errhandler);
  }
  for (int i = 0; i < 2; ++i) {
    bad_send(comms[i]);
    CHECK_EQ(seen[i]->calls, 1);
    CHECK(seen[i]->comm == comms[i]);
  }
  CHECK_EQ(first.calls + second.calls, 2);
  // Replaced while in use.
  MPI_Errhandler old;
  MPI_Comm_get_errhandler(comms[0], &old);
  MPI_Comm_set_errhandler(comms[1], old);
  MPI_Errhandler_free(&old);
  bad_send(comms[1]);
  CHECK_EQ(first.calls, 2);
  CHECK(first.comm == comms[1]);
  free_comm(comms[0]);
  bad_send(comms[1]);
  CHECK_EQ(first.calls, 3);
  free_comm(comms[1]);
}

void handles() {
  section("get gives back what was set, and each is freed");
  MPI_Errhandler got, mine = make_errhandler(first_handler);
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got);
  CHECK(got == MPI_ERRORS_ARE_FATAL);  // unless somebody says otherwise
  MPI_Errhandler_free(&got);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_get_errhandler(comm, &got);
  CHECK(got == MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&got);
  MPI_Comm_set_errhandler(comm, mine);
  MPI_Comm_get_errhandler(comm, &got);
  CHECK(got == mine);
  MPI_Errhandler_free(&got);
  MPI_Comm_set_errhandler(comm, mine);  // still there: it was freed as often as it was given
  MPI_Errhandler_free(&mine);
  // Freed by the program altogether, then asked for again.
  MPI_Comm_get_errhandler(comm, &got);
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Comm_set_errhandler(other, got);
  MPI_Errhandler_free(&got);
  first = {};
  bad_send(other);
  CHECK_EQ(first.calls, 1);
  free_comm(comm);
  free_comm(other);
}

void called_by_the_program() {
  section("MPI_Comm_call_errhandler");
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler errhandler = make_errhandler(first_handler);
  MPI_Comm_set_errhandler(comm, errhandler);
  MPI_Errhandler_free(&errhandler);
  int own_class, own_code;
  MPI_Add_error_class(&own_class);
  MPI_Add_error_code(own_class, &own_code);
  MPI_Add_error_string(own_code, "no more tea");
  first = {};
  CHECK_EQ(MPI_Comm_call_errhandler(comm, own_code), MPI_SUCCESS);
  CHECK_EQ(first.calls, 1);
  CHECK(first.comm == comm);
  CHECK_EQ(first.error_class, own_class);
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(own_code, text, &length);
  CHECK_EQ(std::string(text), "no more tea");
  CHECK_EQ(length, 11);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  CHECK_EQ(MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER), MPI_SUCCESS);
  CHECK_EQ(first.calls, 1);
  free_comm(comm);
}

void without_a_communicator() {
#if MPI_VERSION >= 5
  section("errors without a communicator are MPI_COMM_SELF's");
  MPI_Errhandler errhandler = make_errhandler(second_handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler);
  MPI_Errhandler_free(&errhandler);
  second = {};
  MPI_Datatype null = MPI_DATATYPE_NULL;
  CHECK_CLASS(MPI_Type_commit(&null), MPI_ERR_TYPE);
  CHECK_EQ(second.calls, 1);
  CHECK(second.comm == MPI_COMM_SELF);
  CHECK_EQ(second.error_class, MPI_ERR_TYPE);
  int n;
  CHECK_CLASS(MPI_Group_size(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Comm_size(MPI_COMM_NULL, &n), MPI_ERR_COMM);
  CHECK_EQ(second.calls, 3);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
#endif
}

// Programs that were written before that set MPI_COMM_WORLD's and no other.
void without_a_communicator_up_to_mpi_3() {
#if MPI_VERSION >= 5
  section("as long as MPI_COMM_SELF's has not been set, they are MPI_COMM_WORLD's");
  MPI_Errhandler errhandler = make_errhandler(first_handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
  MPI_Errhandler_free(&errhandler);
  first = {};
  MPI_Datatype null = MPI_DATATYPE_NULL;
  CHECK_CLASS(MPI_Type_commit(&null), MPI_ERR_TYPE);
  CHECK_EQ(first.calls, 1);
  CHECK(first.comm == MPI_COMM_WORLD);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int n;
  CHECK_CLASS(MPI_Comm_size(MPI_COMM_NULL, &n), MPI_ERR_COMM);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
#endif
}

// MPI_Mrecv and MPI_Imrecv have no communicator among their arguments, but their messages have.
// Others let them have MPI_COMM_SELF's.
void matched_receives() {
#ifdef VIADUCT_MPI_H
  section("errors of matched receives are their communicator's");
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Errhandler errhandler = make_errhandler(first_handler);
  MPI_Comm_set_errhandler(comm, errhandler);
  MPI_Errhandler_free(&errhandler);
  const int out[3] = {1, 2, 3};
  int in[2];
  first = {};
  for (const bool blocking : {true, false}) {
    MPI_Request send, receive;
    MPI_Message message;
    MPI_Isend(out, 3, MPI_INT, 0, 1, comm, &send);
    MPI_Mprobe(0, 1, comm, &message, MPI_STATUS_IGNORE);
    if (blocking) {
      CHECK_CLASS(MPI_Mrecv(in, 2, MPI_INT, &message, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    } else {
      MPI_Imrecv(in, 2, MPI_INT, &message, &receive);
      CHECK_CLASS(MPI_Wait(&receive, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    }
    CHECK_EQ(first.calls, blocking ? 1 : 2);
    CHECK(first.comm == comm);
    CHECK_EQ(first.error_class, MPI_ERR_TRUNCATE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
  }
  free_comm(comm);
#endif
}

// What a handler throws reaches whoever called the function, whose call has had its effect.
void throwing_handlers() {
  section("a handler may throw");
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler errhandler = make_errhandler(throwing_handler);
  first = {};
  const auto thrown_by = [](auto function) {
    try {
      function();
    } catch (const Thrown& thrown) {
      int error_class = -1;
      MPI_Error_class(thrown.code, &error_class);
      return error_class;
    }
    return MPI_SUCCESS;
  };
  MPI_Comm_set_errhandler(comm, errhandler);
  CHECK_EQ(thrown_by([&] { bad_send(comm); }), MPI_ERR_RANK);
  CHECK_EQ(thrown_by([&] { MPI_Comm_call_errhandler(comm, MPI_ERR_TAG); }), MPI_ERR_TAG);
  CHECK_EQ(first.calls, 2);

  int self, in = -1;
  const int out[2] = {1, 2};
  MPI_Request send, receive;
  MPI_Comm_rank(comm, &self);
  MPI_Irecv(&in, 1, MPI_INT, self, 0, comm, &receive);
  MPI_Isend(out, 2, MPI_INT, self, 0, comm, &send);
  CHECK_EQ(thrown_by([&] { MPI_Wait(&receive, MPI_STATUS_IGNORE); }), MPI_ERR_TRUNCATE);
  CHECK(receive == MPI_REQUEST_NULL);
  MPI_Wait(&send, MPI_STATUS_IGNORE);

  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Errhandler old;
  MPI_Comm_get_errhandler(MPI_COMM_SELF, &old);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler);
  CHECK_EQ(thrown_by([&] { MPI_Type_contiguous(-1, MPI_INT, &type); }), MPI_ERR_COUNT);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, old);
  MPI_Errhandler_free(&old);
  MPI_Errhandler_free(&errhandler);
  CHECK_EQ(first.calls, 4);
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
}

void old_names() {
#ifndef OPEN_MPI
  section("the names of MPI-1");
  MPI_Comm comm;
  MPI_Errhandler errhandler, got;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler_create(first_handler, &errhandler);
  MPI_Errhandler_set(comm, errhandler);
  MPI_Errhandler_get(comm, &got);
  CHECK(got == errhandler);
  MPI_Errhandler_free(&got);
  MPI_Errhandler_free(&errhandler);
  first = {};
  CHECK_CLASS(bad_send(comm), MPI_ERR_RANK);
  CHECK_EQ(first.calls, 1);
  free_comm(comm);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  user_handlers();
  each_communicator_its_own();
  handles();
  called_by_the_program();
  matched_receives();
  without_a_communicator_up_to_mpi_3();
  without_a_communicator();
  throwing_handlers();
  old_names();
  return report();
}
