// Objects that several holders keep alive: handles, requests under way, types made of other types.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

namespace viaduct::mpi {

// One thread at a time calls the library (MPI_THREAD_SERIALIZED at most), so the count is plain.
class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 protected:
  ~Counted() = default;

 private:
  template <class T>
  friend class Ref;
  std::uint32_t holders_ = 0;
};

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* object) : object_(object) {
    if (object_) ++object_->holders_;
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  // To a base of what it was.
  template <std::derived_from<T> U>
  Ref(Ref<U> other) noexcept : object_(other.detach()) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ && --object_->holders_ == 0) destroy(object_);
  }

  // For lists whose links are in the objects: the hold goes into the list as it is, and comes back.
  T* detach() { return std::exchange(object_, nullptr); }
  static Ref adopt(T* detached) {
    Ref r;
    r.object_ = detached;
    return r;
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref&) const = default;

 private:
  // Not in every place that lets go of something: most are not the last.
  [[gnu::noinline]] static void destroy(T* object) { delete object; }

  T* object_ = nullptr;
};

template <class T, class... Arguments>
Ref<T> make(Arguments&&... arguments) {
  return Ref<T>(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace viaduct::mpi
