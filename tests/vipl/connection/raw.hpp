// The other side of the protocol, byte for byte, for tests of what it must not be able to do.
#pragma once

#include <sys/socket.h>

#include <cstring>

#include "libvipl/connection/socket/socket.hpp"
#include "libvipl/connection/wire.hpp"
#include "tests/vipl/connection/bed.hpp"

namespace viaduct::vipl::test {

// A TCP connection that does what it is told, byte for byte.
class Raw {
 public:
  // Calls.
  explicit Raw(const NicAddress& to) : fd_(connecting_socket(nic(99), to)) {
    EXPECT_TRUE(fd_) << std::strerror(errno);
    pollfd ready{fd_.get(), POLLOUT, 0};
    EXPECT_EQ(::poll(&ready, 1, 10000), 1);
    EXPECT_EQ(connect_error(fd_.get()), 0);
  }
  // Has been called.
  explicit Raw(UniqueFd connection) : fd_(std::move(connection)) {}
  void send(std::span<const std::byte> bytes) {
    EXPECT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void send(const Message& message) { send(encode(message).span()); }
  // The next message; nullopt: the other side has closed.
  std::optional<Message> receive() {
    for (;;) {
      Message message;
      std::size_t used = 0;
      EXPECT_TRUE(parse(std::span(in_).first(size_), message, used));
      if (used > 0) {
        std::memmove(in_.data(), in_.data() + used, size_ -= used);
        return message;
      }
      pollfd ready{fd_.get(), POLLIN, 0};
      if (::poll(&ready, 1, 30000) != 1) {
        ADD_FAILURE() << "nothing came";
        return std::nullopt;
      }
      const ssize_t n = ::recv(fd_.get(), in_.data() + size_, in_.size() - size_, 0);
      if (n <= 0) return std::nullopt;
      size_ += static_cast<std::size_t>(n);
    }
  }
  // Whether the other side closes within that time.
  bool closed_within(int milliseconds) {
    pollfd ready{fd_.get(), POLLIN, 0};
    char byte = 0;
    return ::poll(&ready, 1, milliseconds) == 1 && ::recv(fd_.get(), &byte, 1, 0) <= 0;
  }
  int fd() const { return fd_.get(); }
  void close() { fd_.reset(); }

 private:
  UniqueFd fd_;
  std::array<std::byte, 4096> in_{};
  std::size_t size_ = 0;
};

}  // namespace viaduct::vipl::test
