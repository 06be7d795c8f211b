#include "binding.inc"
! Strings, point-to-point communication, requests and errors.

subroutine strings
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  INFO :: i, copy
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
  character(len=MPI_MAX_PROCESSOR_NAME) :: host
  character(len=MPI_MAX_OBJECT_NAME) :: object
  character(len=6) :: short
  character(len=40) :: key, value
  integer :: n, ierror
  logical :: flag

  call start('strings')
  call MPI_Get_library_version(version, n, ierror)
  call check(n == len_trim(version) .and. index(version, 'MPI 5.0') > 0, 'library version')
  call MPI_Get_processor_name(host, n, ierror)
  call check(n == len_trim(host) .and. n > 0, 'name of the processor')
  call MPI_Comm_get_name(MPI_COMM_WORLD, object, n, ierror)
  call check(object == 'MPI_COMM_WORLD' .and. n == 14, 'a string is filled up with blanks')
  short = '######'
  call MPI_Comm_get_name(MPI_COMM_WORLD, short, n, ierror)
  call check(short == 'MPI_CO' .and. n == 14, 'a string is cut')
  call MPI_Comm_set_name(MPI_COMM_SELF, ' a name   ', ierror)
  call MPI_Comm_get_name(MPI_COMM_SELF, object, n, ierror)
  call check(object == ' a name' .and. n == 7, 'blanks on the left belong to a name')
  call MPI_Comm_set_name(MPI_COMM_SELF, repeat('x', 127), ierror)
  call MPI_Comm_get_name(MPI_COMM_SELF, object, n, ierror)
  call check(object == repeat('x', 127) .and. n == MPI_MAX_OBJECT_NAME, 'the longest name')
  call MPI_Error_string(MPI_ERR_COUNT, short, n, ierror)
  call check(n > 6 .and. short /= '', 'a sentence is cut')

  call MPI_Info_create(i, ierror)
  call MPI_Info_set(i, '  a key  ', ' a value ', ierror)
  call MPI_Info_set(i, 'second', repeat('v', 300), ierror)
  call MPI_Info_get_nkeys(i, n, ierror)
  call check(n == 2, 'two keys')
  call MPI_Info_get_nthkey(i, 0, key, ierror)
  call check(key == 'a key', 'blanks on either side are no part of a key')
  value = 'untouched'
  call MPI_Info_get(i, 'a key ', 40, value, flag, ierror)
  call check(flag .and. value == 'a value', 'a value')
  call MPI_Info_get(i, 'a key', 3, value, flag, ierror)
  call check(flag .and. value == 'a v', 'the beginning of a value')
  call MPI_Info_get_valuelen(i, 'second', n, flag, ierror)
  call check(flag .and. n == 300, 'length of a value')
  n = 40
  call MPI_Info_get_string(i, 'second', n, value, flag, ierror)
  call check(flag .and. n == 300 .and. value == repeat('v', 40), 'a value that is cut')
  n = 0
  value = 'untouched'
  call MPI_Info_get_string(i, 'a key', n, value, flag, ierror)
  call check(flag .and. n == 7 .and. value == 'untouched', 'only the length')
  call MPI_Info_get(i, 'none', 40, value, flag, ierror)
  call check(.not. flag .and. value == 'untouched', 'no such key')
  call MPI_Info_dup(i, copy, ierror)
  call MPI_Info_delete(copy, 'second', ierror)
  call MPI_Info_get_nkeys(copy, n, ierror)
  call check(n == 1, 'a copy')
  call MPI_Info_free(copy, ierror)
  call MPI_Info_free(i, ierror)
  call check(i == MPI_INFO_NULL, 'freed')
  call MPI_Info_create_env(i, ierror)
  call MPI_Info_get(i, 'command', 40, value, flag, ierror)
  call check(flag, 'MPI_Info_create_env')
  call MPI_Info_free(i, ierror)
  call MPI_Abi_get_fortran_info(i, ierror)
  call MPI_Info_get(i, 'mpi_integer_size', 40, value, flag, ierror)
  call check(flag .and. value == '4', 'size of INTEGER')
  call MPI_Info_free(i, ierror)
  call MPI_Abi_get_info(i, ierror)
  call MPI_Info_get(i, 'mpi_aint_size', 40, value, flag, ierror)
  call check(flag .and. value == '8', 'size of addresses')
  call MPI_Info_free(i, ierror)
end subroutine

