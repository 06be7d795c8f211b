// Nothing that is thrown inside a driver gets out of its C functions.
#include "drivers/rawdev/c_api.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace viaduct::rawdev {
namespace {

struct Node {
  std::function<void()> poll;
};
struct Handle {
  std::unique_ptr<Node> node;
};

int poll_that(std::function<void()> work) {
  Handle handle{std::make_unique<Node>(Node{std::move(work)})};
  return rawdev::poll(&handle);
}

TEST(CApi, PollGivesANumberForWhatIsThrownInIt) {
  EXPECT_EQ(poll_that([] {}), 0);
  EXPECT_EQ(poll_that([] { throw std::bad_alloc(); }), -ENOMEM);
  EXPECT_EQ(last_error<Handle>, "out of memory");
  EXPECT_EQ(rawdev::poll(static_cast<Handle*>(nullptr)), -EINVAL);
}

TEST(CApi, ASetupErrorHasANumber) {
  const auto number = [](auto... why) {
    return guarded<Handle>([&]() -> int { throw base::SetupError(why...); });
  };
  EXPECT_EQ(number("it is cold"), -EIO);
  EXPECT_EQ(number("it is full", ENOSPC), -ENOSPC);
  EXPECT_EQ(last_error<Handle>, "it is full");
}

}  // namespace
}  // namespace viaduct::rawdev
