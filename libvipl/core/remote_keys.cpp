// A sorted vector: searched for each RDMA of a VI whose other side has changed regions, else never.
#include "libvipl/core/remote_keys.hpp"

namespace viaduct::vipl {

std::uint32_t RemoteKeys::find(VIP_MEM_HANDLE handle) const {
  const auto at = std::lower_bound(changed_.begin(), changed_.end(), Changed{handle, 0});
  return at != changed_.end() && at->first == handle ? at->second : handle;
}

void RemoteKeys::set(VIP_MEM_HANDLE handle, std::uint32_t key) {
  const auto at = std::lower_bound(changed_.begin(), changed_.end(), Changed{handle, 0});
  const bool is_known = at != changed_.end() && at->first == handle;
  const bool is_itself = key == 0 || key == handle;
  if (is_known && is_itself)
    changed_.erase(at);
  else if (is_known)
    at->second = key;
  else if (!is_itself)
    changed_.insert(at, {handle, key});
}

}  // namespace viaduct::vipl
