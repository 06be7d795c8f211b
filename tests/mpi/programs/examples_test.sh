#!/bin/bash
# The example programs, on one node and on emulated hosts, over every channel. Prints TAP.
# Arguments: halo, matmul, viaduct-run.
halo=$(realpath "$1") matmul=$(realpath "$2") viaduct_run=$(realpath "$3")
source "$(dirname "${BASH_SOURCE[0]}")/../../tap.sh"

# correct LINES COMMAND...: exit status 0, one line of result, and it says "correct".
correct() {
  local said
  said=$(timeout 600 "$@") || { echo "exit status $?"; echo "$said"; return 1; }
  echo "$said"
  [[ $(wc -l <<<"$said") == 1 && $said == *", correct" ]]
}

examples() {  # description, then what starts a program
  local what=$1
  shift
  check "halo, $what" correct "$@" "$halo" 130 60
  check "matmul, $what" correct "$@" "$matmul" 203
}

refuses() {  # a wrong argument: one line that says so, and not 0
  local said
  said=$(timeout 600 mpiexec.hydra -n 2 "$@" 2>&1) && return 1
  echo "$said"
  [[ $said == *"must be from"* ]]
}

for ranks in 1 2 4; do
  examples "$ranks ranks in memory" mpiexec.hydra -n $ranks
done
examples "5 ranks, which divide nothing evenly" mpiexec.hydra -n 5
examples "no launcher" env
# What the launcher takes for three hosts is one node, and nobody has named ports.
names=127.0.0.1,127.0.0.2,127.0.0.3
examples "6 ranks on a node of three names" mpiexec.hydra -n 6 -ppn 2 -launcher fork -hosts $names
examples "3 ranks on a node of three names" mpiexec.hydra -n 3 -ppn 1 -launcher fork -hosts $names
check "halo, wrong size" refuses "$halo" 1
check "matmul, wrong size" refuses "$matmul" 0

for channel in mbcf startx; do
  for ranks in 1 2 4; do
    what="$ranks ranks on two hosts over $channel"
    if may_make_hosts; then
      examples "$what" "$viaduct_run" -n $ranks --hosts 2 --channel $channel
    else
      skip "$what" "emulated hosts need root and network namespaces"
    fi
  done
  what="4 ranks on two hosts over $channel, without shared memory"
  if may_make_hosts; then
    examples "$what" env VIADUCT_SHM=off "$viaduct_run" -n 4 --hosts 2 --channel $channel
  else
    skip "$what" "emulated hosts need root and network namespaces"
  fi
done
finish
