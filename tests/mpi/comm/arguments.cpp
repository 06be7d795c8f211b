// Wrong arguments are refused with the right class, and nothing is harmed. Every process makes each
// call by itself or all make it, so that nobody waits for one that was refused.
//
// The standard leaves it open what is checked: other libraries crash or hang in some of these.
#include "comm_checks.hpp"

#include <string>

// AddressSanitizer ends a program that asks for too much memory, unless it is told that the program
// expects to be refused.
extern "C" const char* __asan_default_options();
const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}

using namespace job;

namespace {

const MPI_Comm kWorld = MPI_COMM_WORLD;
int out, out2;
MPI_Comm made;
MPI_Group made_group;

// A communicator that has been freed.
MPI_Comm freed() {
  MPI_Comm comm, copy;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  copy = comm;
  MPI_Comm_free(&comm);
  return copy;
}

// What a failed call has made is none, whatever was in the handle.
template <class Make>
void makes_none(Make make) {
  made = kWorld;
  CHECK(make() != MPI_SUCCESS);
  CHECK(made == MPI_COMM_NULL);
}

void failed_constructors() {
  section("what a failed call has made");
  const int two = 2 * size(), yes = 1, index = 0;
  for (const MPI_Comm comm : {MPI_COMM_NULL, freed()}) {
    makes_none([&] { return MPI_Comm_dup(comm, &made); });
    makes_none([&] { return MPI_Comm_split(comm, 0, 0, &made); });
    makes_none([&] { return MPI_Cart_sub(comm, &yes, &made); });
  }
  makes_none([&] { return MPI_Cart_create(kWorld, 1, &two, &yes, 0, &made); });
  makes_none([&] { return MPI_Cart_create(kWorld, -1, &two, &yes, 0, &made); });
  makes_none([&] { return MPI_Cart_sub(kWorld, &yes, &made); });
  makes_none([&] { return MPI_Graph_create(kWorld, two, &index, nullptr, 0, &made); });
  makes_none([&] { return MPI_Comm_create(kWorld, MPI_GROUP_NULL, &made); });
  makes_none([&] { return MPI_Comm_create_group(kWorld, MPI_GROUP_NULL, 0, &made); });
  makes_none([&] { return MPI_Comm_split(kWorld, -5, 0, &made); });
  makes_none([&] { return MPI_Comm_split_type(kWorld, 12345, 0, MPI_INFO_NULL, &made); });
  makes_none([&] { return MPI_Intercomm_create(MPI_COMM_SELF, 1, kWorld, 0, 0, &made); });
  makes_none([&] { return MPI_Intercomm_merge(kWorld, 0, &made); });
}

void null_and_freed_communicators() {
  section("communicators that are none");
  const std::vector<MPI_Comm> none{MPI_COMM_NULL, freed()};
  for (const MPI_Comm comm : none) {
    CHECK_CLASS(MPI_Comm_size(comm, &out), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_rank(comm, &out), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_group(comm, &made_group), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_compare(comm, kWorld, &out), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_compare(kWorld, comm, &out), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_dup(comm, &made), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_create(comm, MPI_GROUP_EMPTY, &made), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_create_group(comm, MPI_GROUP_EMPTY, 0, &made), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_split(comm, 0, 0, &made), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made),
                MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_test_inter(comm, &out), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_remote_size(comm, &out), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_set_name(comm, "name"), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Intercomm_create(comm, 0, kWorld, 0, 0, &made), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Intercomm_merge(comm, 0, &made), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Cart_create(comm, 0, nullptr, nullptr, 0, &made), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Topo_test(comm, &out), MPI_ERR_COMM);
    MPI_Comm copy = comm;
    CHECK_CLASS(MPI_Comm_free(&copy), MPI_ERR_COMM);
  }
  MPI_Comm world = MPI_COMM_WORLD, self = MPI_COMM_SELF;
  CHECK_CLASS(MPI_Comm_free(&world), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_free(&self), MPI_ERR_COMM);
  CHECK(world == MPI_COMM_WORLD);
}

