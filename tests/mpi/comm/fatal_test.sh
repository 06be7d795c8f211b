#!/bin/sh
# Errors end the whole job and say where, what and why. Usage: fatal_test.sh MPIEXEC PROGRAM
mpiexec=$1
program=$2
failed=0
number=0

# expect CASE STATUS TEXT: with 3 processes the case ends with that status (any but 0, if it is
# "not0") and says that on one line.
expect() {
  number=$((number + 1))
  output=$(timeout 30 "$mpiexec" -n 3 "$program" "$1" 2>&1 </dev/null)
  status=$?
  good=1
  if [ "$2" = not0 ]; then
    [ "$status" -ne 0 ] && [ "$status" -ne 124 ] || good=0
  else
    [ "$status" -eq "$2" ] || good=0
  fi
  printf '%s\n' "$output" | grep -qxF -- "$3" || good=0
  printf '%s\n' "$output" | grep -qF 'still alive' && good=0
  if [ $good = 1 ]; then
    echo "ok $number - $1"
  else
    echo "not ok $number - $1: status $status, output:"
    printf '%s\n' "$output" | sed 's/^/# /'
    failed=1
  fi
}

expect world 6 'MPI_Send on MPI_COMM_WORLD, rank 1: argument dest is 7; ranks go from 0 to 2 (MPI_ERR_RANK)'
expect named 4 'MPI_Send on ocean, rank 1 (1 in MPI_COMM_WORLD): argument tag is -3; it must not be negative (MPI_ERR_TAG)'
expect unnamed 2 'MPI_Send on a communicator of 3, rank 1 (1 in MPI_COMM_WORLD): argument count is -1; it must not be negative (MPI_ERR_COUNT)'
expect no-comm 5 'MPI_Comm_size, rank 1: argument comm (0x100) is not a communicator (MPI_ERR_COMM)'
expect errors-abort 6 'MPI_Send on a communicator of 3, rank 1 (1 in MPI_COMM_WORLD): argument dest is 99; ranks go from 0 to 2 (MPI_ERR_RANK)'
expect abort 3 'MPI_Abort on MPI_COMM_WORLD, rank 1: error code 3'
expect before-init not0 'MPI_Comm_rank: MPI_Comm_rank was called before MPI_Init (MPI_ERR_OTHER)'
expect after-finalize not0 'MPI_Comm_rank: MPI_Comm_rank was called after MPI_Finalize (MPI_ERR_OTHER)'
echo "1..$number"
exit $failed
