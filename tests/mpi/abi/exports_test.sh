#!/bin/bash
# What libmpi_abi.so exports, compared with the functions of the standard binary interface and with mpi.h.
# Prints TAP, and what is missing. Arguments: libmpi_abi.so, functions.txt, mpi.h.
library=$(realpath "$1") functions=$(realpath "$2") header=$(realpath "$3")
source "$(cd "$(dirname "$0")" && pwd)/../../tap.sh"

nm -D --defined-only "$library" | awk '{sub(/@.*/, "", $3); print $2, $3}' >"$scratch/symbols"
awk '{print $2}' "$scratch/symbols" | grep '^MPI_' | sort -u >"$scratch/exported"
sed -nE 's/^\+?(MPI_\w+)$/\1/p' "$functions" | sort -u >"$scratch/standard"
sed -n 's/^-//p' "$functions" | sort -u >"$scratch/absent"
sed -nE 's/^(int|double|MPI_\w+) (MPI_\w+)\(.*/\2/p' "$header" | sort -u >"$scratch/declared"
comm -23 "$scratch/standard" "$scratch/exported" >"$scratch/missing"

# A name that is in no list would be one that programs cannot know.
exports_only_the_standard() { ! comm -13 "$scratch/standard" "$scratch/exported" | grep .; }
# Whoever has decided otherwise changes the list, too.
absent_on_purpose() { ! comm -12 "$scratch/absent" "$scratch/exported" | grep . && ! grep -E '^MPI_(File|Register_datarep)' "$scratch/exported"; }
declared_is_exported() { diff "$scratch/declared" "$scratch/exported"; }
# MPI_X is weak, so that a tool may take its place, and PMPI_X is not.
both_names() {
  sed -n 's/^W MPI_/PMPI_/p' "$scratch/symbols" | sort >"$scratch/weak"
  sed -n 's/^T PMPI_/PMPI_/p' "$scratch/symbols" | sort >"$scratch/strong"
  wc -l <"$scratch/weak" && diff "$scratch/weak" "$scratch/strong" && ! grep '^T MPI_' "$scratch/symbols"
}
nothing_else() { ! awk '{print $2}' "$scratch/symbols" | grep -vE '^P?MPI_'; }

check "nothing but functions of the standard" exports_only_the_standard
check "what is absent on purpose is absent" absent_on_purpose
check "what mpi.h declares, and no more" declared_is_exported
check "every function has its PMPI name" both_names
check "no other symbols" nothing_else
echo "# $(wc -l <"$scratch/exported") functions of $(wc -l <"$scratch/standard"); missing: $(tr '\n' ' ' <"$scratch/missing")"
finish
