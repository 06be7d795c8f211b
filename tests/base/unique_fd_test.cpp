#include "drivers/base/unique_fd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <vector>

namespace viaduct::base {
namespace {

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}
int open_null() {
  return ::open("/dev/null", O_RDWR | O_CLOEXEC);
}

TEST(UniqueFd, ClosesOnceWhoeverHasIt) {
  const int number = open_null();
  ASSERT_GE(number, 0);
  UniqueFd first(number);
  UniqueFd second(std::move(first));
  EXPECT_FALSE(first);  // NOLINT: a moved-from one owns nothing
  EXPECT_EQ(second.get(), number);
  first = std::move(second);
  EXPECT_TRUE(is_open(number));
  first = UniqueFd(open_null());  // assignment closes what was owned
  EXPECT_FALSE(is_open(number));
  const int other = first.get();
  { const UniqueFd last(std::move(first)); }
  EXPECT_FALSE(is_open(other));
}

TEST(UniqueFd, ReleaseLeavesTheDescriptorOpen) {
  UniqueFd fd(open_null());
  const int number = fd.release();
  EXPECT_FALSE(fd);
  EXPECT_TRUE(is_open(number));
  ::close(number);
}

TEST(UniqueFd, ClosingKeepsErrno) {
  const int number = open_null();
  UniqueFd fd(number);
  ::close(number);  // so that the owner's close() fails
  errno = EADDRINUSE;
  fd.reset();
  EXPECT_EQ(errno, EADDRINUSE);
}

std::vector<int> registered;
struct Registry {
  static void add(int fd) { registered.push_back(fd); }
  static void remove(int fd) {
    EXPECT_TRUE(is_open(fd)) << "the number may be another's already";
    std::erase(registered, fd);
  }
};

TEST(UniqueFd, TheRegistryKnowsWhatIsOwned) {
  BasicUniqueFd<Registry> none(-1), fd(open_null());
  EXPECT_EQ(registered, std::vector{fd.get()});
  BasicUniqueFd<Registry> moved(std::move(fd));
  EXPECT_EQ(registered, std::vector{moved.get()});
  moved.reset();
  EXPECT_TRUE(registered.empty());
}

}  // namespace
}  // namespace viaduct::base
