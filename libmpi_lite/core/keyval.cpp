// Attributes with their callbacks. The difficulty is that a callback may change the attributes and
// key values with which its caller is at work: so state is looked up again after each callback.
#include "libmpi_lite/core/keyval.hpp"

#include <string>

#include "libmpi_lite/core/comm.hpp"
#include "libmpi_lite/core/data/datatype.hpp"
#include "libmpi_lite/core/error.hpp"
#include "libmpi_lite/core/errors.hpp"

namespace viaduct::mpi {

namespace {

// One sequence for all kinds of objects. The predefined keys are small numbers of the ABI (501 to
// 507).
int next_keyval = 1024;

// Throws Error if the callback has failed. Its code is kept if it is an error code at all.
void check_callback(int code, const char* which, int keyval) {
  if (code == MPI_SUCCESS) return;
  throw Error(is_error_code(code) ? code : MPI_ERR_OTHER,
              "the " + std::string(which) + " callback of key value " + std::to_string(keyval) +
                  " returned " + std::to_string(code));
}

}  // namespace

template <class Handle>
int Keyvals<Handle>::create(Copy* copy, Delete* remove, void* extra_state) {
  keys_.emplace(next_keyval, Key{copy, remove, extra_state});
  return next_keyval++;
}

template <class Handle>
auto Keyvals<Handle>::find(int keyval) const -> const Key& {
  const auto it = keys_.find(keyval);
  if (it == keys_.end())
    throw Error(MPI_ERR_KEYVAL, "argument keyval (" + std::to_string(keyval) +
                                    ") is not a key value that was created for such objects");
  return it->second;
}

template <class Handle>
void Keyvals<Handle>::free(int keyval) {
  find(keyval);
  Key& key = keys_.at(keyval);
  key.freed = true;
  if (key.attached == 0) keys_.erase(keyval);
}

template <class Handle>
void* const* Keyvals<Handle>::get(const Attributes& attributes, int keyval) const {
  find(keyval);
  return attributes.find(keyval);
}

template <class Handle>
void Keyvals<Handle>::set(Attributes& attributes, Handle object, int keyval, void* value) {
  if (find(keyval).freed)
    throw Error(MPI_ERR_KEYVAL, "key value " + std::to_string(keyval) + " has been freed");
  if (void* const* old = attributes.find(keyval)) {
    // The delete callback may free the key value. This call counts as a holder, so that the key
    // value lives until the new value is attached.
    ++keys_.at(keyval).attached;
    try {
      detach(attributes, object, keyval, *old);
    } catch (...) {
      release(keyval);
      throw;
    }
    attach(attributes, keyval, value);
    release(keyval);
  } else {
    attach(attributes, keyval, value);
  }
}

template <class Handle>
void Keyvals<Handle>::attach(Attributes& attributes, int keyval, void* value) {
  if (!attributes.find(keyval)) ++keys_.at(keyval).attached;
  attributes.set(keyval, value);
}

template <class Handle>
void Keyvals<Handle>::detach(Attributes& attributes, Handle object, int keyval, void* value) {
  // A copy: the callback may free the key value.
  const Key key = find(keyval);
  if (key.remove)
    check_callback(key.remove(object, keyval, value, key.extra_state), "delete", keyval);
  if (!attributes.find(keyval)) return;  // the callback has deleted it itself
  attributes.erase(keyval);
  release(keyval);
}

template <class Handle>
void Keyvals<Handle>::release(int keyval) {
  const auto it = keys_.find(keyval);
  if (it != keys_.end() && --it->second.attached == 0 && it->second.freed) keys_.erase(it);
}

template <class Handle>
void Keyvals<Handle>::erase(Attributes& attributes, Handle object, int keyval) {
  find(keyval);
  void* const* value = attributes.find(keyval);
  if (!value)
    throw Error(MPI_ERR_KEYVAL,
                "the object has no attribute of key value " + std::to_string(keyval));
  detach(attributes, object, keyval, *value);
}

template <class Handle>
void Keyvals<Handle>::copy_all(const Attributes& from, Handle from_object, Attributes& to,
                               Handle to_object) {
  try {
    for (const int keyval : from.oldest_first()) {
      void* const* value = from.find(keyval);
      if (!value) continue;  // a callback has deleted it
      const Key key = find(keyval);
      if (!key.copy) continue;  // MPI_NULL_COPY_FN
      void* copied = *value;
      int flag = 1;
      if (key.copy != reinterpret_cast<Copy*>(MPI_DUP_FN)) {
        flag = 0;
        check_callback(key.copy(from_object, keyval, key.extra_state, *value, &copied, &flag),
                       "copy", keyval);
      }
      // The callback may have deleted the value that it was given, and with it the last one of a
      // freed key: then there is no key to attach the copy to.
      if (flag && keys_.contains(keyval)) attach(to, keyval, copied);
    }
  } catch (...) {
    delete_all(to, to_object);
    throw;
  }
}

template <class Handle>
void Keyvals<Handle>::delete_all(Attributes& attributes, Handle object) {
  while (!attributes.empty()) {
    const int newest = attributes.newest();
    detach(attributes, object, newest, *attributes.find(newest));
  }
}

template class Keyvals<MPI_Comm>;
template class Keyvals<MPI_Datatype>;
template class Keyvals<MPI_Win>;

namespace {

template <class T, HandleKind kKind>
Attributes& attributes_of(const HandleTable<T, kKind>& table, const void* handle) {
  return table.find(reinterpret_cast<std::uintptr_t>(handle))->attributes;
}

}  // namespace

void copy_comm_attributes(MPI_Comm from, MPI_Comm to) {
  comm_keyvals.copy_all(attributes_of(comm_handles, from), from, attributes_of(comm_handles, to),
                        to);
}
void delete_comm_attributes(MPI_Comm comm) {
  comm_keyvals.delete_all(attributes_of(comm_handles, comm), comm);
}
void copy_type_attributes(MPI_Datatype from, MPI_Datatype to) {
  type_keyvals.copy_all(attributes_of(datatype_handles, from), from,
                        attributes_of(datatype_handles, to), to);
}
void delete_type_attributes(MPI_Datatype type) {
  type_keyvals.delete_all(attributes_of(datatype_handles, type), type);
}

}  // namespace viaduct::mpi
