// Protection tags and registered memory of an open NIC.
//
// A tag is a protection domain of the device, so the device itself checks tags, of RDMA from
// elsewhere too. The default tag (a NULL handle) shares its domain with the first tag there is:
// programs use VIs without a tag with memory of their only tag, and the reverse.
//
// The memory handle is the remote key of the region as the device knows it, so it means the same at
// both ends of a connection without being translated. (A region that nobody else may use goes by
// its local key.)
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

struct Tag {
  VIP_PROTECTION_HANDLE handle = nullptr;
  std::shared_ptr<vi::Domain> domain;
};
// Who has one uses the tag: it is not destroyed meanwhile.
using TagUse = std::shared_ptr<const Tag>;

class Memory {
 public:
  // Throws vi::SetupError.
  explicit Memory(vi::Device& device);

  VIP_RETURN create_tag(VIP_PROTECTION_HANDLE& made);
  VIP_RETURN destroy_tag(VIP_PROTECTION_HANDLE handle);
  TagUse use_tag(VIP_PROTECTION_HANDLE handle);  // nullptr: there is none

  // `attributes` may be a null pointer: the default tag, no RDMA.
  VIP_RETURN add(void* address, std::size_t bytes, const VIP_MEM_ATTRIBUTES* attributes,
                 VIP_MEM_HANDLE& made);
  // VIP_ERROR_RESOURCE: in_use() says that the device has work that needs it. `forget` is called if
  // elsewhere the handle stands for another key.
  using InUse = std::function<bool()>;
  VIP_RETURN remove(void* address, VIP_MEM_HANDLE handle, const InUse& in_use,
                    const std::function<void()>& forget);
  VIP_RETURN query(void* address, VIP_MEM_HANDLE handle, VIP_MEM_ATTRIBUTES& attributes);
  // Likewise. `announce` is called with what the handle stands for elsewhere from now on; until it
  // returns, the old key is good too.
  VIP_RETURN change(void* address, VIP_MEM_HANDLE handle, const VIP_MEM_ATTRIBUTES& attributes,
                    const InUse& in_use, const std::function<void(std::uint32_t)>& announce);

  // For posting; no lock.
  const RegionTable& regions() const { return regions_; }

 private:
  struct Registration {
    std::unique_ptr<Region> region;
    TagUse tag;
    std::unique_ptr<vi::Region> registered;
    void* address = nullptr;
    std::size_t bytes = 0;
    VIP_MEM_ATTRIBUTES attributes{};
    bool renamed = false;
  };

  VIP_RETURN check(const VIP_MEM_ATTRIBUTES& attributes, TagUse& tag);
  std::unique_ptr<vi::Region> register_memory(const Registration& wanted);
  Registration* find(void* address, VIP_MEM_HANDLE handle);
  VIP_RETURN hide_unused(void* address, VIP_MEM_HANDLE handle, const InUse& in_use);
  void hide(VIP_MEM_HANDLE handle);
  void show(VIP_MEM_HANDLE handle);
  std::unique_ptr<Region> take_spare();

  vi::Device& device_;
  // Regions change and go one at a time, so that the other sides hear of it in the same order.
  std::mutex changing_;
  std::mutex mutex_;
  std::shared_ptr<Tag> default_tag_;
  std::weak_ptr<Tag> first_tag_;  // shares the default tag's domain
  std::unordered_map<void*, std::shared_ptr<Tag>> tags_;
  RegionTable regions_;
  std::unordered_map<VIP_MEM_HANDLE, Registration> registrations_;
  std::size_t renamed_ = 0;
  std::vector<std::unique_ptr<Region>> spare_;  // not freed: somebody may be looking at them
  std::size_t made_ = 0;                        // all regions, spare or not
};

}  // namespace viaduct::vipl
