/* For C programs that share handles and statuses with Fortran: the functions with which MPI up to 4
 * converted them. The standard ABI of MPI 5 has MPI_Comm_fromint and MPI_Comm_toint and their kin
 * instead, which these are made of. With any mpi.h of that ABI.
 *
 * A program that uses MPI_F_STATUS_IGNORE or its kin is linked with libmpifort_abi, which mpicc
 * does not do by itself: mpicc program.c -lmpifort_abi.
 */
#ifndef VIADUCT_MPI_FORTRAN_H
#define VIADUCT_MPI_FORTRAN_H

#include <string.h>

#include "mpi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int MPI_Fint;              /* INTEGER */
typedef MPI_Status MPI_F08_status; /* TYPE(MPI_Status) */

#define MPI_F_STATUS_SIZE 8
#define MPI_F_SOURCE 0
#define MPI_F_TAG 1
#define MPI_F_ERROR 2

/* COMMON blocks of mpif.h, and variables of module mpi_f08. */
extern MPI_Fint mpi_fort_status_ignore_[MPI_F_STATUS_SIZE];
extern MPI_Fint mpi_fort_statuses_ignore_[MPI_F_STATUS_SIZE];
extern MPI_F08_status mpi_fort_f08_status_ignore_;
extern MPI_F08_status mpi_fort_f08_statuses_ignore_;
#define MPI_F_STATUS_IGNORE (mpi_fort_status_ignore_)
#define MPI_F_STATUSES_IGNORE (mpi_fort_statuses_ignore_)
#define MPI_F08_STATUS_IGNORE (&mpi_fort_f08_status_ignore_)
#define MPI_F08_STATUSES_IGNORE (&mpi_fort_f08_statuses_ignore_)

#define VIADUCT_FORTRAN_HANDLE(Kind, Handle)               \
  static inline Handle MPI_##Kind##_f2c(MPI_Fint handle) { \
    return MPI_##Kind##_fromint(handle);                   \
  }                                                        \
  static inline MPI_Fint MPI_##Kind##_c2f(Handle handle) { \
    return MPI_##Kind##_toint(handle);                     \
  }
VIADUCT_FORTRAN_HANDLE(Comm, MPI_Comm)
VIADUCT_FORTRAN_HANDLE(Errhandler, MPI_Errhandler)
VIADUCT_FORTRAN_HANDLE(Group, MPI_Group)
VIADUCT_FORTRAN_HANDLE(Info, MPI_Info)
VIADUCT_FORTRAN_HANDLE(Message, MPI_Message)
VIADUCT_FORTRAN_HANDLE(Op, MPI_Op)
VIADUCT_FORTRAN_HANDLE(Request, MPI_Request)
VIADUCT_FORTRAN_HANDLE(Type, MPI_Datatype)
#ifdef MPI_FILE_NULL
VIADUCT_FORTRAN_HANDLE(File, MPI_File)
#endif
#ifdef MPI_SESSION_NULL
VIADUCT_FORTRAN_HANDLE(Session, MPI_Session)
#endif
#ifdef MPI_WIN_NULL
VIADUCT_FORTRAN_HANDLE(Win, MPI_Win)
#endif
#undef VIADUCT_FORTRAN_HANDLE

/* A status is the same in C, in an array of INTEGERs, and in module mpi_f08. */
static inline int MPI_Status_f2c(const MPI_Fint* f_status, MPI_Status* c_status) {
  memcpy(c_status, f_status, sizeof *c_status);
  return MPI_SUCCESS;
}
static inline int MPI_Status_c2f(const MPI_Status* c_status, MPI_Fint* f_status) {
  memcpy(f_status, c_status, sizeof *c_status);
  return MPI_SUCCESS;
}
static inline int MPI_Status_f082c(const MPI_F08_status* f08_status, MPI_Status* c_status) {
  *c_status = *f08_status;
  return MPI_SUCCESS;
}
static inline int MPI_Status_c2f08(const MPI_Status* c_status, MPI_F08_status* f08_status) {
  *f08_status = *c_status;
  return MPI_SUCCESS;
}
static inline int MPI_Status_f2f08(const MPI_Fint* f_status, MPI_F08_status* f08_status) {
  return MPI_Status_f2c(f_status, f08_status);
}
static inline int MPI_Status_f082f(const MPI_F08_status* f08_status, MPI_Fint* f_status) {
  return MPI_Status_c2f(f08_status, f_status);
}

#ifdef __cplusplus
}
#endif

#endif
