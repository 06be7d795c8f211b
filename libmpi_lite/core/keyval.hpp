// Key values (MPI 5.0, section 7.7): the names of attributes. A key value has a copy callback and a
// delete callback, which are called when an object with such an attribute is duplicated or freed.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <map>

#include "libmpi_lite/core/attribute.hpp"

namespace viaduct::mpi {

// The key values of one kind of object; Handle is how programs name such an object.
//
// A key value that was freed lives on until the last attribute of that key is gone (section 7.7.2).
// Numbers are never used twice, nor for objects of another kind.
//
// Callbacks belong to the user: they may attach and delete attributes of the same object, and make
// and free key values. So no reference into a table is kept across a callback. If a callback
// reports failure, the call fails that it was made for: Error with the code that the callback
// returned.
//
//   create()
//      |
//      v
//    usable  ------ free(), some object has a value ----->  freed, still attached
//      |                                                       |
//      |  free(), no object has one                            |  the last value is deleted
//      +----------------------> gone <-------------------------+
//
// `attached` counts the values. set() adds one in the state `usable` only; copy_all() in both.
template <class Handle>
class Keyvals {
 public:
  using Copy = int(Handle object, int keyval, void* extra_state, void* value_in, void* value_out,
                   int* flag);
  using Delete = int(Handle object, int keyval, void* value, void* extra_state);

  // A new key value. `copy`, `remove`: nullptr for none; `extra_state` is handed to both.
  int create(Copy* copy, Delete* remove, void* extra_state);
  void free(int keyval);  // once more does nothing, as long as the key value lives

  // The value attached under that key, or nullptr. Throws Error if there is no such key value; so
  // do the functions below.
  void* const* get(const Attributes& attributes, int keyval) const;
  // Attaches a value. An older one is deleted first, with its callback. Throws Error, too, if the
  // key value has been freed.
  void set(Attributes& attributes, Handle object, int keyval, void* value);
  // Deletes the value of that key, with its callback. Throws Error if there is none, or if the
  // callback fails: then the attribute stays.
  void erase(Attributes& attributes, Handle object, int keyval);

  // For a duplicate: calls each key's copy callback, in the order in which the values were
  // attached. If one fails, the attributes copied so far are deleted again.
  void copy_all(const Attributes& from, Handle from_object, Attributes& to, Handle to_object);
  // For an object that is freed: deletes all attributes, newest first (section 11.4.2 demands that
  // order of MPI_COMM_SELF).
  void delete_all(Attributes& attributes, Handle object);

  std::size_t living() const { return keys_.size(); }  // for tests

 private:
  struct Key {
    Copy* copy;
    Delete* remove;
    void* extra_state;
    std::uint64_t attached = 0;  // how many objects hold a value
    bool freed = false;          // by the program: no new values
  };
  // Throws Error if there is no such key value.
  const Key& find(int keyval) const;
  // Attaches the value and counts it.
  void attach(Attributes& attributes, int keyval, void* value);
  // Calls the delete callback, then takes the value off the object.
  void detach(Attributes& attributes, Handle object, int keyval, void* value);
  // One holder less; a freed key value without holders goes.
  void release(int keyval);  // one holder less

  std::map<int, Key> keys_;
};

inline Keyvals<MPI_Comm> comm_keyvals;
inline Keyvals<MPI_Datatype> type_keyvals;
inline Keyvals<MPI_Win> win_keyvals;  // windows are never duplicated: no copies

// The same by handles, which must be in their tables: of both objects for a copy, of the object
// that is about to be freed for a deletion.
void copy_comm_attributes(MPI_Comm from, MPI_Comm to);
void delete_comm_attributes(MPI_Comm comm);
void copy_type_attributes(MPI_Datatype from, MPI_Datatype to);
void delete_type_attributes(MPI_Datatype type);

}  // namespace viaduct::mpi
