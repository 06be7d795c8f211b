#!/bin/bash
# The Fortran bindings around the programs of their own: the table, what the library needs, mpifort, tools,
# errors, the cost of a call. Prints TAP. Arguments: the source tree, mpifort, mpicc, libmpifort_abi.so, the
# programs.
tree=$(realpath "$1") mpifort=$(realpath "$2") mpicc=$(realpath "$3") library=$(realpath "$4")
shift 4
programs=()
for program; do programs+=("$(realpath "$program")"); done
here=$(cd "$(dirname "$0")" && pwd)
source "$here/../../tap.sh"
fortran=$tree/libmpi_lite/fortran fortran_includes=$(dirname "$library")/fortran

table_is_complete() { python3 "$fortran/generate.py" --check "$fortran/procedures.txt" "$tree/libmpi_lite/include/mpi.h"; }
# libmpi_abi and the C library; of the former, what the standard has.
needs_only_the_abi() {
  local name
  readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | sort >"$scratch/needed"
  cat "$scratch/needed"
  [[ $(tr '\n' ' ' <"$scratch/needed") == "libc.so.6 libmpi_abi.so.1 " ]] || return 1
  readelf -d "$library" | grep 'SONAME.*\[libmpifort_abi.so.1\]' || return 1
  for name in $(nm -D --undefined-only "$library" | sed -n 's/.* U P\?\(MPI_[A-Za-z0-9_]*\)$/\1/p'); do
    grep -q "\b$name(" "$tree/libmpi_lite/include/mpi.h" || { echo "$name is not in mpi.h"; return 1; }
  done
}
exports_both_names() {  # what has a weak name has a strong one
  nm -D --defined-only "$library" | sed -n 's/.* W \(mpi_.*\)/p\1/p' | sort >"$scratch/weak"
  nm -D --defined-only "$library" | sed -n 's/.* T \(pmpi_.*\)/\1/p' | sort >"$scratch/strong"
  wc -l "$scratch/weak" && diff "$scratch/weak" "$scratch/strong"
}
# What the modules declare is there: by its own name, or by the one that it is bound to.
interfaces_have_entries() {
  nm -D --defined-only "$library" | sed -n 's/.* [TW] //p' | sort >"$scratch/symbols"
  grep -E '^ *(subroutine|(integer\(8\)|double precision) function) P?MPI_\w+' "$fortran_includes/modules.f90" |
    sed -E 's/.*bind\(C, name="(\w+)"\).*/\1/; t; s/.* (P?MPI_\w+)\(.*/\L\1_/' |
    grep -vE '_function(_c)?_$|^mpi_fort_' | sort -u >"$scratch/declared"
  wc -l "$scratch/declared" && ! comm -13 "$scratch/symbols" "$scratch/declared" | grep .
}
compile_small_ones() {
  local binding
  for binding in MPIF_H MPI_MODULE MPI_F08; do
    "$mpifort" -O2 -D$binding -J "$scratch" "$here/sends.F90" -o "$scratch/sends_$binding" &&
      "$mpifort" -D$binding -J "$scratch" "$here/mistake.F90" -o "$scratch/mistake_$binding" || return 1
  done
  "$mpicc" -O2 "$here/sends.c" -o "$scratch/sends" && "$mpicc" "$here/mistake.c" -o "$scratch/mistake"
}
fixed_form() {
  local mode
  for mode in -pie -no-pie; do
    "$mpifort" $mode -Wall "$here/fixed.f" -o "$scratch/fixed" && "$scratch/fixed" || return 1
  done
}
# Extensions of interpreters are loaded like this. (mpif.h alone cannot do it: every library has its COMMON
# blocks.)
plugins() {
  local binding made=()
  for binding in MPI_MODULE MPI_F08; do
    for copy in 1 2; do
      made+=("$scratch/plugin_$binding$copy.so")
      "$mpifort" -shared -fPIC -D$binding -J "$scratch" "$here/plugin.F90" -o "${made[-1]}" || return 1
    done
  done
  "$mpicc" "$here/plugins.c" -o "$scratch/plugins" && "$scratch/plugins" "${made[@]}"
}
# A job of one rank whose last words are the same, but for the numbers of processes.
same_error() {  # program
  local mistake mine theirs
  for mistake in count rank comm type tag; do
    theirs=$("$scratch/mistake" $mistake 2>&1) && return 1
    mine=$("$1" $mistake 2>&1) && return 1
    echo "$mine"
    [[ -n $mine && $mine == "$theirs" ]] || { echo "C: $theirs"; return 1; }
  done
}
sees_calls() {  # program
  local said
  [[ -s $scratch/tool.so ]] || "$mpicc" -shared -fPIC "$here/tool.c" -o "$scratch/tool.so" || return 1
  said=$(LD_PRELOAD=$scratch/tool.so "$1" 2>&1) || { echo "$said"; return 1; }
  grep tool: <<<"$said" | tee "$scratch/tool_said"
  grep -Eq 'tool: [1-9][0-9]* sends, [1-9][0-9]* receives' "$scratch/tool_said"
}
# The libmpi_abi that the dynamic linker finds first, here a copy elsewhere, is the one that is used.
another_library() {  # program
  local place=$scratch/elsewhere
  mkdir -p "$place" && cp "$(dirname "$library")/libmpi_abi.so.1" "$place" || return 1
  LD_LIBRARY_PATH=$place ldd "$1" | grep "libmpi_abi.so.1 => $place/" &&
    LD_LIBRARY_PATH=$place mpiexec.hydra -n 2 "$1" >"$scratch/said" && ! grep '^not ok' "$scratch/said"
}
# By the wrapper, and by mpif.h where a compiler is called without it.
long_integers() {
  refuses 1 "^mpifort: -fdefault-integer-8 gives INTEGER 8 bytes" "$mpifort" -fdefault-integer-8 -c "$here/fixed.f" || return 1
  # shellcheck disable=SC2046  # these are words
  gfortran -fdefault-integer-8 $("$mpifort" --showme:compile) -c "$here/fixed.f" -o "$scratch/fixed.o" 2>"$scratch/said" && return 1
  cat "$scratch/said"
  grep -q '^mpif.h:4:.*' "$scratch/said" && sed -n 3p "$fortran_includes/mpif.h" | grep fdefault-integer-8
}
other_compiler() {
  printf '#!/bin/sh\n[ "$1" != -dumpfullversion ] || { echo 99.1.0; exit; }\nexit 1\n' >"$scratch/another"
  chmod +x "$scratch/another"
  refuses 1 "^mpifort: .* was made by .* [0-9.]+; $scratch/another is 99.1.0$" "$mpifort" -fc="$scratch/another" -c "$here/fixed.f"
}
shows() {
  "$mpifort" -show x.f90 | tee "$scratch/said" | grep -E '^[^ ]*gfortran[^ ]* -I.* x.f90 -L.* -lmpifort_abi -lmpi_abi$' &&
    [[ $("$mpifort" --showme:compile) == -I* && $("$mpifort" --showme:link) == *"-lmpifort_abi -lmpi_abi" ]]
}
# From two numbers of calls: what each costs, in instructions.
cost() {  # program
  local few many
  few=$(instructions "$1" 1000) && many=$(instructions "$1" 11000) || return 1
  echo $(((many - few) / 10000))
}
instructions() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
costs_little() {  # binding
  local c fortran
  command -v valgrind >/dev/null || { echo "valgrind was not found; run: tools/install-packages bench"; return 77; }
  c=$(cost "$scratch/sends") && fortran=$(cost "$scratch/sends_$1") || return 1
  echo "MPI_Send to nobody: $c instructions in C, $fortran in Fortran" | tee "$scratch/cost"
  ((c > 0 && fortran - c <= 30))
}

check "every function of mpi.h is in the table" table_is_complete
check "the library needs libmpi_abi and nothing beyond the standard" needs_only_the_abi
check "every procedure has its PMPI name" exports_both_names
check "every interface has its entry" interfaces_have_entries
check "small programs in each binding" compile_small_ones
check "fixed source form, and executables at fixed addresses" fixed_form
check "in shared libraries that are loaded apart" plugins
check "mpifort -show" shows
check "-fdefault-integer-8 is refused" long_integers
check "modules of another compiler version" other_compiler
for program in "${programs[@]}"; do
  check "a tool in C sees the calls of ${program##*/}" sees_calls "$program"
  check "${program##*/} over another library of that name" another_library "$program"
done
for binding in MPIF_H MPI_MODULE MPI_F08; do
  check "the same errors as in C: $binding" same_error "$scratch/mistake_$binding"
  check "MPI_Send costs at most 30 instructions more: $binding" costs_little $binding
  [[ ! -s $scratch/cost ]] || sed 's/^/# /' "$scratch/cost"
done
finish
