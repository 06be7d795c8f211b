// Memory for coroutine frames, short messages and lists: a collective of 8 bytes must not pay for
// malloc. Freed blocks wait in lists by size for the next collective.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace viaduct::mpi {

// Never nullptr: throws std::bad_alloc. The same size must be given back.
void* pool_take(std::size_t bytes);
void pool_give(void* block, std::size_t bytes) noexcept;

// Classes that derive from this take their objects from the pool.
struct Pooled {
  static void* operator new(std::size_t bytes) { return pool_take(bytes); }
  static void operator delete(void* block, std::size_t bytes) { pool_give(block, bytes); }
};

template <class T>
struct PoolAllocator {
  using value_type = T;
  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(pool_take(n * sizeof(T))); }
  void deallocate(T* block, std::size_t n) noexcept { pool_give(block, n * sizeof(T)); }
  bool operator==(const PoolAllocator&) const = default;
};
template <class T>
using PoolVector = std::vector<T, PoolAllocator<T>>;

// Bytes that nobody has initialised.
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
