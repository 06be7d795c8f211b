// Nothing that is thrown inside a driver gets out of its C functions.
#include "drivers/rawdev/c_face.hpp"

#include <gtest/gtest.h>

namespace viaduct::rawdev {
namespace {

struct Handle {};

TEST(CFace, ASetupErrorHasANumber) {
  const auto number = [](auto... why) {
    return guarded<Handle>([&]() -> int { throw link::SetupError(why...); });
  };
  EXPECT_EQ(number("it is cold"), -EIO);
  EXPECT_EQ(number("it is full", ENOSPC), -ENOSPC);
  EXPECT_EQ(last_error<Handle>, "it is full");
}

}  // namespace
}  // namespace viaduct::rawdev
