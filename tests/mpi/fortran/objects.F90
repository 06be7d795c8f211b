#include "binding.inc"
! Datatypes, groups and communicators, attributes, topologies.

subroutine types
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  DATATYPE :: column, pair, t, inner(2), many(40)
  integer :: a(5, 5), b(5, 5), n, position, ierror, integers(9), na, nd, combiner, i
  integer(kind=MPI_ADDRESS_KIND) :: places(2), lb, extent, addresses(9), big_position
  integer(kind=MPI_COUNT_KIND) :: bytes
  character(len=200) :: packed
  character(len=MPI_MAX_OBJECT_NAME) :: name_of_type
  type both
    sequence
    double precision :: x
    integer :: k, unused
  end type
  type(both) :: one, two

  call start('datatypes')
  a = reshape([(i, i=1, 25)], [5, 5])
  call MPI_Type_vector(5, 1, 5, MPI_INTEGER, column, ierror)  ! a row of a Fortran array
  call MPI_Type_commit(column, ierror)
  b = 0
  call MPI_Sendrecv(a(2, 1), 1, column, rank, 1, b(4, 1), 1, column, rank, 1, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, ierror)
  call check(all(b(4, :) == a(2, :)) .and. sum(b) == sum(a(2, :)), 'a vector')
  call MPI_Type_get_envelope(column, n, na, nd, combiner, ierror)
  call check(n == 3 .and. na == 0 .and. nd == 1 .and. combiner == MPI_COMBINER_VECTOR, 'envelope')
  call MPI_Type_get_contents(column, 9, 9, 2, integers, addresses, inner, ierror)
  call check(all(integers(1:3) == [5, 1, 5]) .and. inner(1) == MPI_INTEGER, 'contents')

  one%x = 2.5d0
  one%k = 42
  two = both(0d0, 0, 0)
  call MPI_Get_address(one%x, places(1), ierror)
  call MPI_Get_address(one%k, places(2), ierror)
  places = [places(1) - places(1), MPI_Aint_diff(places(2), places(1))]
  call MPI_Type_create_struct(2, [1, 1], places, [MPI_DOUBLE_PRECISION, MPI_INTEGER], pair, ierror)
  call MPI_Type_create_resized(pair, 0_MPI_ADDRESS_KIND, 16_MPI_ADDRESS_KIND, t, ierror)
  call MPI_Type_commit(t, ierror)
  call MPI_Sendrecv(one, 1, t, rank, 1, two, 1, t, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  call check(two%x == 2.5d0 .and. two%k == 42, 'a structure')
  call MPI_Type_get_extent(t, lb, extent, ierror)
  call check(lb == 0 .and. extent == 16, 'extent')
  call MPI_Type_size_x(t, bytes, ierror)
  call check(bytes == 12, 'size')
  call MPI_Type_set_name(t, 'both ', ierror)
  call MPI_Type_get_name(t, name_of_type, n, ierror)
  call check(name_of_type == 'both' .and. n == 4, 'name')
  call MPI_Type_free(pair, ierror)
  call MPI_Type_free(t, ierror)
  call check(t == MPI_DATATYPE_NULL, 'freed')

  ! Absolute addresses, from MPI_BOTTOM.
  call MPI_Get_address(a, places(1), ierror)
  call MPI_Type_create_hindexed(1, [25], places(1:1), MPI_INTEGER, t, ierror)
  call MPI_Type_commit(t, ierror)
  b = 0
  call MPI_Sendrecv(MPI_BOTTOM, 1, t, rank, 1, b, 25, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  call check(all(a == b), 'MPI_BOTTOM')
  call MPI_Type_free(t, ierror)

  call MPI_Type_create_subarray(2, [5, 5], [2, 2], [1, 3], MPI_ORDER_FORTRAN, MPI_INTEGER, t, ierror)
  call MPI_Type_commit(t, ierror)
  position = 0
  call MPI_Pack(a, 1, t, packed, 200, position, MPI_COMM_WORLD, ierror)
  call MPI_Pack_size(4, MPI_INTEGER, MPI_COMM_WORLD, n, ierror)
  call check(position == 16 .and. n >= 16, 'packed')
  position = 0
  integers = 0
  call MPI_Unpack(packed, 200, position, integers, 4, MPI_INTEGER, MPI_COMM_WORLD, ierror)
  call check(all(integers(1:4) == [a(2, 4), a(3, 4), a(2, 5), a(3, 5)]), 'a part of an array')
  call MPI_Type_free(t, ierror)
  big_position = 0
  call MPI_Pack_external('external32', a, 3, MPI_INTEGER, packed, 200_MPI_ADDRESS_KIND, big_position, ierror)
  call check(big_position == 12 .and. ichar(packed(4:4)) == 1, 'external32')
  call MPI_Pack_external_size('external32 ', 3, MPI_INTEGER, extent, ierror)
  call check(extent == 12, 'size in external32')

  many = MPI_INTEGER  ! more than fit on the stack in the library
  call MPI_Type_create_struct(40, [(1, i=1, 40)], [(int(4 * i, MPI_ADDRESS_KIND), i=1, 40)], many, t, ierror)
  call MPI_Type_size(t, n, ierror)
  call check(n == 160, 'many components')
  call MPI_Type_dup(t, pair, ierror)
  call MPI_Type_free(pair, ierror)
  call MPI_Type_free(t, ierror)
#ifndef MPI_F08
  call MPI_Type_struct(2, [1, 1], [0, 8], [MPI_DOUBLE_PRECISION, MPI_INTEGER], t, ierror)
  call MPI_Type_extent(t, n, ierror)
  call check(n == 16, 'MPI_Type_struct, MPI_Type_extent')
  call MPI_Type_lb(t, n, ierror)
  call check(n == 0, 'MPI_Type_lb')
  call MPI_Type_free(t, ierror)
  call MPI_Type_hvector(2, 1, 12, MPI_INTEGER, t, ierror)
  call MPI_Type_ub(t, n, ierror)
  call check(n == 16, 'MPI_Type_hvector, MPI_Type_ub')
  call MPI_Type_free(t, ierror)
#endif
  call MPI_Type_free(column, ierror)
end subroutine

subroutine fortran_types
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  DATATYPE :: t, again
  integer :: n, na, nd, combiner, ierror, contents(2)
  integer(kind=MPI_ADDRESS_KIND) :: none(1)
  DATATYPE :: no_types(1)
  integer, parameter :: wide = selected_real_kind(20), long = selected_int_kind(12)
  real(wide) :: x, y
  integer(long) :: k, total
  logical :: flag, all_true

  call start('types of Fortran')
  call MPI_Type_create_f90_real(20, MPI_UNDEFINED, t, ierror)
  call MPI_Type_create_f90_real(20, MPI_UNDEFINED, again, ierror)
  call check(t == again, 'the same arguments, the same type')
  call MPI_Type_size(t, n, ierror)
  call check(n == storage_size(x) / 8, 'size of a REAL of 20 digits')
  x = 1.0_wide / 3
  call MPI_Allreduce(x, y, 1, t, MPI_MAX, MPI_COMM_WORLD, ierror)
  call check(x == y, 'MPI_MAX of it')
  call MPI_Type_get_envelope(t, n, na, nd, combiner, ierror)
  call check(combiner == MPI_COMBINER_F90_REAL .and. n == 2, 'envelope')
  call MPI_Type_get_contents(t, 2, 0, 0, contents, none, no_types, ierror)
  call check(contents(1) == 20 .and. contents(2) == MPI_UNDEFINED, 'contents')
  call MPI_Type_create_f90_integer(12, t, ierror)
  k = 10_long**12
  call MPI_Allreduce(k, total, 1, t, MPI_SUM, MPI_COMM_WORLD, ierror)
  call check(total == k * ranks, 'sum of INTEGERs of 12 digits')
  call MPI_Type_create_f90_complex(15, 300, t, ierror)
  call MPI_Type_size(t, n, ierror)
  call check(n == 16, 'COMPLEX')
  call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, t, ierror)
  call check(t == MPI_REAL8, 'MPI_Type_match_size')
#ifndef MPIF_H
  call MPI_Sizeof(x, n, ierror)
  call check(n == 16, 'MPI_Sizeof, REAL(16)')
  call MPI_Sizeof([1, 2, 3], n, ierror)
  call check(n == 4, 'MPI_Sizeof, an array')
  call MPI_Sizeof((1d0, 2d0), n, ierror)
  call check(n == 16, 'MPI_Sizeof, COMPLEX')
  call PMPI_Sizeof(.true., n, ierror)
  call check(n == 4, 'MPI_Sizeof, LOGICAL')
#endif
  flag = rank == 0
  call MPI_Allreduce(flag, all_true, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierror)
  call check(all_true .eqv. .true., 'MPI_LOR')
  call MPI_Allreduce(flag, all_true, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierror)
  call check(all_true .eqv. (ranks == 1), 'MPI_LAND')
end subroutine

subroutine groups
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  GROUP :: world, some, other
  COMM :: half, inter, both, node
  integer :: n, ierror, ranges(3, 1), there(2), result, local
  logical :: flag

  call start('groups and communicators')
  call MPI_Comm_group(MPI_COMM_WORLD, world, ierror)
  ranges(:, 1) = [0, ranks - 1, 2]
  call MPI_Group_range_incl(world, 1, ranges, some, ierror)
  call MPI_Group_size(some, n, ierror)
  call check(n == (ranks + 1) / 2, 'a range')
  call MPI_Group_translate_ranks(some, 1, [0], world, there, ierror)
  call check(there(1) == 0, 'translated')
  call MPI_Group_difference(world, some, other, ierror)
  call MPI_Group_size(other, n, ierror)
  call check(n == ranks / 2, 'a difference')
  call MPI_Group_compare(world, some, result, ierror)
  call check(result == merge(MPI_IDENT, MPI_UNEQUAL, ranks == 1), 'compared')
  call MPI_Comm_create(MPI_COMM_WORLD, some, half, ierror)
  call check((half == MPI_COMM_NULL) .eqv. (mod(rank, 2) == 1), 'a communicator of the even ranks')
  if (half /= MPI_COMM_NULL) call MPI_Comm_free(half, ierror)
  call MPI_Group_free(other, ierror)
  call MPI_Group_free(some, ierror)
  call MPI_Group_free(world, ierror)
  call check(world == MPI_GROUP_NULL, 'freed')

  call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node, ierror)
  call MPI_Comm_size(node, n, ierror)
  call check(n >= 1, 'split by nodes')
  call MPI_Comm_free(node, ierror)
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half, ierror)
  call MPI_Comm_rank(half, local, ierror)
  call MPI_Comm_size(half, n, ierror)
  call check(rank == mod(rank, 2) + 2 * (n - 1 - local), 'split, in reverse order')
  if (ranks > 1) then
    call MPI_Intercomm_create(half, n - 1, MPI_COMM_WORLD, 1 - mod(rank, 2), 3, inter, ierror)
    call MPI_Comm_test_inter(inter, flag, ierror)
    call check(flag .eqv. .true., 'an intercommunicator')
    call MPI_Comm_remote_size(inter, n, ierror)
    call check(n == merge(ranks / 2, (ranks + 1) / 2, mod(rank, 2) == 0), 'remote size')
    call vectors_of_types(inter, n)
    call MPI_Intercomm_merge(inter, mod(rank, 2) == 1, both, ierror)
    call MPI_Comm_size(both, n, ierror)
    call MPI_Comm_rank(both, local, ierror)
    call check(n == ranks .and. (local < (ranks + 1) / 2 .eqv. mod(rank, 2) == 0), 'merged, the odd ranks last')
    call MPI_Comm_free(both, ierror)
    call MPI_Comm_free(inter, ierror)
  end if
  call MPI_Comm_free(half, ierror)
