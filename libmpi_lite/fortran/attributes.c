// Attributes of Fortran (MPI 5.0, section 19.3.7). In Fortran an attribute's value is an integer,
// in C a pointer, and each language can read what the other has set: C gets a pointer to Fortran's
// integer, Fortran the value of C's pointer.
//
// So an integer that Fortran sets is kept in a cell, and C's attribute is the cell's address. A
// value is Fortran's if it is the address of a cell. The callbacks of a key value that is made in
// Fortran go through functions here, whose extra state is a struct Callbacks. Thread rule: as in C,
// one thread at a time.
#include "entries.h"

// ---- cells --------------------------------------------------------------------------------------

enum { kCells = 512 };
union cell {
  MPI_Aint value;
  union cell* next_free;
};
// Memory for cells is never given back, so that an address tells for ever that it is one.
static struct chunk {
  struct chunk* next;
  union cell cells[kCells];
} * chunks;
static union cell* free_cells;

static int is_cell(const void* pointer) {
  for (const struct chunk* c = chunks; c; c = c->next)
    if ((const char*)pointer >= (const char*)c->cells &&
        (const char*)pointer < (const char*)(c->cells + kCells))
      return 1;
  return 0;
}
// A null pointer if there is no memory.
static void* new_cell(MPI_Aint value) {
  if (!free_cells) {
    struct chunk* const more = malloc(sizeof *more);
    if (!more) return NULL;
    more->next = chunks;
    chunks = more;
    for (int i = 0; i < kCells; ++i) {
      more->cells[i].next_free = free_cells;
      free_cells = &more->cells[i];
    }
  }
  union cell* const cell = free_cells;
  free_cells = cell->next_free;
  cell->value = value;
  return cell;
}
static void free_cell(void* pointer) {
  if (!is_cell(pointer)) return;
  union cell* const cell = pointer;
  cell->next_free = free_cells;
  free_cells = cell;
}
static MPI_Aint fortran_value(const void* attribute) {
  return is_cell(attribute) ? ((const union cell*)attribute)->value : (MPI_Aint)attribute;
}

// ---- callbacks ----------------------------------------------------------------------------------

typedef void CopyFunction(int* object, int* keyval, MPI_Aint* extra_state, MPI_Aint* value_in,
                          MPI_Aint* value_out, int* flag, int* ierror);
typedef void DeleteFunction(int* object, int* keyval, MPI_Aint* value, MPI_Aint* extra_state,
                            int* ierror);

// Kept for ever, since nothing tells when the last attribute of a key value is gone; but equal ones
// are one, so that a program that makes and frees key values in a loop needs no more memory.
static struct Callbacks {
  struct Callbacks* next;
  CopyFunction* copy;
  DeleteFunction* erase;
  MPI_Aint extra_state;
  // Made by MPI_Keyval_create: values and extra state are default INTEGERs. x86-64 has their bytes
  // first in those of an MPI_Aint, so that only what the copy function returns has to be widened.
  int narrow;
} * all_callbacks;

static struct Callbacks* callbacks(CopyFunction* copy, DeleteFunction* erase, MPI_Aint extra_state,
                                   int narrow) {
  struct Callbacks* c = all_callbacks;
  while (c && !(c->copy == copy && c->erase == erase && c->extra_state == extra_state &&
                c->narrow == narrow))
    c = c->next;
  if (c || !(c = malloc(sizeof *c))) return c;
  *c = (struct Callbacks){all_callbacks, copy, erase, extra_state, narrow};
  return all_callbacks = c;
}

static int copy(int object, int keyval, void* extra_state, void* in, void* out, int* flag) {
  struct Callbacks* const c = extra_state;
  MPI_Aint value = fortran_value(in), copied = 0, state = c->extra_state;
  int code = MPI_SUCCESS;
  *flag = 0;
  c->copy(&object, &keyval, &state, &value, &copied, flag, &code);
  if (code != MPI_SUCCESS || !*flag) return code;
  void* const cell = new_cell(c->narrow ? (int)copied : copied);
  if (!cell) return MPI_ERR_NO_MEM;
  *(void**)out = cell;
  return MPI_SUCCESS;
}
static int erase(int object, int keyval, void* attribute, void* extra_state) {
  struct Callbacks* const c = extra_state;
  MPI_Aint value = fortran_value(attribute), state = c->extra_state;
  int code = MPI_SUCCESS;
  c->erase(&object, &keyval, &value, &state, &code);
  if (code == MPI_SUCCESS) free_cell(attribute);
  return code;
}

// ---- for each kind of object --------------------------------------------------------------------

// After C was given a cell, which it may have refused.
static void give_set(int code, void* cell, int* ierror) {
  if (code != MPI_SUCCESS) free_cell(cell);
  give_code(ierror, code);
}
// The values of predefined attributes are pointers to C's integers.
static MPI_Aint attribute_value(int keyval, const void* attribute) {
  if (keyval == MPI_WIN_SIZE) return *(const MPI_Aint*)attribute;
  const int predefined = (keyval >= MPI_TAG_UB && keyval <= MPI_UNIVERSE_SIZE) ||
                         keyval == MPI_WIN_DISP_UNIT || keyval == MPI_WIN_CREATE_FLAVOR ||
                         keyval == MPI_WIN_MODEL;
  return predefined ? *(const int*)attribute : fortran_value(attribute);
}

