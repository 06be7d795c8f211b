// Some of the programs on a device in this process, without a guest: they are quick here, run under
// sanitizers, and show that both devices do the same.
#include <gtest/gtest.h>

#include "libvipl/core/device_source.hpp"
#include "tests/vipl/core/fake_device.hpp"
#include "tests/vipl/programs/support/bed.hpp"

int main(int argc, char** argv) {
  using namespace viaduct;
  auto& provider = vi::fake::FakeProvider::get();
  provider.names = {vipl_test::kNicNames[0], vipl_test::kNicNames[1]};
  vipl::set_device_source(provider);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
