// The free lists of the pool: one for each multiple of kStep, linked through the blocks.
#include "libmpi_lite/collective/pool.hpp"

#include <array>
#include <new>

namespace viaduct::mpi {
namespace {

// Bytes: the step between sizes, and the largest size; larger blocks come from operator new. With
// the address sanitizer all blocks do, so that it sees a use after pool_give().
#ifdef __SANITIZE_ADDRESS__
constexpr std::size_t kStep = 64, kMax = 0;
#else
constexpr std::size_t kStep = 64, kMax = 4096;
#endif

struct Free {
  Free* next;
};
// By size in steps. Blocks in the lists stay there until the program ends.
constinit std::array<Free*, kMax / kStep + 1> lists{};

std::size_t list_of(std::size_t bytes) {
  return (bytes + kStep - 1) / kStep;
}

}  // namespace

void* pool_take(std::size_t bytes) {
  if (bytes > kMax) return ::operator new(bytes);
  Free*& head = lists[list_of(bytes)];
  if (head) {
    Free* const block = head;
    head = block->next;
    return block;
  }
  return ::operator new(list_of(bytes) * kStep);
}

void pool_give(void* block, std::size_t bytes) noexcept {
  if (bytes > kMax) return ::operator delete(block);
  Free*& head = lists[list_of(bytes)];
  head = new (block) Free{head};
}

}  // namespace viaduct::mpi
