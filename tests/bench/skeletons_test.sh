#!/bin/bash
# The communication skeletons of bench/vi-connections: every message arrives where and as its sender
# meant, and who talks to whom is what is known of the originals. Prints TAP. Argument: vi_programs.
programs=$(realpath "$1")
source "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"

runs() { timeout 120 mpiexec.hydra -n "$1" "$programs" "$2"; }

# counts RANKS SKELETON FIGURES
counts() {
  local said
  said=$("$programs" --count "$1" "$2") || return 1
  echo "$said"
  [[ $said == "$3" ]]
}
expect() {  # RANKS SKELETON MESSAGES WITH_COLLECTIVES
  check "$2 on $1 ranks, counted" counts "$1" "$2" "{\"messages\": $3, \"with_collectives\": $4}"
}

does_not_run() { ! runs "$1" "$2" 2>"$scratch/said" && grep -q "does not run on $1 ranks" "$scratch/said"; }

for name in ring barrier bcast allreduce allgather alltoall cg mg is sppm sweep3d sphot; do
  check "$name on 8 ranks" runs 8 $name
done
for name in sp bt; do check "$name on 9 ranks" runs 9 $name; done
for name in cg mg is sp ring sphot; do check "$name on one rank" runs 1 $name; done
check "cg on 3 ranks" does_not_run 3 cg
check "sp on 3 ranks" does_not_run 3 sp

# Where the paper's figures follow from the pattern. CG: 4.75 Virtual Interfaces on 16 processes are
# four for collectives, two of which are partners in a row as well, and three in four processes have
# another one that is transposed.
expect 16 cg 2.7500 3.1250
expect 16 sp 6.0000 6.6250
expect 36 bt 6.0000 6.9444
expect 64 sweep3d 3.5000 4.3438
expect 64 sphot 0.9844 0.9844
expect 64 sppm 5.5000 6.1562
expect 16 alltoall 0.0000 15.0000
finish
