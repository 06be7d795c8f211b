#include "binding.inc"
! Collectives, reductions, C's side, and what only module mpi_f08 has.

subroutine movement
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer :: x, ierror, i, mine(ranks), all_of(ranks), counts(ranks), places(ranks)
  DATATYPE :: of(ranks)
  REQUEST :: r

  call start('collectives')
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  x = merge(7, 0, rank == 0)
  call MPI_Bcast(x, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
  call check(x == 7, 'broadcast')
  all_of = -1
  call MPI_Gather(rank, 1, MPI_INTEGER, all_of, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
  call check(rank /= 0 .or. all(all_of == [(i, i=0, ranks - 1)]), 'gather')
  call MPI_Scatter(all_of, 1, MPI_INTEGER, x, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
  call check(x == rank, 'scatter')
  all_of = -1
  all_of(rank + 1) = rank
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all_of, 1, MPI_INTEGER, MPI_COMM_WORLD, ierror)
  call check(all(all_of == [(i, i=0, ranks - 1)]), 'MPI_IN_PLACE')
  counts = 1
  places = [(ranks - 1 - i, i=0, ranks - 1)]
  call MPI_Allgatherv(rank, 1, MPI_INTEGER, all_of, counts, places, MPI_INTEGER, MPI_COMM_WORLD, ierror)
  call check(all(all_of == [(i, i=ranks - 1, 0, -1)]), 'allgatherv')
  mine = [(100 * rank + i, i=0, ranks - 1)]
  call MPI_Alltoall(mine, 1, MPI_INTEGER, all_of, 1, MPI_INTEGER, MPI_COMM_WORLD, ierror)
  call check(all(all_of == [(100 * i + rank, i=0, ranks - 1)]), 'alltoall')
  of = MPI_INTEGER
  all_of = -1
  call MPI_Alltoallw(mine, counts, 4 * places, of, all_of, counts, 4 * places, of, MPI_COMM_WORLD, ierror)
  call check(all(all_of == [(100 * i + ranks - 1 - rank, i=ranks - 1, 0, -1)]), 'alltoallw')
  all_of = -1
  call MPI_Ialltoallw(mine, counts, 4 * places, of, all_of, counts, 4 * places, of, MPI_COMM_WORLD, r, ierror)
  call MPI_Wait(r, MPI_STATUS_IGNORE, ierror)
  call MPI_F_sync_reg(all_of)
  call check(all(all_of == [(100 * i + ranks - 1 - rank, i=ranks - 1, 0, -1)]), 'ialltoallw')
  call MPI_Alltoallw(MPI_IN_PLACE, counts, places, of, all_of, counts, 4 * places, of, MPI_COMM_WORLD, ierror)
  call check(sum(all_of) == sum(mine), 'alltoallw in place')
  x = merge(8, 0, rank == ranks - 1)
  call MPI_Ibcast(x, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, r, ierror)
  call MPI_Wait(r, MPI_STATUS_IGNORE, ierror)
  call MPI_F_sync_reg(x)
  call check(x == 8, 'nonblocking broadcast')
  call MPI_Ibarrier(MPI_COMM_WORLD, r, ierror)
  call MPI_Wait(r, MPI_STATUS_IGNORE, ierror)
end subroutine

subroutine reductions
  USE_MPI
  use checks
  use callbacks
  implicit none
  INCLUDE_MPI
  integer :: x, y, ierror, pairs(2), found(2), i, counts(ranks), many(ranks)
  double precision :: d
  complex :: c
  OP :: op_of_mine
  REQUEST :: r
  logical :: flag

  call start('reductions')
  call MPI_Allreduce(0.5d0 * rank, d, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  call check(d == 0.25d0 * ranks * (ranks - 1), 'sum')
  call MPI_Reduce((1.0, -1.0), c, 1, MPI_COMPLEX, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
  call check(rank /= 0 .or. c == cmplx(ranks, -ranks), 'sum of complex numbers')
  pairs = [-abs(rank - ranks / 2), rank]
  call MPI_Allreduce(pairs, found, 1, MPI_2INTEGER, MPI_MAXLOC, MPI_COMM_WORLD, ierror)
  call check(found(1) == 0 .and. found(2) == ranks / 2, 'MPI_MAXLOC')
  call MPI_Scan(1, x, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  call check(x == rank + 1, 'scan')
  counts = 1
  many = [(i, i=1, ranks)]
  call MPI_Reduce_scatter(many, x, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  call check(x == ranks * (rank + 1), 'reduce_scatter')
  call MPI_Op_create(larger, .true., op_of_mine, ierror)
  call MPI_Op_commutative(op_of_mine, flag, ierror)
  call check(flag, 'commutes')
  x = merge(-50, rank, rank == ranks - 1)
  call MPI_Allreduce(x, y, 1, MPI_INTEGER, op_of_mine, MPI_COMM_WORLD, ierror)
  call check(y == -50, 'an operation in Fortran')
  call check(ranks == 1 .or. seen_type == NUMBER(MPI_INTEGER) .or. seen_type == 0, 'the datatype that it gets')
  y = 3
  call MPI_Reduce_local(x, y, 1, MPI_INTEGER, op_of_mine, ierror)
  call check(seen_type == NUMBER(MPI_INTEGER), 'the datatype of MPI_Reduce_local')
  call MPI_Iallreduce(rank, y, 1, MPI_INTEGER, op_of_mine, MPI_COMM_WORLD, r, ierror)
  call MPI_Wait(r, MPI_STATUS_IGNORE, ierror)
  call MPI_F_sync_reg(y)
  call check(y == ranks - 1, 'a nonblocking reduction')
  call MPI_Op_free(op_of_mine, ierror)
  call check(op_of_mine == MPI_OP_NULL, 'freed')
end subroutine

subroutine with_c
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer :: n, again, ierror
  STATUS :: s
#ifdef MPI_F08
  integer :: old(MPI_STATUS_SIZE)
#endif

  call start('with C')
  call c_comm_size(MPI_COMM_WORLD, n, again)
  call check(n == ranks .and. again == NUMBER(MPI_COMM_WORLD), 'MPI_Comm_f2c, MPI_Comm_c2f')
  call c_type_size(MPI_DOUBLE_COMPLEX, n)
  call check(n == 16, 'MPI_Type_f2c')
  call c_tag(MPI_STATUS_IGNORE, n)
  call check(n == -1, 'MPI_F_STATUS_IGNORE')
  call MPI_Sendrecv(n, 1, MPI_INTEGER, rank, 42, again, 1, MPI_INTEGER, rank, 42, MPI_COMM_WORLD, s, ierror)
  call c_tag(s, n)
  call check(n == 42, 'MPI_Status_f2c, MPI_Status_c2f')
#ifdef MPI_F08
  call MPI_Status_f082f(s, old)
  call check(old(MPI_TAG) == 42, 'MPI_Status_f082f')
  old(MPI_TAG) = 43
  call MPI_Status_f2f08(old, s)
  call check(s%MPI_TAG == 43, 'MPI_Status_f2f08')
#endif
end subroutine

#ifdef MPI_F08
subroutine only_f08
  use mpi_f08
  use, intrinsic :: iso_c_binding
  use checks
  implicit none
  integer :: a(6, 4), b(6, 4), class, code, x, n
  type(MPI_Request) :: r
  type(MPI_Comm) :: mine
  type(c_ptr) :: memory
  integer, pointer :: in_memory(:)
  character(len=MPI_MAX_ERROR_STRING) :: text

  call start('only in mpi_f08')
  call MPI_Comm_dup(MPI_COMM_WORLD, mine)  ! no ierror
  call MPI_Comm_set_errhandler(mine, MPI_ERRORS_RETURN)
  a = rank
  a(2, :) = [1, 2, 3, 4]
  b = 0
  ! Blocking procedures get a copy of a section, and the copy goes back.
  call MPI_Sendrecv(a(2, :), 4, MPI_INTEGER, rank, 1, b(3, :), 4, MPI_INTEGER, rank, 1, mine, MPI_STATUS_IGNORE)
  call check(all(b(3, :) == [1, 2, 3, 4]) .and. sum(b) == 10, 'a section of an array')
  call MPI_Irecv(b(:, 2:3), 12, MPI_INTEGER, rank, 2, mine, r)
  call MPI_Send(a(:, 1:2), 12, MPI_INTEGER, rank, 2, mine)
  call MPI_Wait(r, MPI_STATUS_IGNORE)
  call check(all(b(:, 2:3) == a(:, 1:2)), 'a contiguous section, nonblocking')
  call MPI_Iallreduce(a(2, :), x, 1, MPI_INTEGER, MPI_SUM, mine, r, code)
  call MPI_Error_class(code, class)
  call MPI_Error_string(code, text, n)
  call check(class == MPI_ERR_BUFFER .and. index(text, 'MPI_SUBARRAYS_SUPPORTED') > 0 .and. r == MPI_REQUEST_NULL, &
             'a section whose elements are apart is refused, in nonblocking collectives')
  call sections_apart(mine)
  x = -1
  call MPI_Irecv(x, 1, MPI_INTEGER, rank, 4, mine, r)
  call MPI_Send(5, 1, MPI_INTEGER, rank, 4, mine)
  call MPI_Wait(r, MPI_STATUS_IGNORE)
  call check(x == 5, 'a scalar')
  call MPI_Ibcast(MPI_BOTTOM, 0, MPI_INTEGER, 0, mine, r)
  call MPI_Wait(r, MPI_STATUS_IGNORE)
  b(1, 1) = rank
  call MPI_Iallreduce(MPI_IN_PLACE, b, 1, MPI_INTEGER, MPI_SUM, mine, r)
  call MPI_Wait(r, MPI_STATUS_IGNORE)
  call check(b(1, 1) == ranks * (ranks - 1) / 2, 'MPI_IN_PLACE, nonblocking')
  call MPI_Alloc_mem(400_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory)
  call c_f_pointer(memory, in_memory, [100])
  in_memory = 3
  call check(sum(in_memory) == 300, 'MPI_Alloc_mem')
  call MPI_Free_mem(in_memory)
  call MPI_Comm_free(mine)
contains
  ! Sections whose elements are apart, nonblocking: what has arrived is the same as in a contiguous array.
  subroutine sections_apart(mine)
    type(MPI_Comm), intent(in) :: mine
    integer :: a(7, 6, 5), b(7, 6, 5), flat(210), i, count, class, code
    complex :: c(10)
    real :: parts(2, 5)
    type(MPI_Request) :: r(2)
    type(MPI_Status) :: s
    type(MPI_Datatype) :: pair
    a = reshape([(1000 * rank + i, i=1, 210)], [7, 6, 5])
    do count = 1, 4 * 2 * 5
      flat = -1
      call MPI_Irecv(flat, 210, MPI_INTEGER, rank, 3, mine, r(1))
      call MPI_Isend(a(1:7:2, 6:2:-3, :), count, MPI_INTEGER, rank, 3, mine, r(2))
      call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
      call MPI_F_sync_reg(flat)
      call check(same(flat, reshape(a(1:7:2, 6:2:-3, :), [40]), count), 'a section is sent')
    end do
    flat = [(i, i=1, 210)]
    do count = 1, 3 * 6 * 2
      b = 0
      call MPI_Irecv(b(2:7:2, :, 2:5:3), count, MPI_INTEGER, rank, 3, mine, r(1))
      call MPI_Send(flat, count, MPI_INTEGER, rank, 3, mine)
      call MPI_Wait(r(1), s)
      call MPI_F_sync_reg(b)
      call check(same(reshape(b(2:7:2, :, 2:5:3), [36]), flat, count) .and. sum(b) == count * (count + 1) / 2, &
                 'a section is received')
      call MPI_Get_count(s, MPI_INTEGER, i)
      call check(i == count, 'count of a section')
    end do
    ! Two items in an element, and a derived datatype; an item that is more than an element is refused.
    c = [(cmplx(i, -i), i=1, 10)]
    call MPI_Irecv(parts, 10, MPI_REAL, rank, 4, mine, r(1))
    call MPI_Isend(c(1:10:2), 10, MPI_REAL, rank, 4, mine, r(2))
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
    call MPI_F_sync_reg(parts)
    call check(all(parts(1, :) == [(real(i), i=1, 9, 2)]) .and. all(parts(2, :) == -parts(1, :)), 'parts of elements')
    call MPI_Type_contiguous(2, MPI_REAL, pair)
    call MPI_Type_commit(pair)
    parts = 0
    call MPI_Recv_init(parts, 10, MPI_REAL, rank, 5, mine, r(1))
    call MPI_Send_init(c(10:1:-3), 4, pair, rank, 5, mine, r(2))
    do i = 1, 2
      call MPI_Startall(2, r)
      call MPI_Waitall(2, r, MPI_STATUSES_IGNORE)
      call MPI_F_sync_reg(parts)
      call check(all(parts(1, 1:4) == [10., 7., 4., 1.]), 'a derived datatype, persistent')
    end do
    call MPI_Request_free(r(1))
    call MPI_Request_free(r(2))
    call MPI_Isend(flat(1:9:2), 2, pair, rank, 6, mine, r(1), code)
    call MPI_Error_class(code, class)
    call check(class == MPI_ERR_BUFFER, 'an item that is more than an element is refused')
    call MPI_Isend(flat(1:9:2), 6, MPI_INTEGER, rank, 6, mine, r(1), code)
    call MPI_Error_class(code, class)
    call check(class == MPI_ERR_BUFFER, 'more items than the section has are refused')
    call MPI_Isend(flat(1:9:2), -1, MPI_INTEGER, rank, 6, mine, r(1), code)
    call MPI_Error_class(code, class)
    call check(class == MPI_ERR_COUNT, 'a negative count')
    call MPI_Type_free(pair)
    flat = [(i, i=1, 210)]
    b = merge(a, 0, rank == 0)
    call MPI_Ibcast(b(1, :, 1), 6, MPI_INTEGER, 0, mine, r(1))
    call MPI_Wait(r(1), MPI_STATUS_IGNORE)
    call MPI_F_sync_reg(b)
    call check(all(b(1, :, 1) == [(7 * i + 1, i=0, 5)]), 'a section is broadcast')
  end subroutine

  logical function same(a, b, n)
    integer, intent(in) :: a(:), b(:), n
    same = all(a(:n) == b(:n))
  end function
end subroutine
#endif
