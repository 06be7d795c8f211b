// The entries that the table cannot describe: what has other arguments in C, and functions.
#include "entries.h"

// Strong and initialized, so that the linker takes these for the COMMON blocks of the same names,
// and aligned as gfortran aligns those.
#define COMMON(name, integers) int name[integers] __attribute__((aligned(32))) = {0}
COMMON(mpi_fort_bottom_, 1);
COMMON(mpi_fort_in_place_, 1);
COMMON(mpi_fort_buffer_automatic_, 1);
COMMON(mpi_fort_unweighted_, 1);
COMMON(mpi_fort_weights_empty_, 1);
COMMON(mpi_fort_status_ignore_, 8);
COMMON(mpi_fort_statuses_ignore_, 8);
COMMON(mpi_fort_f08_status_ignore_, 8);
COMMON(mpi_fort_f08_statuses_ignore_, 8);

// ---- starting -----------------------------------------------------------------------------------

// A C library that knows nothing of Fortran has to be told, before anything uses MPI_INTEGER.
static void tell_fortran(void) {
  static const char* const sizes[][2] = {{"mpi_logical_size", "4"},
                                         {"mpi_integer_size", "4"},
                                         {"mpi_real_size", "4"},
                                         {"mpi_double_precision_size", "8"}};
  MPI_Info info = MPI_INFO_NULL;
  if (MPI_Abi_get_fortran_info(&info) != MPI_SUCCESS) return;
  if (info == MPI_INFO_NULL && MPI_Info_create(&info) == MPI_SUCCESS) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
      MPI_Info_set(info, sizes[i][0], sizes[i][1]);
    MPI_Abi_set_fortran_info(info);
  }
  MPI_Info_free(&info);
  int yes = 1, no = 0, is_set = 0;
  MPI_Abi_get_fortran_booleans(sizeof yes, &yes, &no, &is_set);
  if (is_set) return;
  yes = 1, no = 0;
  MPI_Abi_set_fortran_booleans(sizeof yes, &yes, &no);
}

void pmpi_init_(int* ierror) {
  tell_fortran();
  give_code(ierror, MPI_Init(NULL, NULL));
}
MPI_NAME(init_);

void pmpi_init_thread_(int* required, int* provided, int* ierror) {
  tell_fortran();
  give_code(ierror, MPI_Init_thread(NULL, NULL, *required, provided));
}
MPI_NAME(init_thread_);

void pmpi_session_init_(int* info, int* errhandler, int* session, int* ierror) {
  MPI_Session made = MPI_SESSION_NULL;
  tell_fortran();
  give_code(ierror,
            MPI_Session_init(MPI_Info_fromint(*info), MPI_Errhandler_fromint(*errhandler), &made));
  *session = MPI_Session_toint(made);
}
MPI_NAME(session_init_);

void pmpi_info_create_env_(int* info, int* ierror) {
  MPI_Info made = MPI_INFO_NULL;
  give_code(ierror, MPI_Info_create_env(0, NULL, &made));
  *info = MPI_Info_toint(made);
}
MPI_NAME(info_create_env_);

// ---- functions, and what has no ierror ----------------------------------------------------------

double pmpi_wtime_(void) {
  return MPI_Wtime();
}
MPI_NAME(wtime_);
double pmpi_wtick_(void) {
  return MPI_Wtick();
}
MPI_NAME(wtick_);
MPI_Aint pmpi_aint_add_(MPI_Aint* base, MPI_Aint* disp) {
  return MPI_Aint_add(*base, *disp);
}
MPI_NAME(aint_add_);
MPI_Aint pmpi_aint_diff_(MPI_Aint* addr1, MPI_Aint* addr2) {
  return MPI_Aint_diff(*addr1, *addr2);
}
MPI_NAME(aint_diff_);
void pmpi_pcontrol_(int* level) {
  MPI_Pcontrol(*level);
}
MPI_NAME(pcontrol_);
// The compiler has to think that this reads and writes the buffer (MPI 5.0, section 19.1.17).
void pmpi_f_sync_reg_(void* buffer) {
  (void)buffer;
}
MPI_NAME(f_sync_reg_);

