#!/bin/bash
# Ranks that wait for long use next to nothing of a CPU, whatever they wait on. Prints TAP.
# Arguments: viaduct-run, idle.
viaduct_run=$(realpath "$1") idle=$(realpath "$2")
source "$(dirname "${BASH_SOURCE[0]}")/../../tap.sh"

quietly() { timeout 60 "$@"; }
between_hosts() {  # description, then viaduct-run's options
  local what=$1
  shift
  if may_make_hosts; then
    check "$what" quietly "$viaduct_run" --hosts 2 "$@" "$idle"
  else
    skip "$what" "emulated hosts need root and network namespaces"
  fi
}
memif=viaduct-idle-$$
check "over shared memory" quietly mpiexec.hydra -n 2 "$idle"
check "over memif" quietly env VIADUCT_SHM=off \
  VIADUCT_PORTS="net_memif0,role=server,socket=$memif;net_memif0,role=client,socket=$memif" \
  mpiexec.hydra -n 2 "$idle"
check "over a port that wakes nobody" quietly env VIADUCT_SHM=off VIADUCT_EAL=--single-file-segments \
  VIADUCT_PORTS="net_memif0,role=server,zero-copy=yes,socket=$memif;net_memif0,role=client,zero-copy=yes,socket=$memif" \
  mpiexec.hydra -n 2 "$idle"
between_hosts "over mbcf" -n 2
between_hosts "over startx" -n 2 --channel startx
between_hosts "over AF_XDP" -n 2 --port-kind af_xdp
between_hosts "over the network and shared memory" -n 4
finish
