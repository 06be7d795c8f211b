// Makes the predefined communicators, groups and error handlers. Their contexts 0 and 2 are the
// ones that collective/agreement.cpp never gives away.
#include "libmpi_lite/core/predefined.hpp"

#include <numeric>

#include "libmpi_lite/core/comm.hpp"

namespace viaduct::mpi {

namespace {

template <class Handle, class T, HandleKind kKind>
void define(HandleTable<T, kKind>& table, Handle constant, Ref<T> object) {
  table.define(reinterpret_cast<std::uintptr_t>(constant), std::move(object));
}

void define_errhandler(MPI_Errhandler constant, Errhandler::Kind kind) {
  Ref<Errhandler> errhandler = make<Errhandler>(kind, nullptr);
  errhandler->handle = constant;
  define(errhandler_handles, constant, std::move(errhandler));
}

void define_comm(MPI_Comm constant, const char* name, std::uint32_t context, Ref<Group> group) {
  Ref<Comm> comm = make<Comm>(context, std::move(group), nullptr, nullptr);
  comm->handle = constant;
  comm->name = name;
  define(comm_handles, constant, std::move(comm));
}

}  // namespace

void define_errhandlers() {
  if (errhandler_handles.find(reinterpret_cast<std::uintptr_t>(MPI_ERRORS_RETURN))) return;
  define_errhandler(MPI_ERRORS_ARE_FATAL, Errhandler::Kind::fatal);
  define_errhandler(MPI_ERRORS_ABORT, Errhandler::Kind::abort);
  define_errhandler(MPI_ERRORS_RETURN, Errhandler::Kind::give_back);
}

void define_predefined(int world_rank, int world_size) {
  define_errhandlers();
  std::vector<int> everybody(static_cast<std::size_t>(world_size));
  std::iota(everybody.begin(), everybody.end(), 0);
  define(group_handles, MPI_GROUP_EMPTY, make<Group>(std::vector<int>{}, world_rank));
  define_comm(MPI_COMM_WORLD, "MPI_COMM_WORLD", 0, make<Group>(std::move(everybody), world_rank));
  define_comm(MPI_COMM_SELF, "MPI_COMM_SELF", 2,
              make<Group>(std::vector<int>{world_rank}, world_rank));
}

}  // namespace viaduct::mpi
