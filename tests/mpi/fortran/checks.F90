#include "binding.inc"
! Every rank checks, rank 0 prints one TAP line for each section (as tests/mpi/job.hpp in C++).
module checks
  implicit none
  integer :: rank = 0, ranks = 1, failures = 0, sections = 0, failed = 0
  character(len=60) :: name = ''
contains
  subroutine start(what)
    character(len=*), intent(in) :: what
    call finish_section
    name = what
  end subroutine

  subroutine check(good, what)
    logical, intent(in) :: good
    character(len=*), intent(in) :: what
    if (good) return
    failures = failures + 1
    write (0, '(a,i0,4a)') 'rank ', rank, ', ', trim(name), ': not true: ', what
  end subroutine

  subroutine finish_section
    USE_MPI
    INCLUDE_MPI
    integer :: all, ierror
    if (name == '') return
    call MPI_Allreduce(failures, all, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    sections = sections + 1
    if (all /= 0) failed = failed + 1
    if (rank == 0) then
      if (all /= 0) write (*, '(a,i0,2a)') 'not ok ', sections, ' - ', trim(name)
      if (all == 0) write (*, '(a,i0,2a)') 'ok ', sections, ' - ', trim(name)
    end if
    failures = 0
    name = ''
  end subroutine

  subroutine report
    call finish_section
    if (rank == 0) write (*, '(a,i0)') '1..', sections
  end subroutine
end module
