// The memory handles of the other side of a connection that are no longer remote keys themselves,
// because the attributes of their regions have been changed. Mostly there are none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <vipl.h>

namespace viaduct::vipl {

class RemoteKeys {
 public:
  std::uint32_t of(VIP_MEM_HANDLE handle) const { return changed_.empty() ? handle : find(handle); }
  // From now on `handle` stands for `key`; 0, or itself: for itself. May throw std::bad_alloc.
  void set(VIP_MEM_HANDLE handle, std::uint32_t key);
  void clear() { changed_.clear(); }

 private:
  using Changed = std::pair<VIP_MEM_HANDLE, std::uint32_t>;
  [[gnu::cold]] std::uint32_t find(VIP_MEM_HANDLE handle) const;

  std::vector<Changed> changed_;  // in the order of handles
};

}  // namespace viaduct::vipl
