#include "libmpi_lite/channel/vi/registrations.hpp"

#include <unistd.h>

#include <algorithm>

namespace viaduct::mpi {
namespace {

// The pages that the memory lies in.
AddressRange pages_of(const void* address, std::size_t bytes) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  return {begin & ~(page - 1), (begin + bytes + page - 1) & ~(page - 1)};
}

}  // namespace

Registrations::~Registrations() {
  for (const auto& [begin, registration] : kept_) deregister(*registration);
  for (const auto& registration : others_) deregister(*registration);
}

Registrations::Registration* Registrations::acquire(const void* address, std::size_t bytes) {
  const AddressRange range = pages_of(address, bytes);
  if (Registration* const found = find(range)) {
    ++counts_.hits;
    return use(*found);
  }
  ++counts_.misses;
  return add(range);
}

Registrations::Kept::iterator Registrations::first_overlap(const AddressRange& range) {
  auto at = kept_.upper_bound(range.begin);
  if (at != kept_.begin() && std::prev(at)->second->range_.end > range.begin) --at;
  return at;
}

Registrations::Registration* Registrations::find(const AddressRange& range) {
  const auto at = first_overlap(range);
  if (at == kept_.end()) return nullptr;
  const AddressRange& r = at->second->range_;
  return r.begin <= range.begin && range.end <= r.end ? at->second.get() : nullptr;
}

// Takes the place of the registrations that it overlaps. The new one covers these as well: a
// program that uses now one part of an array and now another would else register it again and
// again.
Registrations::Registration* Registrations::add(AddressRange range) {
  for (auto at = first_overlap(range); at != kept_.end() && at->second->range_.overlaps(range);) {
    range.begin = std::min(range.begin, at->second->range_.begin);
    range.end = std::max(range.end, at->second->range_.end);
    at = drop(at);
  }
  const std::size_t bytes = range.end - range.begin;
  while (counts_.pinned + bytes > limit_)
    if (!drop_oldest_unused()) return ++counts_.refused, nullptr;
  auto registration = std::make_unique<Registration>();
  registration->range_ = range;
  while ((registration->handle_ = registrar_.register_memory(range)) == 0)
    if (!drop_oldest_unused()) return ++counts_.refused, nullptr;
  counts_.pinned += bytes;
  counts_.peak = std::max(counts_.peak, counts_.pinned);
  Registration& r = *registration;
  r.users_ = 1;
  r.kept_ = keeps_;
  if (keeps_)
    kept_.emplace(range.begin, std::move(registration));
  else
    others_.push_back(std::move(registration));
  return &r;
}

Registrations::Registration* Registrations::use(Registration& registration) {
  if (registration.users_++ == 0) unused_.erase(registration.place_);
  return &registration;
}

void Registrations::release(Registration& registration) {
  if (--registration.users_ != 0) return;
  if (registration.kept_) {
    registration.place_ = unused_.insert(unused_.end(), &registration);
    return;
  }
  deregister(registration);
  const auto at = std::find_if(others_.begin(), others_.end(),
                               [&](const auto& other) { return other.get() == &registration; });
  others_.erase(at);
}

void Registrations::forget(const AddressRange& range) {
  for (auto at = first_overlap(range); at != kept_.end() && at->second->range_.overlaps(range);) {
    ++counts_.forgotten;
    at = drop(at);
  }
}

AddressRange Registrations::kept() const {
  if (kept_.empty()) return {};
  return {kept_.begin()->first, kept_.rbegin()->second->range_.end};
}

Registrations::Kept::iterator Registrations::drop(Kept::iterator at) {
  Registration& r = *at->second;
  r.kept_ = false;
  if (r.users_ == 0) {
    unused_.erase(r.place_);
    deregister(r);
  } else {
    others_.push_back(std::move(at->second));
  }
  return kept_.erase(at);
}

bool Registrations::drop_oldest_unused() {
  if (unused_.empty()) return false;
  drop(kept_.find(unused_.front()->range_.begin));
  return true;
}

void Registrations::deregister(const Registration& registration) {
  registrar_.deregister_memory(registration.range_, registration.handle_);
  counts_.pinned -= registration.range_.end - registration.range_.begin;
}

}  // namespace viaduct::mpi
