// Attributes of communicators, datatypes and windows (MPI 5.0, sections 7.7, 9.1.2 and 12.2.6).
// Values and callbacks are kept by core/keyval.cpp.
//
// Choices where the standard leaves one: predefined attributes are those of every communicator, not
// only of MPI_COMM_WORLD. MPI_APPNUM and MPI_UNIVERSE_SIZE are there only if the launcher tells
// them. The functions of MPI-1 (MPI_Keyval_create, MPI_Attr_put and kin) work on the same key
// values as the newer ones.
#include "libmpi_lite/api/arguments/arguments.hpp"
#include "libmpi_lite/api/one_sided/window_argument.hpp"
#include "libmpi_lite/core/errors.hpp"
#include "libmpi_lite/core/keyval.hpp"

using namespace viaduct::mpi;

namespace {

// Whether `keyval` is predefined. `*value` is then where its value is, or nullptr if it is not
// known. The values have static storage, because the program gets their address and may keep it.
bool predefined_attribute(int keyval, int** value) {
  static int tag_ub, host, io, wtime_is_global, appnum, universe_size;
  switch (keyval) {
    case MPI_TAG_UB:
      tag_ub = kMaxTag;
      *value = &tag_ub;
      return true;
    case MPI_HOST:
      host = MPI_PROC_NULL;
      *value = &host;
      return true;  // no process is special
    case MPI_IO:
      io = MPI_ANY_SOURCE;
      *value = &io;
      return true;  // all can do the language's I/O
    case MPI_WTIME_IS_GLOBAL:
      wtime_is_global = 0;
      *value = &wtime_is_global;
      return true;
    case MPI_LASTUSEDCODE: *value = last_used_code(); return true;
    case MPI_APPNUM:
      appnum = Process::self().launch().appnum();
      *value = appnum < 0 ? nullptr : &appnum;
      return true;
    case MPI_UNIVERSE_SIZE:
      universe_size = Process::self().launch().universe_size();
      *value = universe_size < 0 ? nullptr : &universe_size;
      return true;
    default: return false;
  }
}

// Predefined attributes belong to the library.
void refuse_predefined(int keyval) {
  int* value;
  if (predefined_attribute(keyval, &value))
    fail(MPI_ERR_KEYVAL, "argument keyval (%d) is predefined; its attribute cannot be changed",
         keyval);
}

// Returns an attribute to the program. `value` is nullptr if there is none; otherwise it points to
// the attribute, which is itself a pointer.
void give(void* attribute_val, int* flag, void* const* value) {
  check_pointer(attribute_val, "attribute_val");
  *check_pointer(flag, "flag") = value != nullptr;
  if (value) *static_cast<void**>(attribute_val) = *value;
}

template <class Handle, class Copy, class Delete>
int create(const char* function, Keyvals<Handle>& keyvals, Copy* copy, Delete* remove, int* keyval,
           void* extra_state) {
  return call(function, [&] {
    check_pointer(keyval, "keyval");
    *keyval = keyvals.create(copy, remove, extra_state);
  });
}

// The key value lives on as long as attributes use it (section 7.7.2).
template <class Handle>
int free_keyval(const char* function, Keyvals<Handle>& keyvals, int* keyval) {
  return call(function, [&] {
    refuse_predefined(*check_pointer(keyval, "keyval"));
    keyvals.free(*keyval);
    *keyval = MPI_KEYVAL_INVALID;
  });
}

int set(const char* function, MPI_Comm comm, int keyval, void* value) {
  return call(function, comm, [&](Comm& c) {
    refuse_predefined(keyval);
    // The delete callback of the older value may free the communicator.
    const Ref<Comm> kept(&c);
    comm_keyvals.set(c.attributes, comm, keyval, value);
  });
}

int get(const char* function, MPI_Comm comm, int keyval, void* attribute_val, int* flag) {
  return call(function, comm, [&](Comm& c) {
    int* predefined;
    if (predefined_attribute(keyval, &predefined)) {
      void* const value = predefined;
      give(attribute_val, flag, predefined ? &value : nullptr);
    } else {
      give(attribute_val, flag, comm_keyvals.get(c.attributes, keyval));
    }
  });
}

int erase(const char* function, MPI_Comm comm, int keyval) {
  return call(function, comm, [&](Comm& c) {
    refuse_predefined(keyval);
    const Ref<Comm> kept(&c);
    comm_keyvals.erase(c.attributes, comm, keyval);
  });
}

}  // namespace

// ---- communicators -----------------------------------------------------------------------------

int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function* comm_copy_attr_fn,
                            MPI_Comm_delete_attr_function* comm_delete_attr_fn, int* comm_keyval,
                            void* extra_state) {
  return create("MPI_Comm_create_keyval", comm_keyvals, comm_copy_attr_fn, comm_delete_attr_fn,
                comm_keyval, extra_state);
}
VIADUCT_MPI(Comm_create_keyval);

int PMPI_Comm_free_keyval(int* comm_keyval) {
  return free_keyval("MPI_Comm_free_keyval", comm_keyvals, comm_keyval);
}
VIADUCT_MPI(Comm_free_keyval);

int PMPI_Comm_set_attr(MPI_Comm comm, int comm_keyval, void* attribute_val) {
  return set("MPI_Comm_set_attr", comm, comm_keyval, attribute_val);
}
VIADUCT_MPI(Comm_set_attr);

int PMPI_Comm_get_attr(MPI_Comm comm, int comm_keyval, void* attribute_val, int* flag) {
  return get("MPI_Comm_get_attr", comm, comm_keyval, attribute_val, flag);
}
VIADUCT_MPI(Comm_get_attr);