// Kind: as in MPI_Kind_fromint; Handle: C's type.
#define ATTRIBUTES(Kind, kind, Handle)                                                             \
  static int copy_##kind(Handle object, int keyval, void* extra_state, void* in, void* out,        \
                         int* flag) {                                                              \
    return copy(MPI_##Kind##_toint(object), keyval, extra_state, in, out, flag);                   \
  }                                                                                                \
  static int erase_##kind(Handle object, int keyval, void* attribute, void* extra_state) {         \
    return erase(MPI_##Kind##_toint(object), keyval, attribute, extra_state);                      \
  }                                                                                                \
  void pmpi_##kind##_create_keyval_(CopyFunction* copy_fn, DeleteFunction* delete_fn, int* keyval, \
                                    MPI_Aint* extra_state, int* ierror) {                          \
    struct Callbacks* const c = callbacks(copy_fn, delete_fn, *extra_state, 0);                    \
    const int code =                                                                               \
        c ? MPI_##Kind##_create_keyval(copy_##kind, erase_##kind, keyval, c) : no_memory();        \
    give_code(ierror, code);                                                                       \
  }                                                                                                \
  MPI_NAME(kind##_create_keyval_);                                                                 \
  void pmpi_##kind##_set_attr_(int* object, int* keyval, MPI_Aint* value, int* ierror) {           \
    void* const cell = new_cell(*value);                                                           \
    const Handle handle = MPI_##Kind##_fromint(*object);                                           \
    give_set(cell ? MPI_##Kind##_set_attr(handle, *keyval, cell) : no_memory(), cell, ierror);     \
  }                                                                                                \
  MPI_NAME(kind##_set_attr_);                                                                      \
  void pmpi_##kind##_get_attr_(int* object, int* keyval, MPI_Aint* value, int* flag,               \
                               int* ierror) {                                                      \
    void* attribute = NULL;                                                                        \
    *flag = 0;                                                                                     \
    give_code(ierror,                                                                              \
              MPI_##Kind##_get_attr(MPI_##Kind##_fromint(*object), *keyval, &attribute, flag));    \
    if (*flag) *value = attribute_value(*keyval, attribute);                                       \
  }                                                                                                \
  MPI_NAME(kind##_get_attr_);                                                                      \
  void pmpi_##kind##_null_copy_fn_(int* object, int* keyval, MPI_Aint* extra_state, MPI_Aint* in,  \
                                   MPI_Aint* out, int* flag, int* ierror) {                        \
    (void)object, (void)keyval, (void)extra_state, (void)in, (void)out;                            \
    *flag = 0;                                                                                     \
    *ierror = MPI_SUCCESS;                                                                         \
  }                                                                                                \
  MPI_NAME(kind##_null_copy_fn_);                                                                  \
  void pmpi_##kind##_dup_fn_(int* object, int* keyval, MPI_Aint* extra_state, MPI_Aint* in,        \
                             MPI_Aint* out, int* flag, int* ierror) {                              \
    (void)object, (void)keyval, (void)extra_state;                                                 \
    *out = *in;                                                                                    \
    *flag = 1;                                                                                     \
    *ierror = MPI_SUCCESS;                                                                         \
  }                                                                                                \
  MPI_NAME(kind##_dup_fn_);                                                                        \
  void pmpi_##kind##_null_delete_fn_(int* object, int* keyval, MPI_Aint* value,                    \
                                     MPI_Aint* extra_state, int* ierror) {                         \
    (void)object, (void)keyval, (void)value, (void)extra_state;                                    \
    *ierror = MPI_SUCCESS;                                                                         \
  }                                                                                                \
  MPI_NAME(kind##_null_delete_fn_)

ATTRIBUTES(Comm, comm, MPI_Comm);
ATTRIBUTES(Type, type, MPI_Datatype);
ATTRIBUTES(Win, win, MPI_Win);

// ---- the names of MPI-1, whose values are default INTEGERs --------------------------------------

void pmpi_keyval_create_(CopyFunction* copy_fn, DeleteFunction* delete_fn, int* keyval,
                         int* extra_state, int* ierror) {
  struct Callbacks* const c = callbacks(copy_fn, delete_fn, *extra_state, 1);
  give_code(ierror, c ? MPI_Keyval_create(copy_comm, erase_comm, keyval, c) : no_memory());
}
MPI_NAME(keyval_create_);
void pmpi_attr_put_(int* comm, int* keyval, int* value, int* ierror) {
  void* const cell = new_cell(*value);
  const int code = cell ? MPI_Attr_put(MPI_Comm_fromint(*comm), *keyval, cell) : no_memory();
  give_set(code, cell, ierror);
}
MPI_NAME(attr_put_);
void pmpi_attr_get_(int* comm, int* keyval, int* value, int* flag, int* ierror) {
  void* attribute = NULL;
  *flag = 0;
  give_code(ierror, MPI_Attr_get(MPI_Comm_fromint(*comm), *keyval, &attribute, flag));
  if (*flag) *value = (int)attribute_value(*keyval, attribute);
}
MPI_NAME(attr_get_);

// The predefined callbacks, which programs may call, too.
void pmpi_dup_fn_(int* comm, int* keyval, int* extra_state, int* in, int* out, int* flag,
                  int* ierror) {
  (void)comm, (void)keyval, (void)extra_state;
  *out = *in;
  *flag = 1;
  *ierror = MPI_SUCCESS;
}
MPI_NAME(dup_fn_);
void pmpi_null_copy_fn_(int* comm, int* keyval, int* extra_state, int* in, int* out, int* flag,
                        int* ierror) {
  (void)comm, (void)keyval, (void)extra_state, (void)in, (void)out;
  *flag = 0;
  *ierror = MPI_SUCCESS;
}
MPI_NAME(null_copy_fn_);
void pmpi_null_delete_fn_(int* comm, int* keyval, int* value, int* extra_state, int* ierror) {
  (void)comm, (void)keyval, (void)value, (void)extra_state;
  *ierror = MPI_SUCCESS;
}
MPI_NAME(null_delete_fn_);
