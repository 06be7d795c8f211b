// Device arguments, "key=value,key=value...", read with DPDK's own parser (librte_kvargs), so that
// they mean the same to us as to the driver that gets them. It needs no EAL; any thread may call
// it.
#pragma once

#include <rte_kvargs.h>

#include <algorithm>
#include <memory>
#include <string>

#include "drivers/base/setup_error.hpp"

namespace viaduct::port {

class Kvargs {
 public:
  // The device's name may stand in front, as a key without value. Throws SetupError.
  explicit Kvargs(const std::string& text) : list_(rte_kvargs_parse(text.c_str(), nullptr)) {
    if (list_ == nullptr)
      throw base::SetupError("cannot read device arguments " + text + ": DPDK takes " +
                             std::to_string(RTE_KVARGS_MAX) + " at most; leave some out");
    // DPDK's parser reads "socket=a=b" as a key "a" with value "b", and forgets the rest.
    const auto values = std::count_if(begin(), end(), [](const auto& p) { return p.value; });
    if (std::count(text.begin(), text.end(), '=') != values)
      throw base::SetupError("cannot read device arguments " + text +
                             ": DPDK takes no '=' in a value; choose another value");
  }

  // nullptr: the key is not there. Of several values the first.
  const char* get(const std::string& key) const { return rte_kvargs_get(list_.get(), key.c_str()); }
  // In the order in which they were written; a key without '=' has the value nullptr.
  const rte_kvargs_pair* begin() const { return list_->pairs; }
  const rte_kvargs_pair* end() const { return list_->pairs + list_->count; }

 private:
  struct Free {
    void operator()(rte_kvargs* list) const { rte_kvargs_free(list); }
  };
  std::unique_ptr<rte_kvargs, Free> list_;
};

}  // namespace viaduct::port
