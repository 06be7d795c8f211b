// Key values (MPI 5.0, section 7.7): what an attribute is known by, and what is to be done with its
// value when the object it is attached to is duplicated or freed.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <map>

#include "libmpi_lite/core/attribute.hpp"

namespace viaduct::mpi {

// The key values of one kind of object; Handle is what that is named by. A key value that was freed
// lives on until the last attribute of that key is gone (section 7.7.2). Numbers are never used
// twice, nor for objects of another kind.
//
// Callbacks are the user's: they may attach and delete attributes of the same object, and make and
// free key values. One that reports failure makes the call fail that it was made for: Error with
// the code it gave.
template <class Handle>
class Keyvals {
 public:
  using Copy = int(Handle object, int keyval, void* extra_state, void* value_in, void* value_out,
                   int* flag);
  using Delete = int(Handle object, int keyval, void* value, void* extra_state);

  int create(Copy* copy, Delete* remove, void* extra_state);
  void free(int keyval);  // once more does nothing, as long as the key value lives

  // Value, or nullptr if there is none of that key.
  void* const* get(const Attributes& attributes, int keyval) const;
  // An older value is deleted first.
  void set(Attributes& attributes, Handle object, int keyval, void* value);
  // Deletes one; Error if there is none.
  void erase(Attributes& attributes, Handle object, int keyval);

  // For a duplicate: asks each key's copy callback, in the order in which the values were attached.
  // If one fails, `to` is left without any.
  void copy_all(const Attributes& from, Handle from_object, Attributes& to, Handle to_object);
  // Newest first (section 11.4.2 demands it of MPI_COMM_SELF).
  void delete_all(Attributes& attributes, Handle object);

  std::size_t living() const { return keys_.size(); }

 private:
  struct Key {
    Copy* copy;
    Delete* remove;
    void* extra_state;
    std::uint64_t attached = 0;  // how many objects hold a value
    bool freed = false;
  };
  const Key& find(int keyval) const;
  void attach(Attributes& attributes, int keyval, void* value);
  // Calls the delete callback, then takes the value off the object.
  void detach(Attributes& attributes, Handle object, int keyval, void* value);
  void release(int keyval);  // one holder less

  std::map<int, Key> keys_;
};

inline Keyvals<MPI_Comm> comm_keyvals;
inline Keyvals<MPI_Datatype> type_keyvals;

// The same by handles that are in their tables: both objects for a copy, the object that is about
// to be freed for a deletion.
void copy_comm_attributes(MPI_Comm from, MPI_Comm to);
void delete_comm_attributes(MPI_Comm comm);
void copy_type_attributes(MPI_Datatype from, MPI_Datatype to);
void delete_type_attributes(MPI_Datatype type);

}  // namespace viaduct::mpi