int PMPI_Comm_delete_attr(MPI_Comm comm, int comm_keyval) {
  return erase("MPI_Comm_delete_attr", comm, comm_keyval);
}
VIADUCT_MPI(Comm_delete_attr);

// ---- the names of MPI-1 ------------------------------------------------------------------------

int PMPI_Keyval_create(MPI_Copy_function* copy_fn, MPI_Delete_function* delete_fn, int* keyval,
                       void* extra_state) {
  return create("MPI_Keyval_create", comm_keyvals, copy_fn, delete_fn, keyval, extra_state);
}
VIADUCT_MPI(Keyval_create);

int PMPI_Keyval_free(int* keyval) {
  return free_keyval("MPI_Keyval_free", comm_keyvals, keyval);
}
VIADUCT_MPI(Keyval_free);

int PMPI_Attr_put(MPI_Comm comm, int keyval, void* attribute_val) {
  return set("MPI_Attr_put", comm, keyval, attribute_val);
}
VIADUCT_MPI(Attr_put);

int PMPI_Attr_get(MPI_Comm comm, int keyval, void* attribute_val, int* flag) {
  return get("MPI_Attr_get", comm, keyval, attribute_val, flag);
}
VIADUCT_MPI(Attr_get);

int PMPI_Attr_delete(MPI_Comm comm, int keyval) {
  return erase("MPI_Attr_delete", comm, keyval);
}
VIADUCT_MPI(Attr_delete);

// ---- datatypes ---------------------------------------------------------------------------------

int PMPI_Type_create_keyval(MPI_Type_copy_attr_function* type_copy_attr_fn,
                            MPI_Type_delete_attr_function* type_delete_attr_fn, int* type_keyval,
                            void* extra_state) {
  return create("MPI_Type_create_keyval", type_keyvals, type_copy_attr_fn, type_delete_attr_fn,
                type_keyval, extra_state);
}
VIADUCT_MPI(Type_create_keyval);

int PMPI_Type_free_keyval(int* type_keyval) {
  return free_keyval("MPI_Type_free_keyval", type_keyvals, type_keyval);
}
VIADUCT_MPI(Type_free_keyval);

int PMPI_Type_set_attr(MPI_Datatype datatype, int type_keyval, void* attribute_val) {
  return call("MPI_Type_set_attr", [&] {
    const Ref<Datatype> type(&check_type(datatype));
    type_keyvals.set(type->attributes, datatype, type_keyval, attribute_val);
  });
}
VIADUCT_MPI(Type_set_attr);

int PMPI_Type_get_attr(MPI_Datatype datatype, int type_keyval, void* attribute_val, int* flag) {
  return call("MPI_Type_get_attr", [&] {
    give(attribute_val, flag, type_keyvals.get(check_type(datatype).attributes, type_keyval));
  });
}
VIADUCT_MPI(Type_get_attr);

int PMPI_Type_delete_attr(MPI_Datatype datatype, int type_keyval) {
  return call("MPI_Type_delete_attr", [&] {
    const Ref<Datatype> type(&check_type(datatype));
    type_keyvals.erase(type->attributes, datatype, type_keyval);
  });
}
VIADUCT_MPI(Type_delete_attr);

// ---- windows -----------------------------------------------------------------------------------

namespace {

// The value of a predefined attribute: the base address itself, or where the value is. nullptr: the
// attribute is not predefined.
void* const* predefined_attribute(Window& window, int keyval, void*& value) {
  switch (keyval) {
    case MPI_WIN_BASE: value = window.memory().base(); return &value;
    case MPI_WIN_SIZE: value = &window.cells.size; return &value;
    case MPI_WIN_DISP_UNIT: value = &window.cells.unit; return &value;
    case MPI_WIN_CREATE_FLAVOR: value = &window.cells.flavor; return &value;
    case MPI_WIN_MODEL: value = &window.cells.model; return &value;
    default: return nullptr;
  }
}

}  // namespace

int PMPI_Win_create_keyval(MPI_Win_copy_attr_function* win_copy_attr_fn,
                           MPI_Win_delete_attr_function* win_delete_attr_fn, int* win_keyval,
                           void* extra_state) {
  return create("MPI_Win_create_keyval", win_keyvals, win_copy_attr_fn, win_delete_attr_fn,
                win_keyval, extra_state);
}
VIADUCT_MPI(Win_create_keyval);

int PMPI_Win_free_keyval(int* win_keyval) {
  return free_keyval("MPI_Win_free_keyval", win_keyvals, win_keyval);
}
VIADUCT_MPI(Win_free_keyval);

int PMPI_Win_set_attr(MPI_Win win, int win_keyval, void* attribute_val) {
  return call_on_window("MPI_Win_set_attr", win, [&](Window& w) {
    win_keyvals.set(w.attributes, win, win_keyval, attribute_val);
  });
}
VIADUCT_MPI(Win_set_attr);

int PMPI_Win_get_attr(MPI_Win win, int win_keyval, void* attribute_val, int* flag) {
  return call_on_window("MPI_Win_get_attr", win, [&](Window& w) {
    void* predefined;
    void* const* const value = predefined_attribute(w, win_keyval, predefined);
    give(attribute_val, flag, value ? value : win_keyvals.get(w.attributes, win_keyval));
  });
}
VIADUCT_MPI(Win_get_attr);

int PMPI_Win_delete_attr(MPI_Win win, int win_keyval) {
  return call_on_window("MPI_Win_delete_attr", win,
                        [&](Window& w) { win_keyvals.erase(w.attributes, win, win_keyval); });
}
VIADUCT_MPI(Win_delete_attr);
