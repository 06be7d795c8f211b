// Groups (MPI 5.0, section 7.3). Purely local: a group is an immutable list of ranks in
// MPI_COMM_WORLD (core/group.hpp), where the set operations are. An empty result is always
// MPI_GROUP_EMPTY.
#include "libmpi_lite/api/arguments/arguments.hpp"

using namespace viaduct::mpi;

namespace {

using Combine = Ref<Group>(const Group&, const Group&);

// A function that makes a group out of two.
int combine(const char* function, Combine* how, MPI_Group group1, MPI_Group group2,
            MPI_Group* newgroup) {
  return call(function, [&] {
    check_pointer(newgroup, "newgroup");
    *newgroup = new_group_handle(how(check_group(group1, "group1"), check_group(group2, "group2")));
  });
}

using Choose = Ref<Group>(const Group&, std::span<const int>);

// A function that makes a group out of some ranks of another one.
int choose(const char* function, Choose* how, MPI_Group group, int n, const int ranks[],
           MPI_Group* newgroup) {
  return call(function, [&] {
    const Group& g = check_group(group);
    check_pointer(newgroup, "newgroup");
    *newgroup = new_group_handle(how(g, check_array(ranks, n, "ranks", "n")));
  });
}

// The forms with ranges: ranges are expanded to ranks first.
int choose(const char* function, Choose* how, MPI_Group group, int n, const RankRange ranges[],
           MPI_Group* newgroup) {
  return call(function, [&] {
    const Group& g = check_group(group);
    check_pointer(newgroup, "newgroup");
    *newgroup = new_group_handle(how(g, expand(g, check_array(ranges, n, "ranges", "n"))));
  });
}

}  // namespace

int PMPI_Group_size(MPI_Group group, int* size) {
  return call("MPI_Group_size", [&] { *check_pointer(size, "size") = check_group(group).size(); });
}
VIADUCT_MPI(Group_size);

int PMPI_Group_rank(MPI_Group group, int* rank) {
  return call("MPI_Group_rank", [&] { *check_pointer(rank, "rank") = check_group(group).rank(); });
}
VIADUCT_MPI(Group_rank);

// Ranks of processes that are not in group2 become MPI_UNDEFINED.
int PMPI_Group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2,
                               int ranks2[]) {
  return call("MPI_Group_translate_ranks", [&] {
    const Group& from = check_group(group1, "group1");
    const Group& to = check_group(group2, "group2");
    const std::span ranks = check_array(ranks1, n, "ranks1", "n");
    const std::span translated = check_array(ranks2, n, "ranks2", "n");
    for (std::size_t i = 0; i < ranks.size(); ++i)
      translated[i] =
          ranks[i] == MPI_PROC_NULL
              ? MPI_PROC_NULL
              : to.rank_of(from.world_rank(check_rank(ranks[i], from.size(), "ranks1")));
  });
}
VIADUCT_MPI(Group_translate_ranks);

int PMPI_Group_compare(MPI_Group group1, MPI_Group group2, int* result) {
  return call("MPI_Group_compare", [&] {
    *check_pointer(result, "result") =
        compare(check_group(group1, "group1"), check_group(group2, "group2"));
  });
}
VIADUCT_MPI(Group_compare);

int PMPI_Group_union(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  return combine("MPI_Group_union", unite, group1, group2, newgroup);
}
VIADUCT_MPI(Group_union);

int PMPI_Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  return combine("MPI_Group_intersection", intersect, group1, group2, newgroup);
}
VIADUCT_MPI(Group_intersection);

int PMPI_Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup) {
  return combine("MPI_Group_difference", subtract, group1, group2, newgroup);
}
VIADUCT_MPI(Group_difference);

int PMPI_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup) {
  return choose("MPI_Group_incl", include, group, n, ranks, newgroup);
}
VIADUCT_MPI(Group_incl);

int PMPI_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup) {
  return choose("MPI_Group_excl", exclude, group, n, ranks, newgroup);
}
VIADUCT_MPI(Group_excl);

int PMPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup) {
  return choose("MPI_Group_range_incl", include, group, n, ranges, newgroup);
}
VIADUCT_MPI(Group_range_incl);

int PMPI_Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup) {
  return choose("MPI_Group_range_excl", exclude, group, n, ranges, newgroup);
}
VIADUCT_MPI(Group_range_excl);

// MPI-1 programs free MPI_GROUP_EMPTY like any other result. That is accepted; the predefined group
// stays in the table.
int PMPI_Group_free(MPI_Group* group) {
  return call("MPI_Group_free", [&] {
    check_group(*check_pointer(group, "group"));
    group_handles.remove(reinterpret_cast<std::uintptr_t>(*group));
    *group = MPI_GROUP_NULL;
  });
}
VIADUCT_MPI(Group_free);