contains
  ! MPI_Alltoallw has a type for each rank of the remote group.
  subroutine vectors_of_types(inter, n)
    COMM, intent(in) :: inter
    integer, intent(in) :: n
    DATATYPE :: of(n)
    integer :: mine(n), theirs(n), i
    of = MPI_INTEGER
    mine = [(100 * rank + i, i=0, n - 1)]
    theirs = -1
    call MPI_Alltoallw(mine, [(1, i=1, n)], [(4 * i, i=0, n - 1)], of, &
                       theirs, [(1, i=1, n)], [(4 * i, i=0, n - 1)], of, inter, ierror)
    call check(all(theirs >= 0) .and. all(mod(theirs, 100) == theirs(1) - 100 * (theirs(1) / 100)), 'MPI_Alltoallw')
  end subroutine
end subroutine

subroutine attributes
  USE_MPI
  use checks
  use callbacks
  implicit none
  INCLUDE_MPI
  COMM :: one, two
  DATATYPE :: t
  integer(kind=MPI_ADDRESS_KIND) :: value, extra
  integer :: keyval, ierror, code, class, small, round
  logical :: flag

  call start('attributes')
  value = 0
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierror)
  call check(flag .and. value >= 32767, 'MPI_TAG_UB')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, value, flag, ierror)
  call check(flag .and. (value == 0 .or. value == 1), 'MPI_WTIME_IS_GLOBAL')
  call MPI_Comm_dup(MPI_COMM_SELF, one, ierror)
  extra = 2_8**40
  call MPI_Comm_create_keyval(copy_comm, delete_comm, keyval, extra, ierror)
  call MPI_Comm_get_attr(one, keyval, value, flag, ierror)
  call check(.not. flag, 'no attribute')
  do round = 1, 600  ! more than one piece of memory of the library
    call MPI_Comm_set_attr(one, keyval, -5000_MPI_ADDRESS_KIND - round, ierror)
  end do
  call check(deletions == 599, 'the delete function')
  call MPI_Comm_get_attr(one, keyval, value, flag, ierror)
  call check(flag .and. value == -5600, 'a negative value')
  call c_attribute(one, keyval, value)
  call check(value == -5600, 'C sees the value')
  call MPI_Comm_dup(one, two, ierror)
  call MPI_Comm_get_attr(two, keyval, value, flag, ierror)
  call check(copies == 1 .and. flag .and. value == extra - 5600, 'the copy function')
  call c_set_attribute(two, keyval)
  call MPI_Comm_get_attr(two, keyval, value, flag, ierror)
  call check(flag .and. value == 123456, 'what C has set')
  call MPI_Comm_set_errhandler(one, MPI_ERRORS_RETURN, ierror)
  call MPI_Comm_set_attr(one, keyval, -13_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_delete_attr(one, keyval, code)
  call MPI_Error_class(code, class, ierror)
  call check(class == MPI_ERR_OTHER, 'the delete function refuses')
  call MPI_Comm_free_keyval(keyval, ierror)
  call check(keyval == MPI_KEYVAL_INVALID, 'freed')
  call MPI_Comm_free(two, ierror)

  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, extra, ierror)
  call MPI_Comm_dup(MPI_COMM_SELF, one, ierror)
  call MPI_Comm_set_attr(one, keyval, 7_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_dup(one, two, ierror)
  call MPI_Comm_free(one, ierror)
  call MPI_Comm_get_attr(two, keyval, value, flag, ierror)
  call check(flag .and. value == 7, 'MPI_COMM_DUP_FN')
  call MPI_Comm_free(two, ierror)
  call MPI_Comm_free_keyval(keyval, ierror)

  call MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, keyval, extra, ierror)
  call MPI_Type_contiguous(3, MPI_REAL, t, ierror)
  call MPI_Type_set_attr(t, keyval, 9_MPI_ADDRESS_KIND, ierror)
  call MPI_Type_get_attr(t, keyval, value, flag, ierror)
  call check(flag .and. value == 9, 'of a datatype')
  call MPI_Type_delete_attr(t, keyval, ierror)
  call MPI_Type_get_attr(t, keyval, value, flag, ierror)
  call check(.not. flag, 'deleted')
  call MPI_Type_free_keyval(keyval, ierror)
  call MPI_Type_free(t, ierror)
