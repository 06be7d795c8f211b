// Attributes: callbacks are called as often as they should, with the right arguments, when
// communicators and datatypes are duplicated and freed and when the job ends.
#include "comm_checks.hpp"

#include <cstdint>
#include <cstdlib>

using namespace job;

namespace {

struct Calls {
  int copies = 0, deletes = 0;
  void* last_copied = nullptr;
  void* last_deleted = nullptr;
  bool handles_as_expected = true;
  int fail_copy = MPI_SUCCESS, fail_delete = MPI_SUCCESS;
};

void* number(std::intptr_t n) {
  return reinterpret_cast<void*>(n);
}

MPI_Comm expected_comm = MPI_COMM_NULL;  // which object the callbacks should be told about

// The copy is the value plus 100.
int note_copy(Calls& calls, void* in, void* out, int* flag) {
  ++calls.copies;
  calls.last_copied = in;
  *static_cast<void**>(out) = number(reinterpret_cast<std::intptr_t>(in) + 100);
  *flag = 1;
  return calls.fail_copy;
}
int note_delete(Calls& calls, void* value) {
  ++calls.deletes;
  calls.last_deleted = value;
  return calls.fail_delete;
}

int copy_comm(MPI_Comm comm, int, void* extra, void* in, void* out, int* flag) {
  Calls& calls = *static_cast<Calls*>(extra);
  if (comm != expected_comm) calls.handles_as_expected = false;
  return note_copy(calls, in, out, flag);
}
int delete_comm(MPI_Comm comm, int, void* value, void* extra) {
  Calls& calls = *static_cast<Calls*>(extra);
  if (comm != expected_comm) calls.handles_as_expected = false;
  return note_delete(calls, value);
}
// What is attached, or -1.
std::intptr_t get(MPI_Comm comm, int keyval) {
  void* value = nullptr;
  int flag = -1;
  MPI_Comm_get_attr(comm, keyval, &value, &flag);
  CHECK(flag == 0 || flag == 1);
  return flag ? reinterpret_cast<std::intptr_t>(value) : -1;
}

MPI_Comm dup_of_world() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return comm;
}

void set_and_delete() {
  section("set, get, replace, delete");
  Calls calls;
  int keyval;
  MPI_Comm_create_keyval(copy_comm, delete_comm, &keyval, &calls);
  const MPI_Comm comm = dup_of_world();
  expected_comm = comm;
  CHECK_EQ(get(comm, keyval), -1);
  MPI_Comm_set_attr(comm, keyval, number(1));
  CHECK_EQ(get(comm, keyval), 1);
  CHECK_EQ(get(MPI_COMM_WORLD, keyval), -1);
  MPI_Comm_set_attr(comm, keyval, nullptr);
  CHECK_EQ(get(comm, keyval), 0);
  CHECK_EQ(calls.deletes, 1);
  CHECK(calls.last_deleted == number(1));
  MPI_Comm_delete_attr(comm, keyval);
  CHECK_EQ(calls.deletes, 2);
  CHECK_EQ(get(comm, keyval), -1);
  MPI_Comm_set_attr(comm, keyval, number(5));
  free_comm(comm);
  CHECK_EQ(calls.deletes, 3);
  CHECK(calls.last_deleted == number(5));
  CHECK_EQ(calls.copies, 0);
  CHECK(calls.handles_as_expected);
  MPI_Comm_free_keyval(&keyval);
  CHECK_EQ(keyval, MPI_KEYVAL_INVALID);
}

void copies() {
  section("what goes along when a communicator is duplicated");
  Calls calls;
  int keyval, same, never;
  MPI_Comm_create_keyval(copy_comm, delete_comm, &keyval, &calls);
  MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &same, nullptr);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &never, nullptr);
  MPI_Comm comm = dup_of_world(), dup, part;
  MPI_Comm_set_attr(comm, keyval, number(1));
  MPI_Comm_set_attr(comm, same, number(2));
  MPI_Comm_set_attr(comm, never, number(3));
  expected_comm = comm;
  MPI_Comm_dup(comm, &dup);
  CHECK_EQ(calls.copies, 1);
  CHECK_EQ(get(dup, keyval), 101);
  CHECK_EQ(get(dup, same), 2);
  CHECK_EQ(get(dup, never), -1);
  // Only a duplicate has attributes.
  MPI_Comm_split(comm, 0, 0, &part);
  CHECK_EQ(calls.copies, 1);
  CHECK_EQ(get(part, same), -1);
  free_comm(part);
  MPI_Group group;
  MPI_Comm_group(comm, &group);
  MPI_Comm_create(comm, group, &part);
  MPI_Group_free(&group);
  CHECK_EQ(get(part, keyval), -1);
  free_comm(part);
  CHECK_EQ(calls.deletes, 0);

  free_comm(comm);
  CHECK_EQ(calls.deletes, 1);
  CHECK(calls.last_deleted == number(1));
  // The key is freed; what is attached stays and is deleted in its turn.
  const int kept = keyval;
  MPI_Comm_free_keyval(&keyval);
  CHECK_EQ(get(dup, kept), 101);
  expected_comm = dup;
  MPI_Comm_dup(dup, &part);
  CHECK_EQ(calls.copies, 2);
  free_comm(dup);
  expected_comm = part;
  CHECK_EQ(get(part, kept), 201);
  CHECK_EQ(calls.deletes, 2);
  free_comm(part);
  CHECK_EQ(calls.deletes, 3);
  CHECK(calls.last_deleted == number(201));
  CHECK(calls.handles_as_expected);
  MPI_Comm_free_keyval(&same);
  MPI_Comm_free_keyval(&never);
}

