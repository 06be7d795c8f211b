// Memory for coroutine frames, short messages and lists. Freed blocks wait in lists by size for the
// next collective, as malloc would be a large part of the time of a collective of 8 bytes. Blocks
// in the lists are never given back to the system.
//
// Threads: not locked; only the thread that is in the library may use it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace viaduct::mpi {

// Never nullptr: throws std::bad_alloc. The alignment is that of operator new. pool_give() must be
// told the size that pool_take() was.
void* pool_take(std::size_t bytes);
void pool_give(void* block, std::size_t bytes) noexcept;

// A class that derives from this takes the memory of its objects from the pool.
struct Pooled {
  static void* operator new(std::size_t bytes) { return pool_take(bytes); }
  static void operator delete(void* block, std::size_t bytes) { pool_give(block, bytes); }
};

template <class T>
struct PoolAllocator {
  using value_type = T;
  static constexpr std::size_t kSize =
      sizeof(T);  // NOLINT(bugprone-sizeof-expression): of a pointer, too
  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(pool_take(n * kSize)); }
  void deallocate(T* block, std::size_t n) noexcept { pool_give(block, n * kSize); }
  bool operator==(const PoolAllocator&) const = default;
};
template <class T>
using PoolVector = std::vector<T, PoolAllocator<T>>;

// Uninitialised bytes from the pool, for the lifetime of the object. data() of 0 bytes is nullptr.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes)
      : data_(bytes ? static_cast<std::byte*>(pool_take(bytes)) : nullptr), bytes_(bytes) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (data_) pool_give(data_, bytes_);
  }
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  std::span<std::byte> span() const { return {data_, bytes_}; }

 private:
  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace viaduct::mpi