#ifndef MPI_F08
  call MPI_Keyval_create(copy_old, MPI_NULL_DELETE_FN, keyval, -3, ierror)
  call MPI_Comm_dup(MPI_COMM_SELF, one, ierror)
  call MPI_Attr_put(one, keyval, 5, ierror)
  call MPI_Comm_dup(one, two, ierror)
  call MPI_Attr_get(two, keyval, small, flag, ierror)
  call check(flag .and. small == -15, 'the names of MPI-1')
  call MPI_Attr_delete(two, keyval, ierror)
  call MPI_Attr_get(two, keyval, small, flag, ierror)
  call check(.not. flag, 'MPI_Attr_delete')
  call MPI_Keyval_free(keyval, ierror)
  call MPI_Comm_free(one, ierror)
  call MPI_Comm_free(two, ierror)
#endif
end subroutine

subroutine topologies
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  COMM :: grid, line, graph
  integer :: dims(2), coords(2), got(2), source, dest, n, kind_of, ierror, i
  integer, allocatable :: index(:), edges(:), neighbors(:)
  logical :: periods(2)

  call start('topologies')
  dims = 0
  call MPI_Dims_create(ranks, 2, dims, ierror)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.true., .false.], .false., grid, ierror)
  call MPI_Cart_get(grid, 2, got, periods, coords, ierror)
  call check(all(got == dims) .and. (periods(1) .eqv. .true.) .and. (periods(2) .eqv. .false.), 'a grid')
  call MPI_Cart_rank(grid, coords, n, ierror)
  call check(n == rank, 'rank by coordinates')
  call MPI_Cart_coords(grid, rank, 2, got, ierror)
  call check(all(got == coords), 'coordinates count from 0')
  call MPI_Cart_shift(grid, 1, 1, source, dest, ierror)
  call check(merge(dest == MPI_PROC_NULL, dest == rank + 1, coords(2) == dims(2) - 1), &
             'a shift, dimension 1 of 0 and 1')
  call MPI_Cartdim_get(grid, n, ierror)
  call check(n == 2, 'dimensions')
  call MPI_Cart_sub(grid, [.false., .true.], line, ierror)
  call MPI_Comm_size(line, n, ierror)
  call check(n == dims(2), 'a part of the grid')
  call MPI_Topo_test(grid, kind_of, ierror)
  call check(kind_of == MPI_CART, 'kind')
  call MPI_Comm_free(line, ierror)
  call MPI_Comm_free(grid, ierror)

  ! A ring, as a graph.
  allocate (index(ranks), edges(ranks), neighbors(ranks))
  index = [(i, i=1, ranks)]
  edges = [(modulo(i, ranks), i=1, ranks)]
  call MPI_Graph_create(MPI_COMM_WORLD, ranks, index, edges, .false., graph, ierror)
  call MPI_Graph_neighbors_count(graph, rank, n, ierror)
  call MPI_Graph_neighbors(graph, rank, n, neighbors, ierror)
  call check(n == 1 .and. neighbors(1) == modulo(rank + 1, ranks), 'a graph')
  call MPI_Comm_free(graph, ierror)
end subroutine