void failures() {
  section("callbacks that fail");
  Calls calls;
  int keyval;
  MPI_Comm_create_keyval(copy_comm, delete_comm, &keyval, &calls);
  MPI_Comm comm = dup_of_world(), dup = comm;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // MPICH's MPI_Comm_free
  MPI_Comm_set_attr(comm, keyval, number(1));
  expected_comm = comm;
  calls.fail_copy = MPI_ERR_NO_MEM;
  CHECK(MPI_Comm_dup(comm, &dup) != MPI_SUCCESS);
  CHECK(dup == MPI_COMM_NULL);
  calls.fail_copy = MPI_SUCCESS;
  calls.fail_delete = MPI_ERR_OTHER;
  CHECK(MPI_Comm_delete_attr(comm, keyval) != MPI_SUCCESS);
  CHECK_EQ(get(comm, keyval), 1);
  CHECK(MPI_Comm_set_attr(comm, keyval, number(2)) != MPI_SUCCESS);
  CHECK(MPI_Comm_free(&comm) != MPI_SUCCESS);
  CHECK(comm != MPI_COMM_NULL);
#ifdef VIADUCT_MPI_H
  CHECK_EQ(get(comm, keyval), 1);
#endif
  calls.fail_delete = MPI_SUCCESS;
  CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_free_keyval(&keyval);
}

// Others delete the attributes of a type that was duplicated when its duplicates are freed, not
// when the program frees it.
#ifdef VIADUCT_MPI_H
MPI_Datatype expected_type = MPI_DATATYPE_NULL;

int copy_type(MPI_Datatype type, int, void* extra, void* in, void* out, int* flag) {
  Calls& calls = *static_cast<Calls*>(extra);
  if (type != expected_type) calls.handles_as_expected = false;
  return note_copy(calls, in, out, flag);
}
int delete_type(MPI_Datatype type, int, void* value, void* extra) {
  Calls& calls = *static_cast<Calls*>(extra);
  if (type != expected_type) calls.handles_as_expected = false;
  return note_delete(calls, value);
}

void types() {
  section("attributes of datatypes");
  Calls calls;
  int keyval;
  MPI_Type_create_keyval(copy_type, delete_type, &keyval, &calls);
  MPI_Datatype type, dup;
  MPI_Type_contiguous(3, MPI_INT, &type);
  expected_type = type;
  MPI_Type_set_attr(type, keyval, number(1));
  MPI_Type_dup(type, &dup);
  CHECK_EQ(calls.copies, 1);
  void* value = nullptr;
  int flag = 0;
  MPI_Type_get_attr(dup, keyval, &value, &flag);
  CHECK(flag);
  CHECK(value == number(101));
  MPI_Type_free(&type);
  CHECK_EQ(calls.deletes, 1);
  expected_type = dup;
  MPI_Type_delete_attr(dup, keyval);
  CHECK_EQ(calls.deletes, 2);
  MPI_Type_get_attr(dup, keyval, &value, &flag);
  CHECK(!flag);
  MPI_Type_set_attr(dup, keyval, number(7));
  MPI_Type_free_keyval(&keyval);
  MPI_Type_free(&dup);
  CHECK_EQ(calls.deletes, 3);
  CHECK(calls.last_deleted == number(7));
  CHECK(calls.handles_as_expected);
  // Predefined types may have attributes, too.
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &keyval, nullptr);
  MPI_Type_set_attr(MPI_INT, keyval, number(9));
  MPI_Type_get_attr(MPI_INT, keyval, &value, &flag);
  CHECK(flag && value == number(9));
  MPI_Type_get_attr(MPI_DOUBLE, keyval, &value, &flag);
  CHECK(!flag);
  MPI_Type_delete_attr(MPI_INT, keyval);
  MPI_Type_free_keyval(&keyval);
}
#endif

