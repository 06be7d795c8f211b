#include "binding.inc"
! What MPI-4 and later have: persistent collectives, neighbours, partitioned communication, sessions, and, in
! module mpi_f08, large counts.

subroutine persistent_and_neighbors
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer :: x, y, i, run, ierror, left, right, in_degree, out_degree, got(2), got_weights(2), sent(2), counts(2)
  integer :: mine(2), all_of(2)
  integer(kind=MPI_ADDRESS_KIND) :: places(2)
  logical :: weighted, arrived
  COMM :: ring, copy
  DATATYPE :: of(2), pair
  REQUEST :: r(2)

  call start('persistent collectives')
  call MPI_Allreduce_init(x, y, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, r(1), ierror)
  do run = 1, 3
    x = rank + run
    call MPI_F_sync_reg(x)
    call MPI_Start(r(1), ierror)
    call MPI_Wait(r(1), MPI_STATUS_IGNORE, ierror)
    call MPI_F_sync_reg(y)
    call check(y == ranks * (ranks - 1) / 2 + run * ranks, 'sum of a run')
  end do
  call MPI_Request_free(r(1), ierror)

  call start('distributed graphs and their neighbours')
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, [left, right], MPI_UNWEIGHTED, 2, [left, right], &
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, .false., ring, ierror)
  call MPI_Dist_graph_neighbors_count(ring, in_degree, out_degree, weighted, ierror)
  call check(in_degree == 2 .and. out_degree == 2 .and. .not. weighted, 'degrees')
  call MPI_Dist_graph_neighbors(ring, 2, got, MPI_UNWEIGHTED, 2, sent, got_weights, ierror)
  call check(all(got == [left, right]) .and. all(sent == got) .and. all(got_weights == 1), 'neighbours')
  all_of = -1
  call MPI_Neighbor_allgather(rank, 1, MPI_INTEGER, all_of, 1, MPI_INTEGER, ring, ierror)
  call check(all(all_of == [left, right]), 'allgather')
  mine = [10 * rank, 10 * rank]
  counts = 1
  places = [4, 0]
  of = MPI_INTEGER
  all_of = -1
  call MPI_Neighbor_alltoallw(mine, counts, places, of, all_of, counts, places, of, ring, ierror)
  call check(all(all_of == [10 * right, 10 * left]), 'alltoallw')
  call MPI_Comm_idup(ring, copy, r(1), ierror)
  call MPI_Wait(r(1), MPI_STATUS_IGNORE, ierror)
  call MPI_Topo_test(copy, i, ierror)
  call check(i == MPI_DIST_GRAPH, 'topology of a duplicate')
  call MPI_Comm_free(copy, ierror)
  call MPI_Comm_free(ring, ierror)
  call MPI_Dist_graph_create(MPI_COMM_WORLD, 1, [rank], [1], [right], [rank + 1], MPI_INFO_NULL, .false., ring, ierror)
  call MPI_Dist_graph_neighbors(ring, 1, got, got_weights, 1, sent, MPI_UNWEIGHTED, ierror)
  call check(got(1) == left .and. got_weights(1) == left + 1 .and. sent(1) == right, 'edges with weights')
  call MPI_Comm_free(ring, ierror)

  call start('partitioned communication and MPI_Isendrecv')
  call MPI_Psend_init(mine, 2, 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, MPI_INFO_NULL, r(1), ierror)
  call MPI_Precv_init(all_of, 1, 2, MPI_INTEGER, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL, r(2), ierror)
  all_of = -1
  call MPI_Startall(2, r, ierror)
  call MPI_Pready_list(1, [1], r(1), ierror)
  call MPI_Pready(0, r(1), ierror)
  arrived = .false.
  do while (.not. arrived)
    call MPI_Parrived(r(2), 0, arrived, ierror)
  end do
  call MPI_F_sync_reg(all_of)
  call check(all(all_of == 10 * left), 'partitions')
  call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, ierror)
  call MPI_Request_free(r(1), ierror)
  call MPI_Request_free(r(2), ierror)
  call MPI_Isendrecv(mine, 2, MPI_INTEGER, left, 1, all_of, 2, MPI_INTEGER, right, 1, MPI_COMM_WORLD, r(1), ierror)
  call MPI_Wait(r(1), MPI_STATUS_IGNORE, ierror)
  call MPI_F_sync_reg(all_of)
  call check(all(all_of == 10 * right), 'exchange')
  call MPI_Type_get_value_index(MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, pair, ierror)
  call check(pair == MPI_2DOUBLE_PRECISION, 'pair of types')
end subroutine

subroutine sessions_and_buffers
  USE_MPI
  use, intrinsic :: iso_c_binding, only: c_ptr
  use checks
  implicit none
  INCLUDE_MPI
  integer :: sets, length, size, ierror, x, space(100)
  character(len=32) :: set, value
  logical :: flag
  SESSION :: s
  GROUP :: everybody
  COMM :: c
  INFO :: i
#ifdef MPI_F08
  type(c_ptr) :: detached
#else
  integer :: detached