void communicators() {
  section("arguments of communicator constructors");
  CHECK_CLASS(MPI_Comm_split(MPI_COMM_SELF, -5, 0, &made), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Comm_split_type(MPI_COMM_SELF, 12345, 0, MPI_INFO_NULL, &made), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Comm_create(MPI_COMM_SELF, MPI_GROUP_NULL, &made), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Comm_remote_size(kWorld, &out), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_remote_group(kWorld, &made_group), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Intercomm_merge(kWorld, 0, &made), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Intercomm_create(MPI_COMM_SELF, 1, kWorld, 0, 0, &made), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Intercomm_create(MPI_COMM_SELF, -1, kWorld, 0, 0, &made), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Intercomm_create(MPI_COMM_SELF, 0, kWorld, size(), 0, &made), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Intercomm_create(MPI_COMM_SELF, 0, kWorld, 0, -1, &made), MPI_ERR_TAG);
  CHECK_CLASS(MPI_Comm_create_group(MPI_COMM_SELF, MPI_GROUP_EMPTY, -1, &made), MPI_ERR_TAG);
  if (size() > 1) {
    MPI_Group everybody;
    MPI_Comm_group(kWorld, &everybody);
    CHECK_CLASS(MPI_Comm_create(MPI_COMM_SELF, everybody, &made), MPI_ERR_GROUP);
    MPI_Group_free(&everybody);
  }
  CHECK_CLASS(MPI_Intercomm_create(MPI_COMM_SELF, 0, kWorld, MPI_ANY_SOURCE, 0, &made),
              MPI_ERR_RANK);
  CHECK_CLASS(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_NULL, 0, 0, &made), MPI_ERR_COMM);
  // With itself: the groups overlap.
  CHECK_CLASS(MPI_Intercomm_create(MPI_COMM_SELF, 0, kWorld, rank(), 0, &made), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_dup(MPI_COMM_SELF, nullptr), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Comm_rank(kWorld, nullptr), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Comm_free(nullptr), MPI_ERR_COMM);
  CHECK_CLASS(MPI_Comm_set_name(kWorld, nullptr), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Comm_dup_with_info(MPI_COMM_SELF, MPI_Info_fromint(12345), &made), MPI_ERR_INFO);
  CHECK_CLASS(MPI_Comm_set_info(kWorld, MPI_INFO_NULL), MPI_ERR_INFO);
  // On intercommunicators.
  if (size() > 1 && rank() < 2) {
    MPI_Comm inter, none;
    MPI_Intercomm_create(MPI_COMM_SELF, 0, kWorld, 1 - rank(), 4, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Intercomm_create(inter, 0, kWorld, 1 - rank(), 4, &none), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Comm_create_group(inter, MPI_GROUP_EMPTY, 0, &none), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Cart_create(inter, 0, nullptr, nullptr, 0, &none), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Graph_create(inter, 0, nullptr, nullptr, 0, &none), MPI_ERR_COMM);
    crossfire(inter);
    MPI_Comm_free(&inter);
  }
}

void groups() {
  section("arguments of group functions");
  MPI_Group world;
  MPI_Comm_group(kWorld, &world);
  const int beyond[1] = {size()}, minus[1] = {-1}, twice[2] = {0, 0}, good[1] = {0};
  CHECK_CLASS(MPI_Group_size(MPI_GROUP_NULL, &out), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Group_rank(MPI_GROUP_NULL, &out), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Group_union(MPI_GROUP_NULL, world, &made_group), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Group_intersection(world, MPI_GROUP_NULL, &made_group), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Group_difference(MPI_GROUP_NULL, world, &made_group), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Group_compare(world, MPI_GROUP_NULL, &out), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Group_incl(MPI_GROUP_NULL, 1, good, &made_group), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Group_incl(world, 1, beyond, &made_group), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Group_incl(world, 1, minus, &made_group), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Group_incl(world, 2, twice, &made_group), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Group_excl(world, 1, beyond, &made_group), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Group_excl(world, 2, twice, &made_group), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Group_incl(world, -1, good, &made_group), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Group_translate_ranks(world, 1, beyond, world, &out), MPI_ERR_RANK);
  int still[1][3] = {{0, 0, 0}}, too_far[1][3] = {{0, size(), 1}};
  CHECK_CLASS(MPI_Group_range_incl(world, 1, still, &made_group), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Group_range_excl(world, 1, still, &made_group), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Group_range_incl(world, 1, too_far, &made_group), MPI_ERR_RANK);
  int overlap[2][3] = {{0, 0, 1}, {0, 0, 1}};
  CHECK_CLASS(MPI_Group_range_incl(world, 2, overlap, &made_group), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Group_range_excl(world, 2, overlap, &made_group), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Group_incl(world, 1, nullptr, &made_group), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Group_size(world, nullptr), MPI_ERR_ARG);
  const int nobody[1] = {MPI_PROC_NULL};
  MPI_Group_translate_ranks(world, 1, nobody, world, &out);
  CHECK_EQ(out, MPI_PROC_NULL);
  MPI_Group_translate_ranks(world, 1, good, MPI_GROUP_EMPTY, &out);
  CHECK_EQ(out, MPI_UNDEFINED);
  // Empty results are the empty group, which may be freed like any other.
  MPI_Group empty;
  MPI_Group_difference(world, world, &empty);
  CHECK(empty == MPI_GROUP_EMPTY);
  MPI_Group_incl(world, 0, nullptr, &empty);
  CHECK(empty == MPI_GROUP_EMPTY);
  CHECK(MPI_Group_free(&empty) == MPI_SUCCESS);
  CHECK(empty == MPI_GROUP_NULL);
  MPI_Group_size(MPI_GROUP_EMPTY, &out);
  CHECK_EQ(out, 0);
  MPI_Group null = MPI_GROUP_NULL;
  CHECK_CLASS(MPI_Group_free(&null), MPI_ERR_GROUP);
  MPI_Group copy = world;
  MPI_Group_free(&world);
  CHECK_CLASS(MPI_Group_size(copy, &out), MPI_ERR_GROUP);
  CHECK_CLASS(MPI_Group_free(&copy), MPI_ERR_GROUP);
}

