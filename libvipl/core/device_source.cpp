// The one place of libvipl that names the libibverbs provider.
#include "libvipl/core/device_source.hpp"

#include <atomic>

#include "drivers/vi_over_verbs/ibverbs.hpp"

namespace viaduct::vipl {
namespace {

std::atomic<vi::Provider*> source{nullptr};

}  // namespace

vi::Provider& device_source() {
  vi::Provider* const set = source.load();
  return set != nullptr ? *set : vi::ibverbs_provider();
}

void set_device_source(vi::Provider& provider) {
  source = &provider;
}

}  // namespace viaduct::vipl
