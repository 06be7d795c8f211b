// Reference counts for objects that several holders keep alive: the handle tables, operations under
// way, types made of other types.
//
// Not boost::intrusive_ptr: its constructor from a plain pointer is implicit, and here the code
// says where a holder is added.
//
// Thread rule: one thread at a time calls the library (MPI_THREAD_SERIALIZED at most), so the count
// is a plain number.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

namespace viaduct::mpi {

// Base of all counted objects. Not copied: the count belongs to one object. The destructor is
// protected, as only Ref destroys objects.
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
  std::uint32_t holders_ = 0;  // Refs to this object
};

// A counted reference, or nothing. The last Ref destroys the object.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  // Explicit, because it adds a holder: also to an object that has some already.
  explicit Ref(T* object) : object_(object) {
    if (object_) ++object_->holders_;
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  // Conversion to a base class; the reference passes over without being counted again.
  template <std::derived_from<T> U>
  Ref(Ref<U> other) noexcept : object_(other.detach()) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ && --object_->holders_ == 0) destroy(object_);
  }

  // Gives up the pointer without giving up the hold, and the reverse. For intrusive lists, whose
  // links are in the objects: the list has the hold meanwhile.
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
  // Out of line: destructors of Ref are in very many places, and seldom the last.
  [[gnu::noinline]] static void destroy(T* object) { delete object; }

  T* object_ = nullptr;
};

// A new object and the first reference to it.
template <class T, class... Arguments>
Ref<T> make(Arguments&&... arguments) {
  return Ref<T>(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace viaduct::mpi
