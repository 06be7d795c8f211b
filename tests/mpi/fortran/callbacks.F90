#include "binding.inc"
! What the program gives to MPI.
module callbacks
  implicit none
  integer :: copies = 0, deletions = 0, handled = 0, last_code = 0, queries = 0, freed = 0, cancelled = 0
  integer :: seen_type = 0, handled_comm = 0
contains
  ! The larger absolute value; of INTEGERs.
#ifdef MPI_F08
  subroutine larger(invec, inoutvec, len, datatype)
    use mpi_f08
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
#else
  subroutine larger(a, b, len, datatype)
    integer :: len, datatype
    integer :: a(len), b(len)
#endif
    where (abs(a) > abs(b)) b = a
    seen_type = NUMBER(datatype)
  end subroutine

  subroutine on_error(handle, code)
    USE_MPI
    INCLUDE_MPI
    COMM :: handle
    integer :: code
    handled = handled + 1
    handled_comm = NUMBER(handle)
    last_code = code
  end subroutine

  subroutine copy_comm(old, keyval, extra_state, value_in, value_out, flag, ierror)
    USE_MPI
    INCLUDE_MPI
    COMM :: old
    integer :: keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, value_in, value_out
    logical :: flag
    copies = copies + 1
    value_out = value_in + extra_state
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete_comm(handle, keyval, value, extra_state, ierror)
    USE_MPI
    INCLUDE_MPI
    COMM :: handle
    integer :: keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, extra_state
    deletions = deletions + 1
    ierror = MPI_SUCCESS
    if (value == -13) ierror = MPI_ERR_OTHER
  end subroutine

  ! With default INTEGERs, for MPI_Keyval_create.
  subroutine copy_old(old, keyval, extra_state, value_in, value_out, flag, ierror)
    integer :: old, keyval, extra_state, value_in, value_out, ierror
    logical :: flag
    copies = copies + 1
    value_out = value_in * extra_state
    flag = .true.
    ierror = 0
  end subroutine

  subroutine query(extra_state, s, ierror)
    USE_MPI
    INCLUDE_MPI
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    STATUS :: s
    integer :: ierror
    queries = queries + 1
    call MPI_Status_set_elements(s, MPI_INTEGER, int(extra_state), ierror)
    call MPI_Status_set_cancelled(s, .false., ierror)
    SOURCE_OF(s) = 3
    TAG_OF(s) = 4
  end subroutine

  subroutine free_it(extra_state, ierror)
    USE_MPI
    INCLUDE_MPI
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    freed = freed + int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancel_it(extra_state, complete, ierror)
    USE_MPI
    INCLUDE_MPI
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    if (.not. complete) cancelled = cancelled + 1
    ierror = MPI_SUCCESS
  end subroutine
end module
