#!/bin/bash
# Errors end the whole job and say where, what and why. Prints TAP. Arguments: mpiexec, the program.
source "$(dirname "${BASH_SOURCE[0]}")/../../tap.sh"
mpiexec=$1 program=$(realpath "$2")

# With 3 processes the case ends with that status (any but 0, if it is "not0"), says that on one line
# (of any rank on any host, where every rank would say it), and no process goes on.
ends() {  # case, status, text
  local said status
  said=$(timeout 600 "$mpiexec" -n 3 "$program" "$1" 2>&1 </dev/null)
  status=$?
  echo "exit status $status, expected $2: $said"
  if [[ $2 == not0 ]]; then
    ((status != 0 && status != 124)) || return 1
  else
    ((status == $2)) || return 1
  fi
  sed 's/^MPI_Init: rank . on [^:]*: /MPI_Init: /' <<<"$said" | grep -qxF -- "$3" && ! grep -qF 'still alive' <<<"$said"
}
expect() { check "$1" ends "$@"; }

expect world 6 'MPI_Send on MPI_COMM_WORLD, rank 1: argument dest is 7; ranks go from 0 to 2 (MPI_ERR_RANK)'
expect named 4 'MPI_Send on ocean, rank 1 (1 in MPI_COMM_WORLD): argument tag is -3; it must not be negative (MPI_ERR_TAG)'
expect unnamed 2 'MPI_Send on a communicator of 3, rank 1 (1 in MPI_COMM_WORLD): argument count is -1; it must not be negative (MPI_ERR_COUNT)'
expect no-comm 5 'MPI_Comm_size, rank 1: argument comm (0x100) is not a communicator (MPI_ERR_COMM)'
expect errors-abort 6 'MPI_Send on a communicator of 3, rank 1 (1 in MPI_COMM_WORLD): argument dest is 99; ranks go from 0 to 2 (MPI_ERR_RANK)'
expect abort 3 'MPI_Abort on MPI_COMM_WORLD, rank 1: error code 3'
expect abort-while-reading 3 'MPI_Abort on MPI_COMM_WORLD, rank 1: error code 3'
expect before-init not0 'MPI_Comm_rank: MPI_Comm_rank was called before MPI_Init (MPI_ERR_OTHER)'
expect after-finalize not0 'MPI_Comm_rank: MPI_Comm_rank was called after MPI_Finalize (MPI_ERR_OTHER)'
# Read only by MPI_Finalize, but refused at once.
export VIADUCT_STATS=perhaps
expect world not0 'MPI_Init: VIADUCT_STATS=perhaps is not on|off|yes|no|1|0; set it to that or unset it (MPI_ERR_OTHER)'
finish
