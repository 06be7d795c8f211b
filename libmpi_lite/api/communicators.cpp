// Communicators and intercommunicators: what they are and what is attached to them (MPI 5.0,
// chapter 7: MPI_Comm_free in 7.4.3, hints in 7.4.4, names in 7.8). How communicators are made is
// in communicator_constructors.cpp, their attributes are in attributes.cpp.
#include <algorithm>
#include <array>
#include <string_view>

#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/api/arguments/hints.hpp"
#include "libmpi_lite/core/keyval.hpp"
#include "libmpi_lite/transfer/buffered.hpp"

using namespace viaduct::mpi;

namespace viaduct::mpi {

// The hints about communicators that the standard knows (section 7.4.4), all "false" unless the
// program says otherwise. They are promises of the program. Choice: the library makes no use of
// them, but remembers them and tells them to MPI_Comm_get_info. Other hints are ignored.
constexpr std::array<std::string_view, 4> kKnown = {
    "mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length",
    "mpi_assert_allow_overtaking"};

void store_hints(Comm& comm, const Info& hints) {
  if (!comm.info) comm.info = make<Info>();
  auto& taken = comm.info->entries;
  for (const auto& hint : hints.entries) {
    if (std::ranges::find(kKnown, hint.first) == kKnown.end()) continue;
    if (hint.second != "true" && hint.second != "false") continue;
    std::erase_if(taken, [&](const auto& old) { return old.first == hint.first; });
    taken.push_back(hint);
  }
}

}  // namespace viaduct::mpi

namespace {

// MPI_CONGRUENT: same groups in the same order. MPI_SIMILAR: same members in another order. Both
// groups of intercommunicators count (section 7.4.1).
int compare_comms(const Comm& a, const Comm& b) {
  if (&a == &b) return MPI_IDENT;
  if (a.inter() != b.inter()) return MPI_UNEQUAL;
  const int local = compare(*a.group(), *b.group());
  const int remote = a.inter() ? compare(*a.remote_group(), *b.remote_group()) : MPI_IDENT;
  if (local == MPI_UNEQUAL || remote == MPI_UNEQUAL) return MPI_UNEQUAL;
  return local == MPI_IDENT && remote == MPI_IDENT ? MPI_CONGRUENT : MPI_SIMILAR;
}

}  // namespace

int PMPI_Comm_size(MPI_Comm comm, int* size) {
  return call("MPI_Comm_size", comm, [&](Comm& c) { *check_pointer(size, "size") = c.size(); });
}
VIADUCT_MPI(Comm_size);

int PMPI_Comm_rank(MPI_Comm comm, int* rank) {
  return call("MPI_Comm_rank", comm, [&](Comm& c) { *check_pointer(rank, "rank") = c.rank(); });
}
VIADUCT_MPI(Comm_rank);

int PMPI_Comm_group(MPI_Comm comm, MPI_Group* group) {
  return call("MPI_Comm_group", comm, [&](Comm& c) {
    check_pointer(group, "group");
    *group = new_group_handle(c.group());
  });
}
VIADUCT_MPI(Comm_group);

int PMPI_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int* result) {
  return call("MPI_Comm_compare", comm1, [&](Comm& c) {
    *check_pointer(result, "result") = compare_comms(c, check_comm(comm2, "comm2"));
  });
}
VIADUCT_MPI(Comm_compare);

int PMPI_Comm_test_inter(MPI_Comm comm, int* flag) {
  return call("MPI_Comm_test_inter", comm,
              [&](Comm& c) { *check_pointer(flag, "flag") = c.inter(); });
}
VIADUCT_MPI(Comm_test_inter);

int PMPI_Comm_remote_size(MPI_Comm comm, int* size) {
  return call("MPI_Comm_remote_size", comm, [&](Comm& c) {
    check_inter(c);
    *check_pointer(size, "size") = c.remote_group()->size();
  });
}
VIADUCT_MPI(Comm_remote_size);

int PMPI_Comm_remote_group(MPI_Comm comm, MPI_Group* group) {
  return call("MPI_Comm_remote_group", comm, [&](Comm& c) {
    check_inter(c);
    check_pointer(group, "group");
    *group = new_group_handle(c.remote_group());
  });
}
VIADUCT_MPI(Comm_remote_group);

// Frees the handle. Operations under way hold references to the object and go on (section 7.4.3).
int PMPI_Comm_free(MPI_Comm* comm) {
  return call("MPI_Comm_free", comm ? *comm : MPI_COMM_NULL, [&](Comm& c) {
    if (c.handle == MPI_COMM_WORLD || c.handle == MPI_COMM_SELF)
      fail(MPI_ERR_COMM, "argument comm is %s, which cannot be freed", c.name.c_str());
    // A delete callback may free the communicator itself, and `c` is written to after its handle is
    // gone.
    const Ref<Comm> kept(&c);
    delete_comm_attributes(*comm);
    if (c.buffer)
      static_cast<SendBuffer&>(*c.buffer).flush();  // its messages name the communicator
    c.buffer = nullptr;
    comm_handles.remove(reinterpret_cast<std::uintptr_t>(*comm));
    c.handle = *comm = MPI_COMM_NULL;
  });
}
VIADUCT_MPI(Comm_free);

// ---- names and hints ---------------------------------------------------------------------------

int PMPI_Comm_set_name(MPI_Comm comm, const char* comm_name) {
  return call("MPI_Comm_set_name", comm,
              [&](Comm& c) { c.name = checked_name(comm_name, "comm_name"); });
}
VIADUCT_MPI(Comm_set_name);

// The null handle has a name, too, so it does not go through the check of call() (section 7.8).
int PMPI_Comm_get_name(MPI_Comm comm, char* comm_name, int* resultlen) {
  if (comm == MPI_COMM_NULL)
    return call("MPI_Comm_get_name", [&] { copy_string("MPI_COMM_NULL", comm_name, resultlen); });
  return call("MPI_Comm_get_name", comm,
              [&](Comm& c) { copy_string(c.name, comm_name, resultlen); });
}
VIADUCT_MPI(Comm_get_name);

int PMPI_Comm_set_info(MPI_Comm comm, MPI_Info info) {
  return call("MPI_Comm_set_info", comm, [&](Comm& c) { store_hints(c, check_info(info)); });
}
VIADUCT_MPI(Comm_set_info);

int PMPI_Comm_get_info(MPI_Comm comm, MPI_Info* info_used) {
  return call("MPI_Comm_get_info", comm, [&](Comm& c) {
    check_pointer(info_used, "info_used");
    Ref<Info> copy = make<Info>();
    if (c.info) copy->entries = c.info->entries;
    for (const std::string_view hint : kKnown)
      if (std::none_of(copy->entries.begin(), copy->entries.end(),
                       [&](const auto& entry) { return entry.first == hint; }))
        copy->entries.emplace_back(hint, "false");
    *info_used = new_handle<MPI_Info>(info_handles, std::move(copy));
  });
}
VIADUCT_MPI(Comm_get_info);
