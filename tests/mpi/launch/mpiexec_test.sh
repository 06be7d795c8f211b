#!/bin/bash
# The installed mpiexec: what it starts, what it refuses, and what jobs say about wrong settings. Prints
# TAP. Arguments: mpiexec, mpicc of the build tree.
mpiexec=$(realpath "$1") mpicc=$(realpath "$2")
source "$(dirname "${BASH_SOURCE[0]}")/../../tap.sh"
unset "${!VIADUCT_@}"
cd "$scratch" || exit 1

command -v mpiexec.hydra >/dev/null ||
  { echo "1..0 # SKIP mpiexec.hydra was not found; see tools/install-packages"; exit 0; }

cat >ours.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  printf("one of %d\n", size);
  return MPI_Finalize();
}
C
# As other MPIs call their libraries, directly and behind a library of the program's own.
cat >theirs.c <<'C'
int MPI_Init(void);
int main(void) { return MPI_Init(); }
C
build() {
  "$mpicc" ours.c -o ours || return 1
  echo 'int MPI_Init(void) { return 0; }' >library.c
  echo 'int MPI_Init(void); int solve(void) { return MPI_Init(); }' >solver.c
  echo 'int solve(void); int main(void) { return solve(); }' >indirect.c
  cc -shared -fPIC library.c -Wl,-soname,libmpi.so.40 -o libmpi.so.40 &&
    cc -shared -fPIC library.c -Wl,-soname,libmpich.so.12 -o libmpich.so.12 &&
    cc theirs.c ./libmpi.so.40 -Wl,-rpath,"$scratch" -o open_mpis &&
    cc theirs.c ./libmpich.so.12 -Wl,-rpath,"$scratch" -o mpichs &&
    cc -shared -fPIC solver.c ./libmpi.so.40 -Wl,-rpath,"$scratch" -o libsolver.so &&
    cc indirect.c ./libsolver.so -Wl,-rpath,"$scratch" -o indirect &&
    cc -static -x c - -o static <<<'int main(void) { return 0; }' &&
    printf '#!/bin/sh\nexec "$@"\n' >script && chmod +x script
}
starts() {  # expected number of lines, arguments of mpiexec
  local lines=$1
  shift
  "$mpiexec" "$@" >said || return 1
  cat said
  [[ $(grep -cx "one of $lines" said) == "$lines" ]]
}
# Only what the script itself needs, and whatever else is called mpiexec.
without_hydra() {
  local tool
  mkdir -p bin
  for tool in bash dirname readlink; do ln -sf "$(command -v "$tool")" bin/; done
  printf '#!/bin/sh\necho "one of 1"\n' >bin/mpiexec
  cp bin/mpiexec bin/mpirun
  chmod +x bin/mpiexec bin/mpirun
  refuses 1 "Hydra.* was not found .*apt-get install mpich" env PATH="$scratch/bin" "$mpiexec" -n 1 ./ours
}
called_mpirun() {
  ln -sf "$mpiexec" mpirun
  refuses 1 "^mpirun: ./mpichs " ./mpirun ./mpichs && ./mpirun --help | grep -q '^    mpirun - '
}
# One rank of two: it says so, and the other does not wait for it.
wrong_setting() {  # setting, what it takes
  timeout 60 "$mpiexec" -n 1 ./ours : -n 1 env "VIADUCT_$1" ./ours >said 2>&1
  local rc=$?
  echo "exit $rc:"
  cat said
  [[ $rc != 0 && $rc != 124 && $(grep -c VIADUCT_ said) == 1 ]] && grep -q "MPI_Init: rank 1 on .*: VIADUCT_$1 is not $2" said &&
    ! grep -q "^one of" said
}

echo "TAP version 13"
check "programs of several MPIs" build
check "a job of ours" starts 3 -n 3 ./ours
check "a job of two programs" starts 3 -n 1 ./ours : -n 2 ./ours
check "programs that start ours" starts 2 -n 2 ./script nice ./ours
check "ours may be told the name of another's" starts 2 -n 2 ./ours ./mpichs
check "a program without shared libraries" "$mpiexec" -n 2 ./static
check "Open MPI's" refuses 1 "mpiexec: ./open_mpis is linked with .*libmpi.so.40: compile it with .*/mpicc" \
  "$mpiexec" -n 2 ./open_mpis
check "MPICH's" refuses 1 "./mpichs is linked with .*libmpich.so.12" "$mpiexec" -n 2 ./mpichs
check "a library's that the program is linked with" refuses 1 "./indirect is linked with .*libmpi.so.40" \
  "$mpiexec" -n 2 ./indirect
check "behind another program" refuses 1 "./mpichs is linked with" "$mpiexec" -n 2 nice ./mpichs
check "the second of two" refuses 1 "./mpichs is linked with" "$mpiexec" -n 1 ./ours : -n 1 ./mpichs
check "without Hydra" without_hydra
check "as mpirun" called_mpirun
check "--help" has_sections "$mpiexec" NAME SYNOPSIS DESCRIPTION "EXIT STATUS"
check "a wrong switch" wrong_setting CHECKSUM=maybe 'on|off|'
check "a wrong number" wrong_setting DEAD_AFTER_MS=soon 'a whole number from'
check "a wrong word" wrong_setting CHANNEL=tcp 'mbcf|startx'
finish
