// Long messages from and into memory that the program gives back to the kernel between them, in all
// the ways there are, and gets again at the same addresses: a channel that keeps memory registered
// with a NIC must not use the old pages. Any even number of processes; pairs exchange messages.
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "job.hpp"

namespace {

constexpr std::size_t kBytes = 192 * 1024;

std::byte content(int rank, int message, std::size_t i) {
  return static_cast<std::byte>((i / 64 * 131 + i) * 7 + static_cast<std::size_t>(rank * 31) +
                                static_cast<std::size_t>(message * 5));
}

// Both processes of a pair send from `out` and receive into `in`, each what it expects.
void exchange(void* out, void* in, std::size_t bytes = kBytes) {
  static int message = 0;
  ++message;
  const int peer = job::rank() ^ 1;
  auto* const from = static_cast<std::byte*>(out);
  auto* const to = static_cast<std::byte*>(in);
  for (std::size_t i = 0; i < bytes; ++i) from[i] = content(job::rank(), message, i);
  MPI_Sendrecv(from, static_cast<int>(bytes), MPI_BYTE, peer, 1, to, static_cast<int>(bytes),
               MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < bytes; ++i) wrong += to[i] != content(peer, message, i);
  CHECK_EQ(wrong, 0u);
}

void* map(void* where = nullptr, std::size_t bytes = kBytes) {
  void* const memory =
      mmap(where, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | (where != nullptr ? MAP_FIXED : 0), -1, 0);
  CHECK(memory != MAP_FAILED);
  return memory;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  void *const out = map(), *const in = map();

  job::section("the same memory again and again");
  for (int i = 0; i < 4; ++i) exchange(out, in);

  job::section("unmapped, and mapped again at the same address");
  for (int i = 0; i < 4; ++i) {
    munmap(out, kBytes);
    munmap(in, kBytes);
    map(out);
    map(in);
    exchange(out, in);
  }

  job::section("mapped over");
  for (int i = 0; i < 4; ++i) {
    map(out);
    exchange(out, in);
    map(in);
    exchange(out, in);
  }

  job::section("given back by madvise");
  for (int i = 0; i < 4; ++i) {
    madvise(out, kBytes, MADV_DONTNEED);
    madvise(in, kBytes, MADV_DONTNEED);
    exchange(out, in);
  }

  // The pages that come in were there, and touched, before the first message.
  job::section("other pages moved there");
  {
    std::vector<void*> spares;
    for (int i = 0; i < 4; ++i) std::memset(spares.emplace_back(map()), i, kBytes);
    exchange(out, in);
    for (void* const spare : spares) {
      void* const moved = mremap(spare, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                                 spare == spares[0] || spare == spares[2] ? out : in);
      CHECK(moved == out || moved == in);
      exchange(out, in);
    }
  }

  job::section("part of a buffer");
  for (std::size_t at = 0; at < kBytes; at += kBytes / 4) {
    munmap(static_cast<char*>(out) + at, kBytes / 4);
    map(static_cast<char*>(out) + at, kBytes / 4);
    exchange(out, in);
  }

  // Each a mapping of its own: as the allocator does by itself only until the first one is freed.
  job::section("from the allocator, of all sizes");
  mallopt(M_MMAP_THRESHOLD, 32 * 1024);
  for (int i = 0; i < 12; ++i) {
    const std::size_t bytes = std::size_t{40'000} << (i / 2);  // twice, at the same addresses
    void *const a = std::malloc(bytes), *const b = std::malloc(bytes);
    exchange(a, b, bytes);
    void* const larger = std::realloc(a, 2 * bytes);
    exchange(larger, b, bytes);
    std::free(larger);
    std::free(b);
  }

  job::section("at the end of the heap");
  for (int i = 0; i < 3; ++i) {
    void* const end = sbrk(2 * kBytes);
    CHECK(end != reinterpret_cast<void*>(-1));
    exchange(end, static_cast<char*>(end) + kBytes);
    // Unless the library's allocator has made the heap larger meanwhile.
    if (sbrk(0) == static_cast<char*>(end) + 2 * kBytes)
      sbrk(-2 * static_cast<std::intptr_t>(kBytes));
  }
  return job::report();
}