void topologies() {
  section("arguments of topology functions");
  int dims[2] = {1, 1}, periods[2] = {0, 0}, coords[2] = {0, 0}, zeros[2] = {0, 0};
  CHECK_CLASS(MPI_Cartdim_get(kWorld, &out), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Cart_get(kWorld, 2, dims, periods, coords), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Cart_rank(kWorld, coords, &out), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Cart_coords(kWorld, 0, 2, coords), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Cart_shift(kWorld, 0, 1, &out, &out2), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Cart_sub(kWorld, dims, &made), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Graphdims_get(kWorld, &out, &out2), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Graph_get(kWorld, 0, 0, zeros, zeros), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Graph_neighbors(kWorld, 0, 0, zeros), MPI_ERR_TOPOLOGY);
  CHECK_CLASS(MPI_Graph_neighbors_count(kWorld, 0, &out), MPI_ERR_TOPOLOGY);

  CHECK_CLASS(MPI_Dims_create(0, 2, zeros), MPI_ERR_ARG);
  int three[2] = {3, 0}, negative[2] = {-1, 0};
  CHECK_CLASS(MPI_Dims_create(4, 2, three), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Dims_create(4, 2, negative), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Dims_create(4, -1, zeros), MPI_ERR_DIMS);
  int too_many[2] = {size(), 2};
  CHECK_CLASS(MPI_Cart_create(kWorld, 2, too_many, periods, 0, &made), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Cart_create(kWorld, 2, negative, periods, 0, &made), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Cart_create(kWorld, -1, dims, periods, 0, &made), MPI_ERR_DIMS);
  const int falling[2] = {1, 0}, outside[1] = {7}, index[1] = {1}, edges[1] = {0};
  CHECK_CLASS(MPI_Graph_create(kWorld, size() + 1, index, edges, 0, &made), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Graph_create(kWorld, -1, index, edges, 0, &made), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Graph_create(kWorld, 1, index, outside, 0, &made), MPI_ERR_ARG);
  if (size() > 1) CHECK_CLASS(MPI_Graph_create(kWorld, 2, falling, edges, 0, &made), MPI_ERR_ARG);

  MPI_Comm cart;
  MPI_Cart_create(MPI_COMM_SELF, 2, dims, periods, 0, &cart);
  MPI_Comm_set_errhandler(cart, MPI_ERRORS_RETURN);
  const int beyond[2] = {0, 1};
  CHECK_CLASS(MPI_Cart_rank(cart, beyond, &out), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Cart_coords(cart, 1, 2, coords), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Cart_coords(cart, -1, 2, coords), MPI_ERR_RANK);
  CHECK_CLASS(MPI_Cart_shift(cart, 2, 1, &out, &out2), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Cart_shift(cart, -1, 1, &out, &out2), MPI_ERR_DIMS);
  CHECK_CLASS(MPI_Graphdims_get(cart, &out, &out2), MPI_ERR_TOPOLOGY);
  MPI_Comm_free(&cart);
}

void attributes() {
  section("key values that are none");
  void* value;
  int keyval = MPI_KEYVAL_INVALID;
  CHECK_CLASS(MPI_Comm_set_attr(kWorld, keyval, nullptr), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Comm_get_attr(kWorld, keyval, &value, &out), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Comm_delete_attr(kWorld, keyval), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Comm_free_keyval(&keyval), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Type_set_attr(MPI_INT, keyval, nullptr), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Type_get_attr(MPI_INT, keyval, &value, &out), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Comm_set_attr(kWorld, MPI_TAG_UB, nullptr), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Comm_delete_attr(kWorld, MPI_TAG_UB), MPI_ERR_KEYVAL);
  int tag_ub = MPI_TAG_UB;
  CHECK_CLASS(MPI_Comm_free_keyval(&tag_ub), MPI_ERR_KEYVAL);
  int type_key, comm_key;
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &type_key, nullptr);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &comm_key, nullptr);
  CHECK_CLASS(MPI_Comm_set_attr(kWorld, type_key, nullptr), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Type_set_attr(MPI_INT, comm_key, nullptr), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Comm_free_keyval(&type_key), MPI_ERR_KEYVAL);
  CHECK_CLASS(MPI_Comm_delete_attr(kWorld, comm_key), MPI_ERR_KEYVAL);  // nothing is attached
  CHECK_CLASS(MPI_Type_set_attr(MPI_DATATYPE_NULL, type_key, nullptr), MPI_ERR_TYPE);
  MPI_Type_free_keyval(&type_key);
  MPI_Comm_free_keyval(&comm_key);
}

