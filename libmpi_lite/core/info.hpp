// Info objects (MPI 5.0, chapter 10): ordered (key, value) pairs. api/info.cpp checks keys and
// values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "libmpi_lite/core/handle.hpp"

namespace viaduct::mpi {

class Info final : public Counted {
 public:
  std::vector<std::pair<std::string, std::string>> entries;  // in the order of insertion
};

inline HandleTable<Info, HandleKind::info> info_handles;

}  // namespace viaduct::mpi