subroutine messages
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  STATUS :: s
  REQUEST :: r(2)
  integer :: right, left, got(4), sent(4), n, ierror, i
  logical :: flag
  integer, allocatable :: buffer(:)
  integer(kind=MPI_COUNT_KIND) :: elements

  call start('point-to-point')
  right = modulo(rank + 1, ranks)
  left = modulo(rank - 1, ranks)
  sent = [(10 * rank + i, i=1, 4)]
  got = 0
  call MPI_Irecv(got, 4, MPI_INTEGER, left, 7, MPI_COMM_WORLD, r(1), ierror)
  call MPI_Send(sent, 3, MPI_INTEGER, right, 7, MPI_COMM_WORLD, ierror)
  call MPI_Wait(r(1), s, ierror)
  call MPI_F_sync_reg(got)
  call check(all(got(1:3) == [(10 * left + i, i=1, 3)]) .and. got(4) == 0, 'data')
  call check(SOURCE_OF(s) == left .and. TAG_OF(s) == 7, 'status')
  call check(r(1) == MPI_REQUEST_NULL, 'the request is gone')
  call MPI_Get_count(s, MPI_INTEGER, n, ierror)
  call check(n == 3, 'count')
  call MPI_Get_elements_x(s, MPI_INTEGER, elements, ierror)
  call check(elements == 3, 'elements')
  call MPI_Status_set_tag(s, 99, ierror)
  call MPI_Status_get_tag(s, n, ierror)
  call check(n == 99, 'a status is changed')
  call MPI_Test_cancelled(s, flag, ierror)
  call check(.not. flag, 'not cancelled')

  call MPI_Isend(sent, 4, MPI_INTEGER, right, 8, MPI_COMM_WORLD, r(1), ierror)
  call MPI_Probe(left, 8, MPI_COMM_WORLD, s, ierror)
  call MPI_Get_count(s, MPI_INTEGER, n, ierror)
  call check(n == 4, 'count of a probe')
  call MPI_Recv(got, 4, MPI_INTEGER, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  call MPI_Wait(r(1), MPI_STATUS_IGNORE, ierror)
  call check(all(got == [(10 * left + i, i=1, 4)]), 'MPI_STATUS_IGNORE')

  call MPI_Sendrecv(sent, 4, MPI_INTEGER, right, 1, got, 4, MPI_INTEGER, left, 1, MPI_COMM_WORLD, s, ierror)
  call check(got(2) == 10 * left + 2, 'sendrecv')
  call MPI_Sendrecv_replace(got, 4, MPI_INTEGER, left, 2, right, 2, MPI_COMM_WORLD, s, ierror)
  call check(all(got == sent), 'sendrecv_replace')

  allocate (buffer(1000))
  call MPI_Buffer_attach(buffer, 4000, ierror)
  call MPI_Bsend(sent, 4, MPI_INTEGER, right, 3, MPI_COMM_WORLD, ierror)
  call MPI_Recv(got, 4, MPI_INTEGER, left, 3, MPI_COMM_WORLD, s, ierror)
#ifndef MPI_F08
  call MPI_Buffer_detach(buffer, n, ierror)
  call check(n == 4000 .and. got(1) == 10 * left + 1, 'buffered send')
#else
  call detach
#endif

  call MPI_Recv_init(got, 4, MPI_INTEGER, left, 4, MPI_COMM_WORLD, r(1), ierror)
  call MPI_Send_init(sent, 4, MPI_INTEGER, right, 4, MPI_COMM_WORLD, r(2), ierror)
  do n = 1, 3
    sent(4) = n
    call MPI_F_sync_reg(sent)  ! or the compiler thinks that nobody reads it
    call MPI_Startall(2, r, ierror)
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, ierror)
    call MPI_F_sync_reg(got)
    call check(got(4) == n, 'persistent requests')
  end do
  call MPI_Request_free(r(1), ierror)
  call MPI_Request_free(r(2), ierror)
  call check(r(2) == MPI_REQUEST_NULL, 'freed')

  call MPI_Irecv(got, 4, MPI_INTEGER, left, 12345, MPI_COMM_WORLD, r(1), ierror)
  call MPI_Test(r(1), flag, s, ierror)
  call check(.not. flag, 'nothing has come')
  call MPI_Cancel(r(1), ierror)
  call MPI_Wait(r(1), s, ierror)
  call MPI_Test_cancelled(s, flag, ierror)
  call check(flag .eqv. .true., 'cancelled')
#ifdef MPI_F08
contains
  subroutine detach
    use, intrinsic :: iso_c_binding
    type(c_ptr) :: address
    integer, pointer :: again(:)
    call MPI_Buffer_detach(address, n)
    call c_f_pointer(address, again, [1000])
    call check(n == 4000 .and. got(1) == 10 * left + 1, 'buffered send')
    again(7) = 77
    call check(buffer(7) == 77, 'the buffer of MPI_Buffer_detach')
  end subroutine
