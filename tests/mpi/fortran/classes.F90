#include "binding.inc"
! Every class of procedures through one binding of Fortran; any number of ranks.
program classes
  USE_MPI
  use checks
  implicit none
  INCLUDE_MPI
  integer :: ierror, provided, required, version, subversion
  logical :: flag
  double precision :: begin

  call MPI_Initialized(flag, ierror)
  if (flag) stop 3
  required = MPI_THREAD_FUNNELED
  call MPI_Init_thread(required, provided, ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)

  call start('environment')
  call check(provided >= MPI_THREAD_FUNNELED, 'level of threads')
  call MPI_Initialized(flag, ierror)
  call check(flag .eqv. .true., 'initialized is .true.')
  call MPI_Finalized(flag, ierror)
  call check(flag .eqv. .false., 'finalized is .false.')
  call MPI_Is_thread_main(flag, ierror)
  call check(flag, 'main thread')
  call MPI_Get_version(version, subversion, ierror)
  call check(version == MPI_VERSION .and. subversion == MPI_SUBVERSION, 'version')
  call MPI_Abi_get_version(version, subversion, ierror)
  call check(version == MPI_ABI_VERSION .and. subversion == MPI_ABI_SUBVERSION, 'version of the ABI')
  begin = MPI_Wtime()
  call check(MPI_Wtick() > 0 .and. MPI_Wtime() >= begin .and. PMPI_Wtime() >= begin, 'clock')
  call MPI_Pcontrol(1)
  call check(.not. MPI_SUBARRAYS_SUPPORTED, 'MPI_SUBARRAYS_SUPPORTED')

  call strings
  call messages
  call many_requests
  call matched
  call grequests
  call persistent_and_neighbors
  call sessions_and_buffers
#ifdef MPI_F08
  call large_counts
#endif
  call errors
  call types
  call fortran_types
  call groups
  call attributes
  call topologies
  call movement
  call reductions
  call windows
  call with_c
#ifdef MPI_F08
  call only_f08
#endif
  call report
  call MPI_Finalize(ierror)
  if (failed /= 0) stop 1
end program
