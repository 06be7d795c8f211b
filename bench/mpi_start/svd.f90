! The largest singular values of a random sparse matrix, and their vectors, with PARPACK: the singular value
! decomposition of MITMatlab (MPI-StarT, SC98, Table 5).
!
!   svd [N [M]]         N x N elements (default 10000), M of them in each column are not 0 (default 100)
!
! The columns of A are distributed. PARPACK's symmetric Lanczos method finds the largest eigenvalues of A'A, the
! squares of the singular values. For a product with A'A each process multiplies its columns by its part of the
! vector, MPI_Allreduce adds the results, and each process multiplies the sum by its columns, transposed.
!
! Process 0 then compares the values with those that LAPACK finds in the dense matrix (up to N = 1000), or serial
! ARPACK, and looks at the residual of each pair of vectors.
module sparse
  implicit none
  integer, parameter :: dp = kind(1d0)

  type :: Columns  ! of a matrix with n rows; element (i, j) of `value` is in row row(i, j)
    integer :: n
    integer, allocatable :: row(:, :)
    real(dp), allocatable :: value(:, :)
  end type

contains

  ! Columns first..last of the random matrix. A column is the same, whoever makes it.
  function make_columns(n, in_column, first, last) result(a)
    integer, intent(in) :: n, in_column, first, last
    type(Columns) :: a
    integer :: i, j
    integer(8) :: state
    a%n = n
    allocate (a%row(in_column, last - first + 1), a%value(in_column, last - first + 1))
    do j = 1, last - first + 1
      state = 69621_8 * (first + j)
      state = mod(state * state, 2147483647_8)  ! or neighbouring columns would be multiples of each other
      do i = 1, in_column
        state = mod(48271_8 * state, 2147483647_8)
        a%row(i, j) = int(mod(state / 64, int(n, 8))) + 1
        state = mod(48271_8 * state, 2147483647_8)
        a%value(i, j) = real(state, dp) / 2147483647
      end do
    end do
  end function

  ! y = A x, over these columns.
  subroutine multiply(a, x, y)
    type(Columns), intent(in) :: a
    real(dp), intent(in) :: x(*)
    real(dp), intent(out) :: y(a%n)
    integer :: i, j
    y = 0
    do j = 1, size(a%row, 2)
      do i = 1, size(a%row, 1)
        y(a%row(i, j)) = y(a%row(i, j)) + a%value(i, j) * x(j)
      end do
    end do
  end subroutine

  ! x = A' y
  subroutine multiply_transposed(a, y, x)
    type(Columns), intent(in) :: a
    real(dp), intent(in) :: y(a%n)
    real(dp), intent(out) :: x(*)
    integer :: i, j
    real(dp) :: total
    do j = 1, size(a%row, 2)
      total = 0
      do i = 1, size(a%row, 1)
        total = total + a%value(i, j) * y(a%row(i, j))
      end do
      x(j) = total
    end do
  end subroutine

end module