#endif
end subroutine

subroutine many_requests
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer, parameter :: n = 50  ! more than fit on the stack in the library
  STATUS :: s
  STATUSES(n) :: all_statuses
  REQUEST :: r(n), mine(n)
  integer :: got(n), sent(n), i, which, outcount, done, indices(n), ierror, last
  logical :: flag, seen(n)

  call start('arrays of requests')
  do i = 1, n
    call MPI_Irecv(got(i), 1, MPI_INTEGER, modulo(rank - 1, ranks), i, MPI_COMM_WORLD, r(i), ierror)
  end do
  call MPI_Testany(n, r, which, flag, s, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  sent = [(i, i=1, n)]
  do i = n, 1, -1
    call MPI_Isend(sent(i), 1, MPI_INTEGER, modulo(rank + 1, ranks), i, MPI_COMM_WORLD, mine(i), ierror)
  end do
  call MPI_Waitall(n, mine, all_statuses, ierror)
  call check(all([(mine(i) == MPI_REQUEST_NULL, i=1, n)]), 'all sent')
  call MPI_Waitany(n, r, which, s, ierror)
  call MPI_F_sync_reg(got)
  call check(which >= 1 .and. which <= n .and. TAG_OF(s) == which, 'an index counts from 1')
  call check(r(which) == MPI_REQUEST_NULL, 'that request is gone')
  seen = .false.
  seen(which) = .true.
  done = 1
  do while (done < n)
    call MPI_Waitsome(n, r, outcount, indices, all_statuses, ierror)
    call MPI_F_sync_reg(got)
    do i = 1, outcount
      call check(.not. seen(indices(i)) .and. got(indices(i)) == indices(i), 'indices count from 1')
      seen(indices(i)) = .true.
    end do
    done = done + outcount
  end do
  last = got(n)
  call MPI_Testsome(n, r, outcount, indices, MPI_STATUSES_IGNORE, ierror)
  call check(outcount == MPI_UNDEFINED, 'no request is left')
  call MPI_Waitany(n, r, which, MPI_STATUS_IGNORE, ierror)
  call check(which == MPI_UNDEFINED, 'MPI_UNDEFINED is no index')
  call MPI_Testall(n, r, flag, MPI_STATUSES_IGNORE, ierror)
  call check(flag .and. last == n, 'all are done')
  call MPI_Request_get_status_any(n, r, which, flag, s, ierror)
  call check(flag .and. which == MPI_UNDEFINED, 'MPI_Request_get_status_any')
  call MPI_Request_get_status_all(n, r, flag, all_statuses, ierror)
  call check(flag, 'MPI_Request_get_status_all')
end subroutine

subroutine matched
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  MESSAGE :: m
  STATUS :: s
  REQUEST :: r, receive
  integer :: got, ierror
  logical :: flag

  call start('matched probes')
  call MPI_Isend(rank, 1, MPI_INTEGER, rank, 5, MPI_COMM_WORLD, r, ierror)
  call MPI_Mprobe(rank, 5, MPI_COMM_WORLD, m, s, ierror)
  call check(TAG_OF(s) == 5 .and. m /= MPI_MESSAGE_NULL, 'a message')
  got = -1
  call MPI_Mrecv(got, 1, MPI_INTEGER, m, s, ierror)
  call check(got == rank .and. m == MPI_MESSAGE_NULL, 'received')
  call MPI_Wait(r, MPI_STATUS_IGNORE, ierror)
  call MPI_Improbe(rank, 6, MPI_COMM_WORLD, flag, m, s, ierror)
  call check(.not. flag, 'no message')
  call MPI_Isend(rank, 1, MPI_INTEGER, rank, 6, MPI_COMM_WORLD, r, ierror)
  flag = .false.
  do while (.not. flag)
    call MPI_Improbe(rank, 6, MPI_COMM_WORLD, flag, m, s, ierror)
  end do
  got = -1
  call MPI_Imrecv(got, 1, MPI_INTEGER, m, receive, ierror)
  call MPI_Wait(receive, s, ierror)
  call MPI_F_sync_reg(got)
  call check(got == rank, 'received later')
  call MPI_Wait(r, MPI_STATUS_IGNORE, ierror)
end subroutine

subroutine grequests
  USE_MPI
  use checks
  use callbacks
  implicit none
  INCLUDE_MPI
  REQUEST :: r
  STATUS :: s
  integer(kind=MPI_ADDRESS_KIND) :: extra
  integer :: n, ierror
  logical :: flag

  call start('generalized requests')
  extra = 11
  call MPI_Grequest_start(query, free_it, cancel_it, extra, r, ierror)
  call MPI_Test(r, flag, s, ierror)
  call check(.not. flag, 'not complete')
  call MPI_Cancel(r, ierror)
  call check(cancelled == 1, 'the cancel function')
  call MPI_Grequest_complete(r, ierror)
  call MPI_Wait(r, s, ierror)
  call MPI_Get_elements(s, MPI_INTEGER, n, ierror)
  call check(queries >= 1 .and. n == 11 .and. TAG_OF(s) == 4, 'the query function')
  call check(freed == 11 .and. r == MPI_REQUEST_NULL, 'the free function')
end subroutine

subroutine errors
  USE_MPI
  use checks
  use callbacks
  implicit none
  INCLUDE_MPI
  COMM :: mine, wrong
  ERRHANDLER :: handler, old
  DATATYPE :: none
  REQUEST :: r
  integer :: code, class, x, ierror, in_c, n
  integer, allocatable :: no_array(:)
  character(len=MPI_MAX_ERROR_STRING) :: text, text_in_c

  call start('errors')
  allocate (no_array(0))
  call MPI_Comm_dup(MPI_COMM_WORLD, mine, ierror)
  call MPI_Comm_get_errhandler(mine, old, ierror)
  call check(old == MPI_ERRORS_ARE_FATAL, 'the handler of a duplicate')
  call MPI_Comm_set_errhandler(mine, MPI_ERRORS_RETURN, ierror)
  x = 0
  call MPI_Send(x, -1, MPI_INTEGER, 0, 0, mine, code)
  call MPI_Error_class(code, class, ierror)
  call check(class == MPI_ERR_COUNT, 'a negative count')
  call MPI_Error_string(code, text, n, ierror)
  call c_error(code, in_c, text_in_c)
  call check(in_c == class .and. text == text_in_c .and. n == len_trim(text), 'class and text as in C')
  call MPI_Isend(x, 1, MPI_INTEGER, ranks, 0, mine, r, code)
  call MPI_Error_class(code, class, ierror)
  call check(class == MPI_ERR_RANK .and. r == MPI_REQUEST_NULL, 'no such rank')
  NUMBER(none) = NUMBER(MPI_DATATYPE_NULL)
  call MPI_Bcast(x, 1, none, 0, mine, code)
  call MPI_Error_class(code, class, ierror)
  call check(class == MPI_ERR_TYPE, 'no datatype')

  call MPI_Comm_create_errhandler(on_error, handler, ierror)
  call MPI_Comm_set_errhandler(mine, handler, ierror)
  call MPI_Errhandler_free(handler, ierror)
  call check(handler == MPI_ERRHANDLER_NULL, 'freed')
  call MPI_Recv(x, 1, MPI_INTEGER, 0, -5, mine, MPI_STATUS_IGNORE, code)
  call check(handled == 1 .and. handled_comm == NUMBER(mine) .and. code == last_code, 'a handler in Fortran')
  call MPI_Comm_call_errhandler(mine, MPI_ERR_ARG, ierror)
  call check(handled == 2 .and. last_code == MPI_ERR_ARG, 'called by hand')

  ! Without a communicator the error is one of MPI_COMM_SELF.
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierror)
  NUMBER(wrong) = 77777
  call MPI_Barrier(wrong, code)
  call MPI_Error_class(code, class, ierror)
  call check(class == MPI_ERR_COMM, 'no communicator')
  call MPI_Alltoallw(no_array, no_array, no_array, [none], no_array, no_array, no_array, [none], wrong, code)
  call MPI_Error_class(code, class, ierror)
  call check(class == MPI_ERR_COMM, 'no communicator, with arrays of datatypes')
  call MPI_Add_error_class(class, ierror)
  call MPI_Add_error_code(class, code, ierror)
  call MPI_Add_error_string(code, 'of our own  ', ierror)
  call MPI_Error_string(code, text, n, ierror)
  call check(text == 'of our own' .and. n == 10, 'an error of our own')
#ifndef MPI_F08
  call MPI_Errhandler_create(on_error, handler, ierror)
  call MPI_Errhandler_set(mine, handler, ierror)
  call MPI_Send(x, -1, MPI_INTEGER, 0, 0, mine, code)
  call check(handled == 3, 'the names of MPI-1')
#endif
  call MPI_Comm_free(mine, ierror)
  call check(mine == MPI_COMM_NULL, 'freed')
end subroutine
