#include "tests/vipl/programs/support/async_errors.hpp"

#include <mutex>

namespace viaduct::vipl_test {

namespace {

// Lives as long as the program: a report may come late.
std::mutex lock;
std::vector<VIP_ERROR_DESCRIPTOR> reports;

void note(VIP_PVOID context, VIP_ERROR_DESCRIPTOR* error) {
  const std::lock_guard guard(lock);
  EXPECT_EQ(context, &reports);
  reports.push_back(*error);
}

}  // namespace

AsyncErrors::AsyncErrors(const Nic& nic) : nic_(nic) {
  {
    const std::lock_guard guard(lock);
    reports.clear();
  }
  EXPECT_VIP(VIP_SUCCESS, VipErrorCallback(nic_, &reports, note));
}
AsyncErrors::~AsyncErrors() {
  EXPECT_VIP(VIP_SUCCESS, VipErrorCallback(nic_, nullptr, nullptr));
}

std::vector<VIP_ERROR_DESCRIPTOR> AsyncErrors::all() const {
  const std::lock_guard guard(lock);
  return reports;
}

std::optional<VIP_ERROR_DESCRIPTOR> AsyncErrors::wait_for(VIP_VI_HANDLE vi,
                                                          VIP_ERROR_CODE code) const {
  std::optional<VIP_ERROR_DESCRIPTOR> found;
  eventually([&] {
    for (const VIP_ERROR_DESCRIPTOR& report : all())
      if (report.ViHandle == vi && report.ErrorCode == code && !found) found = report;
    return found.has_value();
  });
  return found;
}

}  // namespace viaduct::vipl_test
