// The handles that persistent collectives have of their own.
#include "libmpi_lite/api/collectives/persistent.hpp"

namespace viaduct::mpi {

HeldObjects::~HeldObjects() {
  for (const MPI_Datatype type : types_)
    datatype_handles.remove(reinterpret_cast<std::uintptr_t>(type));
}

void HeldObjects::hold(MPI_Datatype& type) {
  Datatype& t = datatype(type);
  if (t.predefined()) return;
  type = new_handle<MPI_Datatype>(datatype_handles, Ref<Datatype>(&t));
  types_.push_back(type);
}

// With a count of 0 the handle is not significant and need not be valid.
void HeldObjects::hold(MixedParts& parts) {
  if (!parts.counts) return;
  const auto blocks = static_cast<std::size_t>(parts.blocks);
  auto types = std::make_unique<MPI_Datatype[]>(blocks);
  for (std::size_t block = 0; block < blocks; ++block) {
    types[block] = parts.counts[block] ? parts.types[block] : MPI_BYTE;
    hold(types[block]);
  }
  parts.types = types.get();
  arrays_.push_back(std::move(types));
}

}  // namespace viaduct::mpi
