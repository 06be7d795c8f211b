! C = A x B, square matrices of single precision whose columns are distributed: the matrix product of MITMatlab
! (MPI-StarT, SC98, Table 4).
!
!   multiply [N]        N x N elements (default 1024)
!
! Each process has some columns of A, B and C. In a round for each process, that process broadcasts its columns of A,
! and all multiply them by those rows of their columns of B that belong to them. The elements are integers from -3
! to 3, so every sum is exact up to N = 1,800,000, and C has to be the same, bit for bit, as one call of SGEMM with
! the whole of A gives.
program multiply
  use, intrinsic :: iso_c_binding, only: c_double
  use mpi
  implicit none
  interface
    function communication_time() bind(c)
      import :: c_double
      real(c_double) :: communication_time
    end function
  end interface
  integer :: n, rank, ranks, first, columns, wrong, all_wrong, root, ierror
  real, allocatable :: a(:, :), b(:, :), c(:, :), panel(:, :)
  double precision :: begin, ignored, times(2), sums(2), slowest(1)
  character(16) :: argument

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  n = 1024
  call get_command_argument(1, argument)
  if (argument /= '') read (argument, *) n
  first = first_of(rank)
  columns = first_of(rank + 1) - first
  allocate (a(n, columns), b(n, columns), c(n, columns), panel(n, (n + ranks - 1) / ranks))
  call fill(a, first, 1)
  call fill(b, first, 2)
  c = 0
  panel = 0  ! pages that were never written would be found during the first broadcast

  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  ignored = communication_time()
  begin = MPI_Wtime()
  do root = 0, ranks - 1
    call add_product(root)
  end do
  times(1) = MPI_Wtime() - begin
  times(2) = communication_time()

  wrong = count_wrong()
  call MPI_Reduce(times(1:1), slowest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD, ierror)
  call MPI_Reduce(times, sums, 2, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
  call MPI_Allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (rank == 0) then
    if (all_wrong /= 0) print '(a, i0, a)', 'multiply: ', all_wrong, ' elements are wrong'
    if (all_wrong == 0) print '(a, f0.6, a, f0.2, a)', 'result: ', slowest, ' s, communication ', &
        100 * sums(2) / sums(1), ' %, right'
  end if
  call MPI_Finalize(ierror)
  if (all_wrong /= 0) error stop 1

contains

  ! The first column of a process, from 1 on.
  integer function first_of(owner)
    integer, intent(in) :: owner
    first_of = 1 + owner * (n / ranks) + min(owner, mod(n, ranks))
  end function

  ! Columns `from` and those that follow it: numbers that look like noise and depend on row, column and matrix alone.
  subroutine fill(matrix, from, which)
    real, intent(out) :: matrix(:, :)
    integer, intent(in) :: from, which
    integer :: row, column
    integer(8) :: state
    do column = 1, size(matrix, 2)
      state = 69621_8 * (from + column) + 16807_8 * which
      state = mod(state * state, 2147483647_8)  ! or neighbouring columns would be multiples of each other
      do row = 1, n
        state = mod(48271_8 * state, 2147483647_8)
        matrix(row, column) = real(mod(state / 64, 7_8) - 3)
      end do
    end do
  end subroutine

  ! What the columns of A that `owner` has contribute to C.
  subroutine add_product(owner)
    integer, intent(in) :: owner
    integer :: from, width
    from = first_of(owner)
    width = first_of(owner + 1) - from
    if (owner == rank) panel(:, 1:width) = a
    call MPI_Bcast(panel, n * width, MPI_REAL, owner, MPI_COMM_WORLD, ierror)
    call sgemm('N', 'N', n, columns, width, 1.0, panel, n, b(from, 1), n, 1.0, c, n)
  end subroutine

  ! Elements of C that a serial product has otherwise.
  integer function count_wrong()
    real, allocatable :: whole(:, :), expected(:, :)
    allocate (whole(n, n), expected(n, columns))
    call fill(whole, 1, 1)
    call sgemm('N', 'N', n, columns, n, 1.0, whole, n, b, n, 0.0, expected, n)
    count_wrong = count(c /= expected)
  end function

end program
