// The table of the library's file descriptors, and the handler that closes them in a child of
// fork(). A bitmap of atomics, because the handler may use neither locks nor the heap.
#include "libvipl/connection/socket/fork.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>

namespace viaduct::vipl {
namespace {

// One bit for each descriptor number. raise_descriptor_limit() (socket.cpp) stops at the same
// limit. Where the limit was higher already, descriptors beyond it are not closed in children.
constexpr std::size_t kMaxDescriptors = 65536, kBits = 64;

std::array<std::atomic<std::uint64_t>, kMaxDescriptors / kBits> owned{};
std::atomic<unsigned> number{0};  // forks(): counted in the child

// Runs in the child. Another thread of the parent may have held any lock, the heap's too, and that
// thread is not there to release it. So this takes no lock and allocates nothing.
void close_all() {
  ++number;
  for (std::size_t i = 0; i < owned.size(); ++i)
    for (std::uint64_t bits = owned[i].exchange(0); bits != 0; bits &= bits - 1)
      ::close(static_cast<int>(i * kBits + static_cast<std::size_t>(__builtin_ctzll(bits))));
}

std::uint64_t bit(int fd) {
  return std::uint64_t{1} << (static_cast<std::size_t>(fd) % kBits);
}
std::atomic<std::uint64_t>* word(int fd) {
  const auto at = static_cast<std::size_t>(fd);
  return fd >= 0 && at < kMaxDescriptors ? &owned[at / kBits] : nullptr;
}

}  // namespace

void close_in_children(int fd) {
  // Once in each process; the handler is inherited by children.
  static const int registered = ::pthread_atfork(nullptr, nullptr, &close_all);
  static_cast<void>(registered);
  if (auto* const it = word(fd)) *it |= bit(fd);
}

void forget_fd(int fd) {
  if (auto* const it = word(fd)) *it &= ~bit(fd);
}

unsigned forks() {
  return number;
}

}  // namespace viaduct::vipl
