#!/bin/bash
# mpicc, mpicxx and viaduct-mpi.pc: from the build tree, installed, and moved after that. Prints TAP.
# Argument: the build directory.
source "$(dirname "${BASH_SOURCE[0]}")/../../tap.sh"
build=$(realpath "$1")
cd "$scratch" || exit 1
prefix=

cat >program.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("sum %d of %s\n", sum, argv[1]);
  return MPI_Finalize();
}
C
cat >program.cxx <<'CXX'
#include <mpi.h>
#include <iostream>
#include <string>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::cout << std::string("sum ") << sum << " of " << argv[1] << std::endl;
  return MPI_Finalize();
}
CXX

ranks=3 expected="sum 3"
start=(mpiexec.hydra -n 3)
command -v mpiexec.hydra >/dev/null || { ranks=1 expected="sum 0"; start=(); }

# Nothing of what is inside the library may become a need of the programs.
only_needs_mpi() {  # program
  readelf -d "$1" | grep NEEDED
  readelf -d "$1" | grep -q 'NEEDED.*\[libmpi_abi.so.1\]' && ! readelf -d "$1" | grep -q 'NEEDED.*librte'
}
runs() {  # program
  local said
  said=$("${start[@]}" "./$1" "$ranks ranks") || return 1
  echo "$said"
  [[ $said == "$expected of $ranks ranks" ]]
}
builds() {  # wrapper, source
  rm -f program
  "$@" -O1 -Wall -Wextra -Werror -o program && only_needs_mpi program && runs program
}
in_two_steps() {
  rm -f program program.o
  "$1" -c program.c && "$1" -o program program.o && runs program
}
without_input() { "$1" --version && "$1" -v && "$1" -E -x c - </dev/null; }
fails_as_the_compiler() { ! "$1" -c nothing.c && "$1" -c program.c -o /dev/null; }
shown_command_works() {
  local shown
  shown=$("$1" -show program.c -o "shown program") || return 1
  echo "$shown"
  [[ $shown != *'\,'* && $shown == "$("$1" --showme program.c -o "shown program")" ]] || return 1
  eval "$shown" && runs "shown program"
}
parts_work() {
  rm -f program program.o
  # shellcheck disable=SC2046  # flags are words
  cc $("$1" --showme:compile) -c program.c && cc program.o -o program $("$1" --showme:link) && runs program
}
other_compiler() { "$1" -cc=echo -c x.c | grep -x -- '-I.* -c x.c'; }
documented() { "$1" --help | grep -qx SYNOPSIS && ! "$1" --help | grep -q '@'; }
works() {  # wrapper directory, what it is
  check "$2: C" builds "$1/mpicc" program.c
  check "$2: C++" builds "$1/mpicxx" program.cxx
}

install_all() {
  meson install -C "$build" --no-rebuild --destdir "$scratch/root" || return 1
  prefix=$(sed -n 's/^prefix=//p' "$(find "$scratch/root" -name viaduct-mpi.pc)")
  [[ -n $prefix ]]
}
pkg_config() {
  local pc flags
  pc=$(find "$scratch/root" -name viaduct-mpi.pc)
  sed -i "s|^prefix=.*|prefix=$scratch/root$prefix|" "$pc"
  flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs viaduct-mpi) || return 1
  echo "$flags"
  # shellcheck disable=SC2086  # flags are words
  rm -f program && cc program.c -o program $flags -Wl,-rpath,"$(dirname "$pc")/.." && only_needs_mpi program && runs program
}
# Where the system looks anyway, no program needs to be told.
fixed_place() {
  local said libdir
  said=$("$(find "$scratch/root" -path '*/bin/mpicc')" -show program.c)
  echo "$said"
  libdir=$(sed -n 's/.*-L\([^ ]*\).*/\1/p' <<<"$said")
  [[ -e $libdir/libmpi_abi.so && $said == *"-Wl,-rpath,$libdir"* ]]
}

echo "TAP version 13"
works "$build/libmpi_lite" "build tree"
check "compiling and linking apart" in_two_steps "$build/libmpi_lite/mpicc"
check "without input nothing is linked" without_input "$build/libmpi_lite/mpicc"
check "the compiler's exit status" fails_as_the_compiler "$build/libmpi_lite/mpicc"
check "-show" shown_command_works "$build/libmpi_lite/mpicc"
check "--showme:compile and --showme:link" parts_work "$build/libmpi_lite/mpicc"
check "-cc=" other_compiler "$build/libmpi_lite/mpicc"
check "mpicc --help" documented "$build/libmpi_lite/mpicc"
check "mpicxx --help" documented "$build/libmpi_lite/mpicxx"
check "meson install" install_all
works "$scratch/root$prefix/bin" "installed elsewhere"
check "a moved installation is found" fixed_place
check "pkg-config" pkg_config
finish