program svd
  use, intrinsic :: iso_c_binding, only: c_double
  use mpi
  use sparse
  implicit none
  interface
    function communication_time() bind(c)
      import :: c_double
      real(c_double) :: communication_time
    end function
  end interface
  integer, parameter :: kWanted = 5, kBasis = 20  ! singular values; Lanczos vectors
  real(dp), parameter :: kTolerance = 1d-10
  integer :: n, in_column, rank, ranks, first, last, ierror
  type(Columns) :: a
  real(dp), allocatable :: product(:), vectors(:, :)
  real(dp) :: values(kWanted), begin, ignored, times(2), sums(2), slowest(1), residual
  logical :: good

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  n = number(1, 10000)
  in_column = number(2, 100)
  first = 1 + rank * (n / ranks) + min(rank, mod(n, ranks))
  last = first + n / ranks - 1
  if (rank < mod(n, ranks)) last = last + 1
  a = make_columns(n, in_column, first, last)
  allocate (product(n), vectors(last - first + 1, kBasis))

  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  ignored = communication_time()
  begin = MPI_Wtime()
  call find_largest(.true., a, values, vectors)
  times(1) = MPI_Wtime() - begin
  times(2) = communication_time()

  residual = largest_residual()
  call MPI_Reduce(times(1:1), slowest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD, ierror)
  call MPI_Reduce(times, sums, 2, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
  good = .true.
  if (rank == 0) then
    good = is_right()
    if (good) print '(a, f0.6, a, f0.2, a)', 'result: ', slowest, ' s, communication ', 100 * sums(2) / sums(1), &
        ' %, right'
  end if
  call MPI_Finalize(ierror)
  if (.not. good) error stop 1

contains

  integer function number(position, otherwise)
    integer, intent(in) :: position, otherwise
    character(16) :: argument
    number = otherwise
    call get_command_argument(position, argument)
    if (argument /= '') read (argument, *) number
  end function

  ! The largest singular values, the largest one last, and the right vectors, as far as they belong to these columns:
  ! with PARPACK over all processes, or with ARPACK, if `part` is the whole matrix.
  subroutine find_largest(parallel, part, found, basis)
    logical, intent(in) :: parallel
    type(Columns), intent(in) :: part
    real(dp), intent(out) :: found(kWanted), basis(:, :)
    integer :: local, ido, info, iparam(11), ipntr(11)
    logical :: selected(kBasis)
    real(dp) :: work_l(kBasis * (kBasis + 8)), squares(kBasis)
    real(dp), allocatable :: residuals(:), work_d(:)
    local = size(part%row, 2)
    allocate (residuals(local), work_d(3 * local))
    residuals = 1  ! to begin with the same vector whatever the number of processes
    iparam = 0
    iparam(1) = 1     ! exact shifts
    iparam(3) = 3000  ! restarts
    iparam(7) = 1     ! A x = lambda x
    ido = 0
    info = 1
    do
      if (parallel) then
        call pdsaupd(MPI_COMM_WORLD, ido, 'I', local, 'LA', kWanted, kTolerance, residuals, kBasis, basis, local, &
            iparam, ipntr, work_d, work_l, size(work_l), info)
      else
        call dsaupd(ido, 'I', local, 'LA', kWanted, kTolerance, residuals, kBasis, basis, local, &
            iparam, ipntr, work_d, work_l, size(work_l), info)
      end if
      if (abs(ido) /= 1) exit
      call multiply(part, work_d(ipntr(1)), product)
      if (parallel) call MPI_Allreduce(MPI_IN_PLACE, product, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
      call multiply_transposed(part, product, work_d(ipntr(2)))
    end do
    if (info == 0) then
      if (parallel) then
        call pdseupd(MPI_COMM_WORLD, .true., 'A', selected, squares, basis, local, 0d0, 'I', local, 'LA', kWanted, &
            kTolerance, residuals, kBasis, basis, local, iparam, ipntr, work_d, work_l, size(work_l), info)
      else
        call dseupd(.true., 'A', selected, squares, basis, local, 0d0, 'I', local, 'LA', kWanted, &
            kTolerance, residuals, kBasis, basis, local, iparam, ipntr, work_d, work_l, size(work_l), info)
      end if
    end if
    if (info /= 0 .or. iparam(5) < kWanted) then
      print '(a, i0, a, i0, a)', 'svd: ARPACK found ', iparam(5), ' values; it ended with info ', info
      call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
    end if
    found = sqrt(squares(1:kWanted))
  end subroutine

  ! Of A' u = sigma v, where u = A v / sigma, relative to the largest sigma.
  real(dp) function largest_residual()
    integer :: j
    real(dp), allocatable :: back(:)
    real(dp) :: square, total
    allocate (back(size(vectors, 1)))
    largest_residual = 0
    do j = 1, kWanted
      call multiply(a, vectors(:, j), product)
      call MPI_Allreduce(MPI_IN_PLACE, product, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
      product = product / values(j)
      call multiply_transposed(a, product, back)
      square = sum((back - values(j) * vectors(:, j))**2)
      call MPI_Allreduce(square, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
      largest_residual = max(largest_residual, sqrt(total) / values(kWanted))
    end do
  end function

  ! As LAPACK or serial ARPACK finds the values in the whole matrix.
  logical function is_right()
    type(Columns) :: whole
    real(dp) :: expected(kWanted), difference
    whole = make_columns(n, in_column, 1, n)
    if (n <= 1000) then
      expected = dense_values(whole)
    else
      expected = serial_values(whole)
    end if
    difference = maxval(abs(values - expected) / expected)
    is_right = difference < 1d-8 .and. residual < 1d-6
    if (.not. is_right) print '(a, 2es10.2)', 'svd: relative difference from the serial values, residual:', &
        difference, residual
  end function

  function serial_values(whole) result(found)
    type(Columns), intent(in) :: whole
    real(dp) :: found(kWanted)
    real(dp), allocatable :: basis(:, :)
    allocate (basis(n, kBasis))
    call find_largest(.false., whole, found, basis)
  end function

  function dense_values(whole) result(found)
    type(Columns), intent(in) :: whole
    real(dp) :: found(kWanted), none(1)
    real(dp), allocatable :: dense(:, :), singular(:), work(:)
    integer :: i, j, info
    allocate (dense(n, n), singular(n), work(10 * n))
    dense = 0
    do j = 1, n
      do i = 1, in_column
        dense(whole%row(i, j), j) = dense(whole%row(i, j), j) + whole%value(i, j)
      end do
    end do
    call dgesvd('N', 'N', n, n, dense, n, singular, none, 1, none, 1, work, size(work), info)
    if (info /= 0) singular = 0  ! and is not right
    found = singular(kWanted:1:-1)
  end function

end program
