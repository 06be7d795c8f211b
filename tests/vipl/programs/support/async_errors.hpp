// What VipErrorCallback's handler was told.
#pragma once

#include <optional>

#include "tests/vipl/programs/support/bed.hpp"

namespace viaduct::vipl_test {

class AsyncErrors {
 public:
  explicit AsyncErrors(const Nic& nic);  // installs the handler and forgets what came before
  ~AsyncErrors();                        // removes it
  AsyncErrors(const AsyncErrors&) = delete;
  AsyncErrors& operator=(const AsyncErrors&) = delete;

  // The first report of this error for this VI; waits for it.
  std::optional<VIP_ERROR_DESCRIPTOR> wait_for(VIP_VI_HANDLE vi, VIP_ERROR_CODE code) const;
  std::vector<VIP_ERROR_DESCRIPTOR> all() const;

 private:
  VIP_NIC_HANDLE nic_;
};

}  // namespace viaduct::vipl_test
