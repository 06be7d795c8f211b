#!/bin/bash
# viaduct-info on this machine, as its users meet it. Prints TAP. Argument: the program.
source "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
info=$(realpath "$1")
unset "${!VIADUCT_@}"

# Exit status and a line of the output.
ends() {  # status, pattern, command...
  local status=$1 pattern=$2 rc
  shift 2
  "$@" >"$scratch/out" 2>&1
  rc=$?
  echo "exit $rc, expected $status:"
  cat "$scratch/out"
  [[ $rc == "$status" ]] && grep -Eq -- "$pattern" "$scratch/out"
}
says() { check "$2" ends "$@"; }

for heading in "Network interfaces of the kernel" "Network functions on the PCI bus" "DPDK" Hugepages \
  "Verbs .RDMA. devices" Limits "Processors and kernel" "Missing"; do
  says 0 "^$heading" "$info"
done
says 0 "DPDK [0-9]{2}\.[0-9]{2}" "$info"
says 0 "(^| )memif( |$)" "$info"
says 0 "^SYNOPSIS" "$info" --help
says 0 "^VIADUCT_JOB +0 +0 " "$info" --config
says 0 "^VIADUCT_MTU +9000 +0 +bytes" env VIADUCT_MTU=9000 "$info" --config
says 1 "^unknown: VIADUCT_MTUU is no knob" env VIADUCT_MTUU=9000 "$info" --config
says 1 "^unknown: VIADUCT_VIPL_PROT is no knob" env VIADUCT_VIPL_PROT=18651 "$info" --config
says 1 "^bad: VIADUCT_MTU=big" env VIADUCT_MTU=big "$info" --config
says 1 "^bad: VIADUCT_CHECKSUM=perhaps" env VIADUCT_CHECKSUM=perhaps "$info" --config
for bad in PORT=abc PORT=65536 DESCRIPTORS=0 SEGMENTS=257 SPIN=-1; do
  says 1 "^bad: VIADUCT_VIPL_$bad: must be a number from" env "VIADUCT_VIPL_$bad" "$info" --config
done
says 0 "^VIADUCT_VIPL_PORT +18650 +18650 " env VIADUCT_VIPL_PORT= "$info" --config
says 1 "^bad: .*loss=300%" env VIADUCT_FAULTS=loss=300% "$info" --config
says 2 "unexpected argument '--confog'; see viaduct-info --help" "$info" --confog
says 2 "unexpected argument 'now'" "$info" --config now
finish
