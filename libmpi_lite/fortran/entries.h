// What the C entries of the Fortran bindings share. An entry pmpi_x_ is what gfortran calls for
// PMPI_X: all arguments by address, the lengths of strings by value behind them. It calls the C
// function MPI_X, so that tools that take the place of MPI_X see what Fortran programs do. ierror
// is a null pointer where module mpi_f08 leaves it out.
//
// INTEGER is C's int, LOGICAL is an int with the values 1 and 0, and an MPI_Status is an array of
// INTEGERs as it is. Whatever C library has the standard ABI can be behind these entries.
#pragma once

#include <ISO_Fortran_binding.h>
#include <limits.h>
#include <mpi.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(MPI_Status) == 8 * sizeof(int), "MPI_STATUS_SIZE is 8");
_Static_assert(sizeof(MPI_Aint) == 8 && sizeof(MPI_Count) == 8, "MPI_ADDRESS_KIND is 8");

// mpi_x_ as a weak alias of pmpi_x_, as in C.
#define MPI_NAME(name) \
  extern __typeof__(pmpi_##name) mpi_##name __attribute__((weak, alias("pmpi_" #name)))

static inline void give_code(int* ierror, int code) {
  if (ierror) *ierror = code;
}

// MPI_ERR_NO_MEM, after the error handler of MPI_COMM_SELF has been called.
int no_memory(void);

// ---- addresses with a meaning of their own ------------------------------------------------------

// The COMMON blocks of mpif.h and variables of the modules, in special.c. They have exactly the
// size that they have in Fortran, because an executable gets a copy, which the dynamic linker then
// uses in this library, too.
extern int mpi_fort_bottom_[1], mpi_fort_in_place_[1], mpi_fort_buffer_automatic_[1];
extern int mpi_fort_unweighted_[1], mpi_fort_weights_empty_[1];
extern int mpi_fort_status_ignore_[8], mpi_fort_statuses_ignore_[8];
extern int mpi_fort_f08_status_ignore_[8], mpi_fort_f08_statuses_ignore_[8];

static inline int is_in_place(const void* buffer) {
  return buffer == (const void*)mpi_fort_in_place_;
}
static inline void* c_buf(void* buffer) {
  if (buffer == (void*)mpi_fort_bottom_) return MPI_BOTTOM;
  return is_in_place(buffer) ? MPI_IN_PLACE : buffer;
}
static inline int* c_weights(int* weights) {
  if (weights == mpi_fort_unweighted_) return MPI_UNWEIGHTED;
  return weights == mpi_fort_weights_empty_ ? MPI_WEIGHTS_EMPTY : weights;
}
// Of one status or of an array.
static inline MPI_Status* c_status(MPI_Status* status) {
  const void* const s = status;
  return s == mpi_fort_status_ignore_ || s == mpi_fort_statuses_ignore_ ||
                 s == mpi_fort_f08_status_ignore_ || s == mpi_fort_f08_statuses_ignore_
             ? MPI_STATUS_IGNORE
             : status;
}

// ---- handles ------------------------------------------------------------------------------------

// A bit that is set here is not set in a number that is itself the handle. At first these are the
// numbers of predefined handles, which the ABI fixes (all below 0x400). Once a handle that is not
// predefined turns out to be equal to its number, they are all that are not negative, since a
// library whose handles are numbers does not make pointers of some of them.
//
// Entries that move data are there twice: where all handles are such numbers, they save the calls
// of MPI_Comm_fromint and its kin, and nothing has to be kept in registers meanwhile.
extern unsigned no_bits_of_numbers __attribute__((visibility("hidden")));
static inline int are_numbers(int handles) {
  return ((unsigned)handles & no_bits_of_numbers) == 0;
}
static inline void* learn(void* handle, int number) {
  if (number >= 0x400 && (intptr_t)handle == number) no_bits_of_numbers = ~(unsigned)INT_MAX;
  return handle;
}
#define C_HANDLE(Kind, Type, number) \
  (Type)(numbers ? (void*)(intptr_t)(number) : learn(MPI_##Kind##_fromint(number), number))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

// ---- arrays that have other elements in C -------------------------------------------------------

// Short arrays are on the stack. If there is no memory for a long one, C gets a null pointer and
// says so. `n` may be anything: the C function checks it.
#define SCRATCH(type, name, n) \
  type name##_few[32];         \
  name##_few[0] = 0;           \
  type* const name = (n) <= 32 ? name##_few : malloc((size_t)(n) * sizeof(type))
#define RELEASE(name) \
  if (name != name##_few) free(name)

// How many processes a communicator's vectors are for; 0 if it is none, which the function that is
// called with it then says.
int ranks_of(int comm);
// With how many neighbours this process exchanges data in a topology; 0 if there is none. `in`:
// from how many it receives, or else to how many it sends.
int neighbors_of(int comm, int in);

static inline int fortran_index(int index) {
  return index == MPI_UNDEFINED ? index : index + 1;
}

// An address as a default INTEGER, for procedures that MPI-3 removed. If it does not fit, `code`
// becomes what the error handler of MPI_COMM_SELF returns.
int narrow(MPI_Aint address, int* integer, int code);

// ---- strings ------------------------------------------------------------------------------------

// A copy with a final zero.
struct string {
  char few[256];
  char* text;
};
// Without the blanks on the right; `word`: nor those on the left. A null pointer if there is no
// memory.
const char* string_in(struct string* copy, const char* text, size_t length, int word);
static inline void string_free(struct string* copy) {
  if (copy->text != copy->few) free(copy->text);
}
// Cuts what does not fit, and fills up with blanks.
void string_out(const char* from, char* text, size_t length);

// ---- array sections -----------------------------------------------------------------------------

// The procedures of module mpi_f08 that return before they are done get descriptors of their
// buffers, and no copies, which would be gone too soon. In sections.c.
int is_contiguous(const CFI_cdesc_t* buffer);
// The first `count` items, more than none, of a section as one item of a new datatype, committed;
// MPI_DATATYPE_NULL if it cannot be described.
int section_type(const CFI_cdesc_t* buffer, MPI_Count count, int datatype);
void free_section_type(int type);
// An error that says that a section is not allowed in this function.
void refuse_section(const char* function, const int* comm, int* request, int* ierror);
