// Registering, changing and deregistering memory. region_table.cpp has the table that posting
// reads; manager.cpp tells the other sides of new keys.
#include "libvipl/core/memory.hpp"

#include <atomic>

#include "libvipl/connection/wire.hpp"
#include "libvipl/core/queues/work_reader.hpp"
#include "libvipl/core/slot_table.hpp"

namespace viaduct::vipl {
namespace {

vi::Rights rights_of(const VIP_MEM_ATTRIBUTES& attributes) {
  return {attributes.EnableRdmaWrite != VIP_FALSE, attributes.EnableRdmaRead != VIP_FALSE};
}

VIP_PROTECTION_HANDLE new_tag_handle() {
  static std::atomic<std::uint64_t> made{0};
  return reinterpret_cast<VIP_PROTECTION_HANDLE>(make_handle(HandleKind::tag, ++made, 0));
}

// The handle of a region. 0 is no handle: existing programs take it for a failure.
std::uint32_t key_of(const vi::Region& region) {
  return region.remote_key() != 0 ? region.remote_key() : region.local_key();
}

// Only while no thread can find the region by its handle.
void fill(Region& region, const vi::Region& registered, const vi::Domain& domain, void* address,
          std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  region.begin.store(begin, std::memory_order_relaxed);
  region.end.store(begin + bytes, std::memory_order_relaxed);
  region.domain.store(&domain, std::memory_order_relaxed);
  region.local_key.store(registered.local_key(), std::memory_order_release);
}

}  // namespace

Memory::Memory(vi::Device& device) : device_(device), default_tag_(std::make_shared<Tag>()) {
  default_tag_->domain = device.create_domain();
  if (default_tag_->domain == nullptr)
    throw vi::SetupError("the RDMA device has no protection domain left: close other programs");
}

VIP_RETURN Memory::create_tag(VIP_PROTECTION_HANDLE& made) {
  const std::lock_guard lock(mutex_);
  const auto tag = std::make_shared<Tag>();
  tag->handle = new_tag_handle();
  const bool first = first_tag_.expired();
  tag->domain = first ? default_tag_->domain : device_.create_domain();
  if (tag->domain == nullptr) return VIP_ERROR_RESOURCE;
  tags_.emplace(tag->handle, tag);
  if (first) first_tag_ = tag;
  made = tag->handle;
  return VIP_SUCCESS;
}

VIP_RETURN Memory::destroy_tag(VIP_PROTECTION_HANDLE handle) {
  const std::lock_guard lock(mutex_);
  const auto found = tags_.find(handle);
  if (found == tags_.end()) return VIP_INVALID_PARAMETER;
  // Besides the table itself a VI or a region has a reference.
  if (found->second.use_count() != 1) return VIP_ERROR_RESOURCE;
  tags_.erase(found);
  return VIP_SUCCESS;
}

TagUse Memory::use_tag(VIP_PROTECTION_HANDLE handle) {
  const std::lock_guard lock(mutex_);
  if (handle == nullptr) return default_tag_;
  const auto found = tags_.find(handle);
  return found == tags_.end() ? nullptr : found->second;
}

VIP_RETURN Memory::check(const VIP_MEM_ATTRIBUTES& attributes, TagUse& tag) {
  tag = use_tag(attributes.Ptag);
  if (tag == nullptr) return VIP_INVALID_PTAG;
  if (attributes.EnableRdmaRead != VIP_FALSE && device_.limits().reads_served == 0)
    return VIP_INVALID_RDMAREAD;
  return VIP_SUCCESS;
}

// Registers memory under a key that is free as a handle. A key may be taken: a region that has
// an alias keeps its old key as its handle, and the device may give that key to another region.
// Then the device is asked again, while the region with the unwanted key is held, so that it gives
// another key. nullptr: the device refuses, or no free key was found.
std::unique_ptr<vi::Region> Memory::register_memory(const Registration& wanted) {
  constexpr std::size_t kTries = 8;
  std::vector<std::unique_ptr<vi::Region>> held_back;
  while (held_back.size() < kTries) {
    auto registered = wanted.tag->domain->register_memory(wanted.address, wanted.bytes,
                                                          rights_of(wanted.attributes));
    if (registered == nullptr) return nullptr;
    const std::uint32_t key = key_of(*registered);
    if (key != kNowhere && key != kSeveral && !registrations_.contains(key)) return registered;
    held_back.push_back(std::move(registered));
  }
  return nullptr;
}

// Makes room in spare_ for every Region there is. So remove() and change() can push a region back
// without an allocation, at a point where nothing may fail any more.
std::unique_ptr<Region> Memory::take_spare() {
  if (spare_.empty()) {
    if (spare_.capacity() == made_) spare_.reserve(2 * made_ + 1);
    spare_.push_back(std::make_unique<Region>());
    ++made_;
  }
  std::unique_ptr<Region> region = std::move(spare_.back());
  spare_.pop_back();
  return region;
}

VIP_RETURN Memory::add(void* address, std::size_t bytes, const VIP_MEM_ATTRIBUTES* attributes,
                       VIP_MEM_HANDLE& made) {
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  if (address == nullptr || bytes == 0 || begin + bytes < begin) return VIP_INVALID_PARAMETER;
  Registration added;
  added.address = address;
  added.bytes = bytes;
  if (attributes != nullptr) added.attributes = *attributes;
  const VIP_RETURN wrong = check(added.attributes, added.tag);
  if (wrong != VIP_SUCCESS) return wrong;

  const std::lock_guard lock(mutex_);
  added.registered = register_memory(added);
  if (added.registered == nullptr) return VIP_ERROR_RESOURCE;
  const std::uint32_t key = key_of(*added.registered);
  // Room for hidden regions too, so that show() cannot fail.
  regions_.reserve(registrations_.size() + 1);
  const auto entry = registrations_.emplace(key, std::move(added)).first;
  Registration& it = entry->second;
  try {
    it.region = take_spare();
  } catch (...) {
    registrations_.erase(entry);
    throw;
  }
  fill(*it.region, *it.registered, *it.tag->domain, address, bytes);
  // The last of the fields, with release order: a thread that finds this handle sees the others.
  it.region->handle.store(key, std::memory_order_release);
  regions_.insert(*it.region);
  made = key;
  return VIP_SUCCESS;
}

Memory::Registration* Memory::find(void* address, VIP_MEM_HANDLE handle) {
  const auto found = registrations_.find(handle);
  if (found == registrations_.end() || found->second.address != address) return nullptr;
  return &found->second;
}

void Memory::hide(VIP_MEM_HANDLE handle) {
  const std::lock_guard lock(mutex_);
  Region& region = *registrations_.at(handle).region;
  regions_.erase(region);
  region.handle.store(0, std::memory_order_release);
}

void Memory::show(VIP_MEM_HANDLE handle) {
  const std::lock_guard lock(mutex_);
  Region& region = *registrations_.at(handle).region;
  region.handle.store(handle, std::memory_order_release);
  regions_.insert(region);  // add() has made room for all
}

// in_use() is asked twice. The first time avoids hiding a region that is in use: a thread that
// posts at that moment would get an error. The second time is the one that counts: once the region
// is hidden, no new work can use it.
VIP_RETURN Memory::hide_unused(void* address, VIP_MEM_HANDLE handle, const InUse& in_use) {
  {
    const std::lock_guard lock(mutex_);
    if (find(address, handle) == nullptr) return VIP_INVALID_PARAMETER;
  }
  if (in_use()) return VIP_ERROR_RESOURCE;
  hide(handle);
  if (!in_use()) return VIP_SUCCESS;
  show(handle);
  return VIP_ERROR_RESOURCE;
}

VIP_RETURN Memory::remove(void* address, VIP_MEM_HANDLE handle, const InUse& in_use,
                          const std::function<void()>& forget) {
  const std::lock_guard changing(changing_);
  const VIP_RETURN result = hide_unused(address, handle, in_use);
  if (result != VIP_SUCCESS) return result;
  std::unique_lock lock(mutex_);
  Registration& it = registrations_.at(handle);
  // Copied: the registration is gone when forget() is called, without the lock.
  const bool has_alias = it.has_alias;
  if (has_alias) --alias_count_;
  spare_.push_back(std::move(it.region));
  registrations_.erase(handle);
  lock.unlock();
  if (has_alias) forget();
  return VIP_SUCCESS;
}

VIP_RETURN Memory::query(void* address, VIP_MEM_HANDLE handle, VIP_MEM_ATTRIBUTES& attributes) {
  const std::lock_guard lock(mutex_);
  const Registration* const it = find(address, handle);
  if (it == nullptr) return VIP_INVALID_PARAMETER;
  attributes = it->attributes;
  return VIP_SUCCESS;
}

VIP_RETURN Memory::change(void* address, VIP_MEM_HANDLE handle,
                          const VIP_MEM_ATTRIBUTES& attributes, const InUse& in_use,
                          const std::function<void(std::uint32_t)>& announce) {
  Registration wanted;
  const VIP_RETURN wrong = check(attributes, wanted.tag);
  if (wrong != VIP_SUCCESS) return wrong;
  wanted.attributes = attributes;
  wanted.address = address;
  wanted.has_alias = true;

  const std::lock_guard changing(changing_);
  {
    const std::lock_guard lock(mutex_);
    const Registration* const old = find(address, handle);
    if (old == nullptr) return VIP_INVALID_PARAMETER;
    // The limit of the connection protocol.
    if (!old->has_alias && alias_count_ == kMaxAliases) return VIP_ERROR_RESOURCE;
    wanted.bytes = old->bytes;
    wanted.registered = register_memory(wanted);
    if (wanted.registered == nullptr) return VIP_ERROR_RESOURCE;
    wanted.region = take_spare();
    fill(*wanted.region, *wanted.registered, *wanted.tag->domain, address, wanted.bytes);
  }
  const VIP_RETURN result = hide_unused(address, handle, in_use);
  if (result != VIP_SUCCESS) {
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(wanted.region));
    return result;
  }
  const std::uint32_t remote_key = wanted.registered->remote_key();
  {
    const std::lock_guard lock(mutex_);
    Registration& it = registrations_.at(handle);
    if (!it.has_alias) ++alias_count_;
    // `wanted` holds the old registration now, and with it the device's old region, until this
    // function returns.
    std::swap(it, wanted);
    spare_.push_back(std::move(wanted.region));
  }
  show(handle);
  announce(remote_key);
  return VIP_SUCCESS;  // now the device forgets the old key, which stays the name of the region
}

}  // namespace viaduct::vipl