#endif

  call start('sessions')
  call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, s, ierror)
  call MPI_Session_get_num_psets(s, MPI_INFO_NULL, sets, ierror)
  call check(sets == 2, 'number of process sets')
  length = 0
  call MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, length, set, ierror)
  call check(length == 11, 'length of a name')
  call MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, length, set, ierror)
  call check(set == 'mpi://WORLD', 'name of a process set')
  call MPI_Session_get_pset_info(s, 'mpi://SELF', i, ierror)
  call MPI_Info_get(i, 'mpi_size', 32, value, flag, ierror)
  call check(flag .and. value == '1', 'size of a process set')
  call MPI_Info_free(i, ierror)
  call MPI_Group_from_session_pset(s, 'mpi://WORLD', everybody, ierror)
  call MPI_Comm_create_from_group(everybody, 'tag', MPI_INFO_NULL, MPI_ERRORS_RETURN, c, ierror)
  call MPI_Comm_size(c, size, ierror)
  call check(size == ranks, 'communicator of a group')
  call MPI_Group_free(everybody, ierror)

  call start('the buffer of a communicator')
  call MPI_Comm_attach_buffer(c, space, 400, ierror)
  call MPI_Bsend(rank, 1, MPI_INTEGER, mod(rank + 1, ranks), 0, c, ierror)
  call check(ierror == MPI_SUCCESS, 'a send from the buffer')
  call MPI_Recv(x, 1, MPI_INTEGER, mod(rank + ranks - 1, ranks), 0, c, MPI_STATUS_IGNORE, ierror)
  call check(x == mod(rank + ranks - 1, ranks), 'its data')
  call MPI_Comm_flush_buffer(c, ierror)
  size = -1
  call MPI_Comm_detach_buffer(c, detached, size, ierror)
  call check(size == 400, 'size of the buffer')
  call MPI_Comm_free(c, ierror)
  call MPI_Session_finalize(s, ierror)
  call check(s == MPI_SESSION_NULL, 'end of the session')
end subroutine

#ifdef MPI_F08
subroutine large_counts
  use mpi_f08
  use checks
  implicit none
  integer(kind=MPI_COUNT_KIND), parameter :: one = 1, many = 2_MPI_COUNT_KIND**33
  integer(kind=MPI_COUNT_KIND) :: count, integers, addresses, counts, types, contents(1), ones(ranks)
  integer(kind=MPI_ADDRESS_KIND) :: places(ranks)
  integer :: x, i, few, combiner, left, right, all_of(ranks), none(1), section(2, 4)
  type(MPI_Datatype) :: long, of(1)
  type(MPI_Request) :: r
  type(MPI_Status) :: s
  type(MPI_Op) :: add
  procedure(MPI_User_function_c) :: add_large

  call start('large counts')
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  call MPI_Irecv(x, one, MPI_INTEGER, left, 5, MPI_COMM_WORLD, r)
  call MPI_Send(rank, one, MPI_INTEGER, right, 5, MPI_COMM_WORLD)
  call MPI_Wait(r, s)
  call check(x == left, 'message')
  call MPI_Get_count(s, MPI_INTEGER, count)
  call check(count == 1, 'its count')
  section = -1
  call MPI_Irecv(section(1, :), 4_MPI_COUNT_KIND, MPI_INTEGER, left, 6, MPI_COMM_WORLD, r)
  call MPI_Send([rank, rank, rank, rank], 4_MPI_COUNT_KIND, MPI_INTEGER, right, 6, MPI_COMM_WORLD)
  call MPI_Wait(r, MPI_STATUS_IGNORE)
  call check(all(section(1, :) == left) .and. all(section(2, :) == -1), 'a section')
  call MPI_Type_contiguous(many, MPI_BYTE, long)
  call MPI_Type_size(long, count)
  call check(count == many, 'size of a type')
  call MPI_Type_size(long, few)
  call check(few == MPI_UNDEFINED, 'its size as an INTEGER')
  call MPI_Type_get_envelope(long, integers, addresses, counts, types, combiner)
  call check(counts == 1 .and. types == 1 .and. combiner == MPI_COMBINER_CONTIGUOUS, 'its envelope')
  call MPI_Type_get_contents(long, integers, addresses, counts, types, none, places, contents, of)
  call check(contents(1) == many .and. of(1) == MPI_BYTE, 'its contents')
  call MPI_Type_free(long)
  ones = 1
  places = [(i, i=0, ranks - 1)]
  all_of = -1
  call MPI_Allgatherv(rank, one, MPI_INTEGER, all_of, ones, places, MPI_INTEGER, MPI_COMM_WORLD)
  call check(all(all_of == [(i, i=0, ranks - 1)]), 'allgatherv')
  call MPI_Op_create_c(add_large, .true., add)
  call MPI_Allreduce(rank, x, one, MPI_INTEGER, add, MPI_COMM_WORLD)
  call check(x == ranks * (ranks - 1) / 2, 'reduction by a function with large counts')
  call MPI_Op_free(add)
end subroutine

subroutine add_large(in, inout, len, datatype)
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  type(c_ptr), value :: in, inout
  integer(kind=MPI_COUNT_KIND) :: len
  type(MPI_Datatype) :: datatype
  integer, pointer :: a(:), b(:)
  call c_f_pointer(in, a, [len])
  call c_f_pointer(inout, b, [len])
  if (datatype == MPI_INTEGER) b = a + b
end subroutine
#endif
