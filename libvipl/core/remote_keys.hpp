// RemoteKeys: the other side's memory handles that are no longer remote keys, because the
// attributes of their regions have been changed (VipSetMemAttributes there). Mostly there are none,
// and then a handle is the key.
//
// One for each VI, under the lock of posting sends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <vipl.h>

namespace viaduct::vipl {

class RemoteKeys {
 public:
  // The remote key that RDMA to `handle` must use.
  std::uint32_t of(VIP_MEM_HANDLE handle) const { return changed_.empty() ? handle : find(handle); }
  // From now on `handle` stands for `key`. 0, or the handle itself: it is the key again. May throw
  // std::bad_alloc.
  void set(VIP_MEM_HANDLE handle, std::uint32_t key);
  void clear() { changed_.clear(); }

 private:
  using Changed = std::pair<VIP_MEM_HANDLE, std::uint32_t>;
  [[gnu::cold]] std::uint32_t find(VIP_MEM_HANDLE handle) const;

  std::vector<Changed> changed_;  // sorted by handle
};

}  // namespace viaduct::vipl