// ---- memory -------------------------------------------------------------------------------------

// `baseptr` is an INTEGER(MPI_ADDRESS_KIND), a Cray pointer or a TYPE(C_PTR).
void pmpi_alloc_mem_(MPI_Aint* size, int* info, void** baseptr, int* ierror) {
  give_code(ierror, MPI_Alloc_mem(*size, MPI_Info_fromint(*info), baseptr));
}
MPI_NAME(alloc_mem_);
void pmpi_alloc_mem_cptr_(MPI_Aint* size, int* info, void** baseptr, int* ierror) {
  pmpi_alloc_mem_(size, info, baseptr, ierror);
}
MPI_NAME(alloc_mem_cptr_);

// ---- windows that the library allocates memory for ----------------------------------------------

// `Disp`: the type of disp_unit, which is an address in procedures with large counts.
#define WIN_ALLOCATE(name, Function, Disp)                                                   \
  void pmpi_##name##_(MPI_Aint* size, Disp* disp_unit, int* info, int* comm, void** baseptr, \
                      int* win, int* ierror) {                                               \
    MPI_Win made = MPI_WIN_NULL;                                                             \
    give_code(ierror, Function(*size, *disp_unit, MPI_Info_fromint(*info),                   \
                               MPI_Comm_fromint(*comm), baseptr, &made));                    \
    *win = MPI_Win_toint(made);                                                              \
  }                                                                                          \
  MPI_NAME(name##_)
// The specific procedure with a TYPE(C_PTR), for module mpi and mpif.h.
#define WIN_ALLOCATE_CPTR(name)                                                                  \
  void pmpi_##name##_cptr_(MPI_Aint* size, int* disp_unit, int* info, int* comm, void** baseptr, \
                           int* win, int* ierror) {                                              \
    pmpi_##name##_(size, disp_unit, info, comm, baseptr, win, ierror);                           \
  }                                                                                              \
  MPI_NAME(name##_cptr_)
WIN_ALLOCATE(win_allocate, MPI_Win_allocate, int);
WIN_ALLOCATE_CPTR(win_allocate);
WIN_ALLOCATE(win_allocate_c, MPI_Win_allocate_c, MPI_Aint);
WIN_ALLOCATE(win_allocate_shared, MPI_Win_allocate_shared, int);
WIN_ALLOCATE_CPTR(win_allocate_shared);
WIN_ALLOCATE(win_allocate_shared_c, MPI_Win_allocate_shared_c, MPI_Aint);

#define WIN_SHARED_QUERY(name, Function, Disp)                                              \
  void pmpi_##name##_(int* win, int* rank, MPI_Aint* size, Disp* disp_unit, void** baseptr, \
                      int* ierror) {                                                        \
    give_code(ierror, Function(MPI_Win_fromint(*win), *rank, size, disp_unit, baseptr));    \
  }                                                                                         \
  MPI_NAME(name##_)
WIN_SHARED_QUERY(win_shared_query, MPI_Win_shared_query, int);
WIN_SHARED_QUERY(win_shared_query_c, MPI_Win_shared_query_c, MPI_Aint);
void pmpi_win_shared_query_cptr_(int* win, int* rank, MPI_Aint* size, int* disp_unit,
                                 void** baseptr, int* ierror) {
  pmpi_win_shared_query_(win, rank, size, disp_unit, baseptr, ierror);
}
MPI_NAME(win_shared_query_cptr_);

static void* attached(void* buffer) {
  return buffer == (void*)mpi_fort_buffer_automatic_ ? MPI_BUFFER_AUTOMATIC : buffer;
}
static void* detached(void* buffer) {
  return buffer == MPI_BUFFER_AUTOMATIC ? mpi_fort_buffer_automatic_ : buffer;
}

// The entries to attach and to detach a buffer, to the process or to a communicator. mpif.h and
// module mpi have no way to return the buffer's address (MPI 5.0, section 3.6); in module mpi_f08
// it is a TYPE(C_PTR).
#define ATTACH(name, Count, parameter, call)                              \
  void pmpi_##name##_(parameter void* buffer, Count* size, int* ierror) { \
    give_code(ierror, call);                                              \
  }                                                                       \
  MPI_NAME(name##_)
#define DETACH(name, Count, parameter, call)                                   \
  void pmpi_##name##_f08_(parameter void** buffer, Count* size, int* ierror) { \
    const int code = call;                                                     \
    if (code == MPI_SUCCESS) *buffer = detached(*buffer);                      \
    give_code(ierror, code);                                                   \
  }                                                                            \
  MPI_NAME(name##_f08_)
#define DETACH_WITHOUT_ADDRESS(name, parameter, call)                    \
  void pmpi_##name##_(parameter void* ignored, int* size, int* ierror) { \
    void* unused;                                                        \
    void** buffer = &unused;                                             \
    (void)ignored;                                                       \
    give_code(ierror, call);                                             \
  }                                                                      \
  MPI_NAME(name##_)
#define NO_PARAMETER
#define COMM_PARAMETER int *comm,
#define SESSION_PARAMETER int *session,

ATTACH(buffer_attach, int, NO_PARAMETER, MPI_Buffer_attach(attached(buffer), *size));
ATTACH(buffer_attach_c, MPI_Count, NO_PARAMETER, MPI_Buffer_attach_c(attached(buffer), *size));
DETACH_WITHOUT_ADDRESS(buffer_detach, NO_PARAMETER, MPI_Buffer_detach(buffer, size));
DETACH(buffer_detach, int, NO_PARAMETER, MPI_Buffer_detach(buffer, size));
DETACH(buffer_detach_c, MPI_Count, NO_PARAMETER, MPI_Buffer_detach_c(buffer, size));
ATTACH(comm_attach_buffer, int, COMM_PARAMETER,
       MPI_Comm_attach_buffer(MPI_Comm_fromint(*comm), attached(buffer), *size));
ATTACH(comm_attach_buffer_c, MPI_Count, COMM_PARAMETER,
       MPI_Comm_attach_buffer_c(MPI_Comm_fromint(*comm), attached(buffer), *size));
DETACH_WITHOUT_ADDRESS(comm_detach_buffer, COMM_PARAMETER,
                       MPI_Comm_detach_buffer(MPI_Comm_fromint(*comm), buffer, size));
DETACH(comm_detach_buffer, int, COMM_PARAMETER,
       MPI_Comm_detach_buffer(MPI_Comm_fromint(*comm), buffer, size));
DETACH(comm_detach_buffer_c, MPI_Count, COMM_PARAMETER,
       MPI_Comm_detach_buffer_c(MPI_Comm_fromint(*comm), buffer, size));

ATTACH(session_attach_buffer, int, SESSION_PARAMETER,
       MPI_Session_attach_buffer(MPI_Session_fromint(*session), attached(buffer), *size));
ATTACH(session_attach_buffer_c, MPI_Count, SESSION_PARAMETER,
       MPI_Session_attach_buffer_c(MPI_Session_fromint(*session), attached(buffer), *size));
DETACH_WITHOUT_ADDRESS(session_detach_buffer, SESSION_PARAMETER,
                       MPI_Session_detach_buffer(MPI_Session_fromint(*session), buffer, size));
DETACH(session_detach_buffer, int, SESSION_PARAMETER,
       MPI_Session_detach_buffer(MPI_Session_fromint(*session), buffer, size));
DETACH(session_detach_buffer_c, MPI_Count, SESSION_PARAMETER,
       MPI_Session_detach_buffer_c(MPI_Session_fromint(*session), buffer, size));

// ---- strings whose length is an argument --------------------------------------------------------

void pmpi_info_get_(int* info, char* key, int* valuelen, char* value, int* flag, int* ierror,
                    size_t key_len, size_t value_len) {
  struct string name;
  char few[MPI_MAX_INFO_VAL + 1];
  char* const got = *valuelen <= MPI_MAX_INFO_VAL ? few : malloc((size_t)*valuelen + 1);
  const int code = MPI_Info_get(MPI_Info_fromint(*info), string_in(&name, key, key_len, 1),
                                *valuelen, got, flag);
  if (code == MPI_SUCCESS) {
    *flag = *flag != 0;
    if (*flag) string_out(got, value, value_len);
  }
  if (got != few) free(got);
  string_free(&name);
  give_code(ierror, code);
}
MPI_NAME(info_get_);

// As MPI_Info_get_string.
void pmpi_session_get_nth_pset_(int* session, int* info, int* n, int* pset_len, char* pset_name,
                                int* ierror, size_t pset_name_len) {
  char name[MPI_MAX_PSET_NAME_LEN];
  int length = *pset_len > 0 ? (int)sizeof name : *pset_len;
  const int code = MPI_Session_get_nth_pset(MPI_Session_fromint(*session), MPI_Info_fromint(*info),
                                            *n, &length, name);
  if (code == MPI_SUCCESS) {
    if (*pset_len > 0) string_out(name, pset_name, pset_name_len);
    *pset_len = length - 1;
  }
  give_code(ierror, code);
}
MPI_NAME(session_get_nth_pset_);

// C's lengths count the final zero, Fortran's have none. 0 asks for the length only.
void pmpi_info_get_string_(int* info, char* key, int* buflen, char* value, int* flag, int* ierror,
                           size_t key_len, size_t value_len) {
  struct string name;
  char got[MPI_MAX_INFO_VAL + 1] = "";
  int length = *buflen > 0 ? *buflen + 1 : *buflen;
  if (length > (int)sizeof got) length = sizeof got;
  const int code = MPI_Info_get_string(MPI_Info_fromint(*info), string_in(&name, key, key_len, 1),
                                       &length, got, flag);
  if (code == MPI_SUCCESS) {
    *flag = *flag != 0;
    if (*flag && *buflen > 0) string_out(got, value, value_len);
    if (*flag) *buflen = length - 1;
  }
  string_free(&name);
  give_code(ierror, code);
}
MPI_NAME(info_get_string_);

// ---- statuses -----------------------------------------------------------------------------------

void pmpi_status_f2f08_(int* f_status, MPI_Status* f08_status, int* ierror) {
  memcpy(f08_status, f_status, sizeof *f08_status);
  give_code(ierror, MPI_SUCCESS);
}
MPI_NAME(status_f2f08_);
void pmpi_status_f082f_(MPI_Status* f08_status, int* f_status, int* ierror) {
  memcpy(f_status, f08_status, sizeof *f08_status);
  give_code(ierror, MPI_SUCCESS);
}
MPI_NAME(status_f082f_);

// ---- generalized requests -----------------------------------------------------------------------

// C's extra state of a request whose functions are Fortran's. It is gone when the request is.
struct Grequest {
  void (*query)(MPI_Aint* extra_state, MPI_Status* status, int* ierror);
  void (*free)(MPI_Aint* extra_state, int* ierror);
  void (*cancel)(MPI_Aint* extra_state, int* complete, int* ierror);
  MPI_Aint extra_state;
};

static int query(void* state, MPI_Status* status) {
  struct Grequest* const r = state;
  int code = MPI_SUCCESS;
  r->query(&r->extra_state, status, &code);
  return code;
}
static int free_request(void* state) {
  struct Grequest* const r = state;
  int code = MPI_SUCCESS;
  r->free(&r->extra_state, &code);
  free(r);
  return code;
}
static int cancel(void* state, int complete) {
  struct Grequest* const r = state;
  int code = MPI_SUCCESS;
  r->cancel(&r->extra_state, &complete, &code);
  return code;
}

void pmpi_grequest_start_(void (*query_fn)(MPI_Aint*, MPI_Status*, int*),
                          void (*free_fn)(MPI_Aint*, int*),
                          void (*cancel_fn)(MPI_Aint*, int*, int*), MPI_Aint* extra_state,
                          int* request, int* ierror) {
  struct Grequest* const state = malloc(sizeof *state);
  MPI_Request made = MPI_REQUEST_NULL;
  if (state) *state = (struct Grequest){query_fn, free_fn, cancel_fn, *extra_state};
  const int code =
      state ? MPI_Grequest_start(query, free_request, cancel, state, &made) : no_memory();
  if (code != MPI_SUCCESS) free(state);
  *request = MPI_Request_toint(made);
  give_code(ierror, code);
}
MPI_NAME(grequest_start_);