void info_and_errors() {
  section("info objects, error handlers and codes that are none");
  char text[MPI_MAX_INFO_VAL + 1];
  MPI_Info info;
  MPI_Info_create(&info);
  const std::string long_key(MPI_MAX_INFO_KEY, 'k'), long_value(MPI_MAX_INFO_VAL, 'v');
  CHECK_CLASS(MPI_Info_set(MPI_INFO_NULL, "key", "value"), MPI_ERR_INFO);
  CHECK_CLASS(MPI_Info_get_nkeys(MPI_INFO_NULL, &out), MPI_ERR_INFO);
  CHECK_CLASS(MPI_Info_set(info, "", "value"), MPI_ERR_INFO_KEY);
  CHECK_CLASS(MPI_Info_set(info, long_key.c_str(), "value"), MPI_ERR_INFO_KEY);
  CHECK_CLASS(MPI_Info_set(info, "key", long_value.c_str()), MPI_ERR_INFO_VALUE);
  CHECK_CLASS(MPI_Info_delete(info, "key"), MPI_ERR_INFO_NOKEY);
  CHECK_CLASS(MPI_Info_get_nthkey(info, 0, text), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Info_get(info, "key", -1, text, &out), MPI_ERR_ARG);
  MPI_Info_free(&info);
  CHECK_CLASS(MPI_Info_free(&info), MPI_ERR_INFO);
  CHECK_CLASS(MPI_Error_class(-12345, &out), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Add_error_string(MPI_ERR_ARG, "mine"), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Comm_set_errhandler(kWorld, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);
  MPI_Errhandler null = MPI_ERRHANDLER_NULL;
  CHECK_CLASS(MPI_Errhandler_free(&null), MPI_ERR_ERRHANDLER);
  int provided;
  CHECK_CLASS(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SINGLE, &provided), MPI_ERR_OTHER);
  void* memory = nullptr;
  CHECK_CLASS(MPI_Init(nullptr, nullptr), MPI_ERR_OTHER);
  CHECK_CLASS(MPI_Info_set(MPI_INFO_ENV, "key", "value"), MPI_ERR_INFO);
  CHECK_CLASS(MPI_Alloc_mem(-1, MPI_INFO_NULL, &memory), MPI_ERR_ARG);
  CHECK_CLASS(MPI_Alloc_mem(MPI_Aint(1) << 60, MPI_INFO_NULL, &memory), MPI_ERR_NO_MEM);
  CHECK_CLASS(MPI_Info_delete(info, "key"), MPI_ERR_INFO);
  CHECK_CLASS(MPI_Comm_create_errhandler(nullptr, &null), MPI_ERR_ARG);
  // Integers and handles.
  CHECK(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
  CHECK_EQ(MPI_Comm_toint(MPI_COMM_WORLD), 0x101);
  MPI_Comm dup;
  MPI_Comm_dup(MPI_COMM_SELF, &dup);
  CHECK(MPI_Comm_toint(dup) > 0x3ff);
  CHECK(MPI_Comm_fromint(MPI_Comm_toint(dup)) == dup);
  MPI_Comm_free(&dup);
  CHECK(MPI_Alloc_mem(1000, MPI_INFO_NULL, &memory) == MPI_SUCCESS);
  CHECK(memory != nullptr);
  static_cast<char*>(memory)[999] = 'x';
  CHECK(MPI_Free_mem(memory) == MPI_SUCCESS);
  const double before = MPI_Wtime();
  CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 0.1);
  CHECK(MPI_Wtime() >= before);
  CHECK(MPI_Pcontrol(1) == MPI_SUCCESS);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  null_and_freed_communicators();
  failed_constructors();
  communicators();
  groups();
  topologies();
  attributes();
  info_and_errors();
  section("and all communicators still work");
  crossfire(MPI_COMM_WORLD);
  crossfire(MPI_COMM_SELF);
  return report();
}
