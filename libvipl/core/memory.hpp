// Memory: protection tags and registered memory of an open NIC (VipCreatePtag, VipRegisterMem,
// ...).
//
// A protection tag is a protection domain of the device, so the device itself checks tags, also for
// RDMA from other hosts. The default tag (a NULL handle) shares its domain with the first tag that
// the program creates: programs use VIs without a tag together with memory of their only tag, and
// the reverse.
//
// A memory handle is the region's remote key, so it means the same at both ends of a connection
// without a translation. (A region that nobody else may use is named by its local key.) When the
// attributes of a region change, the device gives it another key, but the handle stays. Then the
// other sides are told an alias, see remote_keys.hpp.
//
// Owned by Nic. Any thread may call any function.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <vipl.h>

#include "drivers/vi_over_verbs/verbs.hpp"
#include "libvipl/core/region_table.hpp"

namespace viaduct::vipl {

// A protection tag: the program's handle, and the device's protection domain.
struct Tag {
  VIP_PROTECTION_HANDLE handle = nullptr;
  std::shared_ptr<vi::Domain> domain;
};
// A reference to a tag. VipDestroyPtag fails while a VI or a region has one.
using TagUse = std::shared_ptr<const Tag>;

class Memory {
 public:
  // Makes the default tag's domain. Throws vi::SetupError if the device has none left.
  explicit Memory(vi::Device& device);

  // VipCreatePtag, VipDestroyPtag: the return codes are theirs. May throw std::bad_alloc.
  VIP_RETURN create_tag(VIP_PROTECTION_HANDLE& made);
  VIP_RETURN destroy_tag(VIP_PROTECTION_HANDLE handle);
  // The tag of this handle; NULL: the default tag. nullptr: there is no such tag.
  TagUse use_tag(VIP_PROTECTION_HANDLE handle);  // nullptr: there is none

  // VipRegisterMem. `bytes` from `address`; `attributes` may be a null pointer: the default tag, no
  // RDMA.
  VIP_RETURN add(void* address, std::size_t bytes, const VIP_MEM_ATTRIBUTES* attributes,
                 VIP_MEM_HANDLE& made);
  // Whether the device has work that uses the region. Memory asks without its lock (mutex_),
  // because the answer takes the locks of VIs.
  using InUse = std::function<bool()>;
  // VipDeregisterMem. VIP_ERROR_RESOURCE: in_use(). `forget` is called if the other sides know an
  // alias of the handle.
  VIP_RETURN remove(void* address, VIP_MEM_HANDLE handle, const InUse& in_use,
                    const std::function<void()>& forget);
  VIP_RETURN query(void* address, VIP_MEM_HANDLE handle, VIP_MEM_ATTRIBUTES& attributes);
  // VipSetMemAttributes. VIP_ERROR_RESOURCE: in_use(), too many aliases, or the device has no
  // region left. `announce` is called with the remote key that the handle stands for from now on;
  // until it returns, the old key is valid as well, so an RDMA of a side that does not know yet
  // succeeds.
  VIP_RETURN change(void* address, VIP_MEM_HANDLE handle, const VIP_MEM_ATTRIBUTES& attributes,
                    const InUse& in_use, const std::function<void(std::uint32_t)>& announce);

  // The table that posting looks handles up in, without a lock.
  const RegionTable& regions() const { return regions_; }

 private:
  // A registered region.
  struct Registration {
    std::unique_ptr<Region> region;          // its entry in regions_
    TagUse tag;                              // keeps the protection domain
    std::unique_ptr<vi::Region> registered;  // the device's region
    void* address = nullptr;
    std::size_t bytes = 0;
    VIP_MEM_ATTRIBUTES attributes{};
    bool has_alias = false;  // the handle is no longer its remote key
  };

  // Whether a region may have these attributes; `tag` becomes their tag.
  VIP_RETURN check(const VIP_MEM_ATTRIBUTES& attributes, TagUse& tag);
  std::unique_ptr<vi::Region> register_memory(const Registration& wanted);
  // nullptr: no region with this handle begins at this address.
  Registration* find(void* address, VIP_MEM_HANDLE handle);
  // Hides the region from posting, unless the device uses it.
  VIP_RETURN hide_unused(void* address, VIP_MEM_HANDLE handle, const InUse& in_use);
  // Takes the region out of regions_, or puts it back.
  void hide(VIP_MEM_HANDLE handle);
  void show(VIP_MEM_HANDLE handle);
  std::unique_ptr<Region> take_spare();

  vi::Device& device_;
  // Held for a whole change() or remove(), so that the other sides hear of changes in the order in
  // which they happen. Taken before mutex_, and before the locks that in_use() and announce() take.
  std::mutex changing_;
  std::mutex mutex_;  // protects all below; held briefly
  std::shared_ptr<Tag> default_tag_;
  std::weak_ptr<Tag> first_tag_;  // shares the default tag's domain, while it exists
  std::unordered_map<void*, std::shared_ptr<Tag>> tags_;
  RegionTable regions_;
  std::unordered_map<VIP_MEM_HANDLE, Registration> registrations_;
  std::size_t alias_count_ = 0;  // regions that have an alias
  // To be used again; not freed, because a thread may still be reading one.
  std::vector<std::unique_ptr<Region>> spare_;
  std::size_t made_ = 0;  // all Region objects, in use or spare
};

}  // namespace viaduct::vipl