void old_names() {
  section("the names of MPI-1");
  Calls calls;
  int keyval, flag;
  void* value;
  MPI_Keyval_create(copy_comm, delete_comm, &keyval, &calls);
  MPI_Comm comm = dup_of_world(), dup;
  expected_comm = comm;
  MPI_Attr_put(comm, keyval, number(3));
  MPI_Attr_get(comm, keyval, &value, &flag);
  CHECK(flag && value == number(3));
  MPI_Comm_dup(comm, &dup);
  CHECK_EQ(get(dup, keyval), 103);  // old and new names mean the same attributes
  MPI_Attr_delete(comm, keyval);
  CHECK_EQ(calls.deletes, 1);
  MPI_Attr_get(comm, keyval, &value, &flag);
  CHECK(!flag);
  MPI_Keyval_free(&keyval);
  CHECK_EQ(keyval, MPI_KEYVAL_INVALID);
  expected_comm = dup;
  free_comm(dup);
  CHECK_EQ(calls.deletes, 2);
  free_comm(comm);
  CHECK(calls.handles_as_expected);

  MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &keyval, nullptr);
  comm = dup_of_world();
  MPI_Attr_put(comm, keyval, number(8));
  MPI_Comm_dup(comm, &dup);
  CHECK_EQ(get(dup, keyval), 8);
  free_comm(comm);
  free_comm(dup);
  MPI_Keyval_free(&keyval);
}

int* predefined(int keyval) {
  void* value = nullptr;
  int flag = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &value, &flag);
  return flag ? static_cast<int*>(value) : nullptr;
}

void predefined_attributes() {
  section("predefined attributes");
  CHECK(predefined(MPI_TAG_UB) && *predefined(MPI_TAG_UB) >= 32767);
  CHECK(predefined(MPI_HOST) && (*predefined(MPI_HOST) == MPI_PROC_NULL ||
                                 (*predefined(MPI_HOST) >= 0 && *predefined(MPI_HOST) < size())));
  CHECK(predefined(MPI_IO) && *predefined(MPI_IO) == MPI_ANY_SOURCE);
  CHECK(predefined(MPI_WTIME_IS_GLOBAL) &&
        (*predefined(MPI_WTIME_IS_GLOBAL) == 0 || *predefined(MPI_WTIME_IS_GLOBAL) == 1));
  CHECK(!predefined(MPI_APPNUM) || *predefined(MPI_APPNUM) == 0);
  CHECK(!predefined(MPI_UNIVERSE_SIZE) || *predefined(MPI_UNIVERSE_SIZE) >= 1);
  int* last = predefined(MPI_LASTUSEDCODE);
  CHECK(last && *last >= MPI_ERR_LASTCODE);
  const int before = *last;
  int added;
  MPI_Add_error_class(&added);
  CHECK(added > before);
  CHECK_EQ(*predefined(MPI_LASTUSEDCODE), added);
  // A message with the largest tag arrives.
  int in = 0, out = 6;
  MPI_Sendrecv(&out, 1, MPI_INT, (rank() + 1) % size(), *predefined(MPI_TAG_UB), &in, 1, MPI_INT,
               MPI_ANY_SOURCE, *predefined(MPI_TAG_UB), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK_EQ(in, 6);
}

// ---- at the end of the job ---------------------------------------------------------------------

// What has to happen in MPI_Finalize, in this order: the newest attribute of MPI_COMM_SELF first;
// at last that of MPI_COMM_WORLD, number 1.
int next_to_go = 4;

int delete_at_the_end(MPI_Comm comm, int, void* value, void*) {
  int finalized = -1, self;
  MPI_Finalized(&finalized);
  if (value != number(next_to_go) || finalized != 0 ||
      comm != (next_to_go == 1 ? MPI_COMM_WORLD : MPI_COMM_SELF) ||
      MPI_Comm_rank(MPI_COMM_WORLD, &self) != MPI_SUCCESS) {
    std::cerr << "attribute " << value << " was deleted when it was not its turn" << std::endl;
    std::_Exit(1);
  }
  --next_to_go;
  return MPI_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  set_and_delete();
  copies();
  failures();
#ifdef VIADUCT_MPI_H
  types();
#endif
  old_names();
  predefined_attributes();
  for (int i = 1; i <= 4; ++i) {
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_at_the_end, &key, nullptr);
    MPI_Comm_set_attr(i == 1 ? MPI_COMM_WORLD : MPI_COMM_SELF, key, number(i));
    MPI_Comm_free_keyval(&key);
  }
  const int result = report();  // MPI_Finalize is in it
  if (next_to_go != 0) std::cerr << "attributes were not deleted at the end" << std::endl;
  return result || next_to_go != 0;
}
