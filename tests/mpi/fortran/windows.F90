#include "binding.inc"
! One-sided communication.

subroutine windows
  USE_MPI
  use checks
  use, intrinsic :: iso_c_binding
  implicit none
  INCLUDE_MPI
  integer, parameter :: bytes = 4
  integer :: memory(10), values(10), got, i, next, before, ierror, unit, keyval, length
  integer(MPI_ADDRESS_KIND) :: zero = 0, value, size_of_all
  logical :: flag
  character(len=MPI_MAX_OBJECT_NAME) :: title
  WINDOW :: win
  REQUEST :: r
  GROUP :: group
  COMM :: node
  ERRHANDLER :: handler
#ifdef MPI_F08
  type(c_ptr) :: base
  integer(MPI_ADDRESS_KIND) :: wide_unit
#else
  integer(MPI_ADDRESS_KIND) :: base
#endif

  call start('one-sided communication')
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)
  memory = -1
  size_of_all = 10 * bytes
  call MPI_Win_create(memory, size_of_all, bytes, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierror)
  values = [(100 * rank + i, i=1, 10)]
  call MPI_Win_fence(MPI_MODE_NOPRECEDE, win, ierror)
  call MPI_Put(values, 10, MPI_INTEGER, next, zero, 10, MPI_INTEGER, win, ierror)
  call MPI_Win_fence(MPI_MODE_NOSUCCEED, win, ierror)
  call MPI_F_sync_reg(memory)
  call check(all(memory == [(100 * before + i, i=1, 10)]), 'put')
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_Win_lock_all(0, win, ierror)
  call MPI_Accumulate(1, 1, MPI_INTEGER, next, zero, 1, MPI_INTEGER, MPI_SUM, win, ierror)
  call MPI_Fetch_and_op(1, got, MPI_INTEGER, next, zero, MPI_SUM, win, ierror)
  call MPI_Win_flush(next, win, ierror)
  call check(got == 100 * rank + 2, 'fetch_and_op')
  values = 0
  call MPI_Rget(values, 10, MPI_INTEGER, next, zero, 10, MPI_INTEGER, win, r, ierror)
  call MPI_Wait(r, MPI_STATUS_IGNORE, ierror)
  call check(values(1) == 100 * rank + 3 .and. values(10) == 100 * rank + 10, 'rget')
  call MPI_Compare_and_swap(7, values(1), got, MPI_INTEGER, next, zero, win, ierror)
  call MPI_Win_unlock_all(win, ierror)
  call check(got == 100 * rank + 3, 'compare_and_swap')
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_F_sync_reg(memory)  ! others have changed it
  call check(memory(1) == 7, 'swapped')

  call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag, ierror)
  call check(flag .and. value == 10 * bytes, 'MPI_WIN_SIZE')
  call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag, ierror)
  call check(flag .and. value == bytes, 'MPI_WIN_DISP_UNIT')
  call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag, ierror)
  call check(flag .and. value == MPI_WIN_FLAVOR_CREATE, 'MPI_WIN_CREATE_FLAVOR')
  call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag, ierror)
  call MPI_Get_address(memory, zero, ierror)
  call check(flag .and. value == zero, 'MPI_WIN_BASE')
  zero = 0
  call MPI_Win_create_keyval(MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, keyval, zero, ierror)
  value = 12345678901_MPI_ADDRESS_KIND
  call MPI_Win_set_attr(win, keyval, value, ierror)
  value = 0
  call MPI_Win_get_attr(win, keyval, value, flag, ierror)
  call check(flag .and. value == 12345678901_MPI_ADDRESS_KIND, 'an attribute')
  call MPI_Win_free_keyval(keyval, ierror)
  call MPI_Win_set_name(win, 'halo', ierror)
  call MPI_Win_get_name(win, title, length, ierror)
  call check(title == 'halo' .and. length == 4, 'name')
  call MPI_Win_get_group(win, group, ierror)
  call MPI_Group_size(group, got, ierror)
  call check(got == ranks, 'group')
  call MPI_Group_free(group, ierror)
  call MPI_Win_get_errhandler(win, handler, ierror)
  call check(handler == MPI_ERRORS_ARE_FATAL, 'error handler')
  call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN, ierror)
  call MPI_Win_unlock_all(win, ierror)
  call MPI_Error_class(ierror, got, i)
  call check(got == MPI_ERR_RMA_SYNC, 'an error')
  call MPI_Win_free(win, ierror)
  call check(win == MPI_WIN_NULL, 'freed')

  call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node, ierror)
  size_of_all = bytes
  call MPI_Win_allocate_shared(size_of_all, bytes, MPI_INFO_NULL, node, base, win, ierror)
  size_of_all = 0
  call MPI_Win_shared_query(win, 0, size_of_all, unit, base, ierror)
  call check(size_of_all == bytes .and. unit == bytes, 'shared_query')
  call MPI_Win_free(win, ierror)
#ifdef MPI_F08
  ! The unit is an address: the procedures with large counts.
  wide_unit = bytes
  call MPI_Win_allocate_shared(size_of_all, wide_unit, MPI_INFO_NULL, node, base, win, ierror)
  size_of_all = 0
  wide_unit = 0
  call MPI_Win_shared_query(win, 0, size_of_all, wide_unit, base, ierror)
  call check(size_of_all == bytes .and. wide_unit == bytes, 'shared_query with a large unit')
  call MPI_Win_free(win, ierror)
  ! Only memory of one's own can be reached over every channel.
  call MPI_Comm_rank(node, i, ierror)
  call MPI_Win_allocate(size_of_all, wide_unit, MPI_INFO_NULL, node, base, win, ierror)
  call MPI_Win_shared_query(win, i, size_of_all, unit, base, ierror)
  call check(unit == bytes .and. c_associated(base), 'allocate with a large unit')
  call MPI_Win_free(win, ierror)
#endif
  call MPI_Win_allocate(size_of_all, bytes, MPI_INFO_NULL, node, base, win, ierror)
  call MPI_Win_free(win, ierror)
  call MPI_Comm_free(node, ierror)
end subroutine
