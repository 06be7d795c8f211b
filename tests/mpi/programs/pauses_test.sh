#!/bin/bash
# MPI programs between emulated hosts whose ranks lose their CPU for 0.5 to 25 ms now and then: none
# may get stuck, however its messages, acknowledgements and credit are delayed. Prints TAP.
# Arguments: viaduct-run, stress, the preloaded library that takes the CPU away (pauses.c).
viaduct_run=$(realpath "$1") stress=$(realpath "$2") pauses=$(realpath "$3")
source "$(dirname "${BASH_SOURCE[0]}")/../../tap.sh"

passes() {  # exit status 0, something was tested, and the ranks were really stopped
  local said
  export PAUSED_PROGRAM=/${stress##*/} PAUSES_LOG=$scratch/pauses
  empty "$PAUSES_LOG"
  said=$(LD_PRELOAD=$pauses timeout 120 "$viaduct_run" --hosts 2 "$@" 2>&1) ||
    { echo "exit status $?"; echo "$said"; return 1; }
  grep -q '^ok' <<<"$said" || { echo "$said"; return 1; }
  (($(wc -c <"$PAUSES_LOG") > 10)) || { echo "no rank was stopped"; return 1; }
}

on_hosts() {  # description, arguments of viaduct-run
  local what=$1
  shift
  if may_make_hosts; then check "$what" passes "$@"; else skip "$what" "emulated hosts need root and network namespaces"; fi
}

for channel in mbcf startx; do
  on_hosts "stress, 4 ranks over $channel, paused" -n 4 --channel "$channel" "$stress" --seeds 1:40
  VIADUCT_FAULTS=loss=1% on_hosts "stress, 3 ranks over $channel, paused, frames are lost" \
    -n 3 --channel "$channel" "$stress" --seeds 41:70
done
finish
