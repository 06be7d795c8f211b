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
says 1 "^unknown: VIADUCT_MTUU is no configuration variable" env VIADUCT_MTUU=9000 "$info" --config
says 1 "^unknown: VIADUCT_VIPL_PROT is no configuration variable" env VIADUCT_VIPL_PROT=18651 "$info" --config
# Of every kind, and of both tables.
for bad in FRAMES=511 RX_DESCRIPTORS=16385 ACK_DELAY_US=-1 MIN_TIMEOUT_US=0 DEAD_AFTER_MS=1.5 MAX_WINDOW=1 \
  EAGER_SHM=abc EAGER_SHM=32633 EAGER_MBCF=1048577 EAGER_STARTX=1k NODE_RANKS=x MBCF_FIFO=1 \
  VIPL_PORT=abc VIPL_PORT=65536 VIPL_DESCRIPTORS=0 VIPL_SEGMENTS=257 VIPL_SPIN=-1 VIPL_TRAFFIC_CLASS=256; do
  says 1 "^bad: VIADUCT_$bad is not a whole number from [0-9]+ to [0-9]+; set it" env "VIADUCT_$bad" "$info" --config
done
for switch in CHECKSUM TELEMETRY SHM CMA STATS TWO_STAGE VIPL_STATS; do
  says 1 "^bad: VIADUCT_$switch=perhaps is not on\|off\|" env "VIADUCT_$switch=perhaps" "$info" --config
done
says 1 "^bad: VIADUCT_MEMORY=x is not auto\|huge\|nohuge;" env VIADUCT_MEMORY=x "$info" --config
says 1 "^bad: VIADUCT_CHANNEL=foo is not mbcf\|startx\|vi;" env VIADUCT_CHANNEL=foo "$info" --config
says 1 "^bad: VIADUCT_OVERSUBSCRIBED=yes is not auto\|on\|off;" env VIADUCT_OVERSUBSCRIBED=yes "$info" --config
says 1 "^bad: VIADUCT_WRITE_PROTOCOL=on is not sr\|nsr\|auto;" env VIADUCT_WRITE_PROTOCOL=on "$info" --config
for bad in big 575; do
  says 1 "^bad: VIADUCT_MTU=$bad is not 0 or a whole number from" env VIADUCT_MTU=$bad "$info" --config
done
# Each with a value that is right, some at the edge.
says 0 "^VIADUCT_JOB +nightly " env VIADUCT_JOB=nightly VIADUCT_PORTS=p0 VIADUCT_FRAMES=512 VIADUCT_MTU=0 \
  VIADUCT_RX_DESCRIPTORS=64 VIADUCT_MEMORY=huge VIADUCT_EAL=--no-pci VIADUCT_CHECKSUM=no VIADUCT_ACK_DELAY_US=0 \
  VIADUCT_MIN_TIMEOUT_US=1 VIADUCT_DEAD_AFTER_MS=3600000 VIADUCT_MAX_WINDOW=512 VIADUCT_CHANNEL=startx \
  VIADUCT_SHM=off VIADUCT_CMA=0 VIADUCT_WRITE_PROTOCOL=nsr VIADUCT_STATS=1 VIADUCT_EAGER_SHM=32632 \
  VIADUCT_EAGER_MBCF=1048576 VIADUCT_EAGER_STARTX=0 VIADUCT_TWO_STAGE=on VIADUCT_OVERSUBSCRIBED=off VIADUCT_NODE_RANKS=2147483647 \
  VIADUCT_MBCF_FIFO=1073741824 VIADUCT_FAULTS=loss=1% VIADUCT_PCAP=x VIADUCT_VIPL_SEGMENTS=256 "$info" --config
says 0 "^VIADUCT_VIPL_PORT +18650 +18650 " env VIADUCT_VIPL_PORT= "$info" --config
says 1 "^bad: VIADUCT_FAULTS=loss=300%: .*is not between 0 and 100%" env VIADUCT_FAULTS=loss=300% "$info" --config
says 2 "unexpected argument '--confog'; see viaduct-info --help" "$info" --confog
says 2 "unexpected argument 'now'" "$info" --config now
finish
