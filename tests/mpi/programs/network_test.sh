#!/bin/bash
# MPI programs between emulated hosts, over every channel, with and without faults. Prints TAP.
# Arguments: viaduct-run, how many jobs of stress, the channels of the other programs, stress,
# point_to_point, other programs that run with any number of ranks.
viaduct_run=$(realpath "$1") jobs=$2 all_on=$3 stress=$(realpath "$4") point_to_point=$(realpath "$5")
shift 5
others=()
for program; do others+=("$(realpath "$program")"); done
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
late_answers=$here/../launch/late_answers
source "$here/../../tap.sh"

passes() {  # exit status 0, and something was tested
  local said
  said=$(timeout 600 "$@" 2>&1) || { echo "exit status $?"; echo "$said"; return 1; }
  grep -q '^ok' <<<"$said" || { echo "$said"; return 1; }
}

on_hosts() {  # description, program and arguments
  local what=$1
  shift
  if may_make_hosts; then
    check "$what" passes "$viaduct_run" --hosts 2 --channel "$channel" "$@"
  else
    skip "$what" "emulated hosts need root and network namespaces"
  fi
}

for channel in mbcf startx; do
  on_hosts "point_to_point, 2 ranks over $channel" -n 2 "$point_to_point"
  on_hosts "point_to_point, 4 ranks over $channel" -n 4 "$point_to_point"
  for program in "${others[@]}"; do
    [[ " $all_on " == *" $channel "* ]] || continue
    on_hosts "${program##*/}, 4 ranks over $channel" -n 4 "$program"
  done
  on_hosts "stress, 4 ranks over $channel" -n 4 "$stress" --seeds 1:$jobs
  # Those that end the job first have left before rank 1 learns of its end.
  on_hosts "the process manager answers late, 3 ranks over $channel" -n 3 "$late_answers" 1 300 "$stress" --seeds 1:1
  for VIADUCT_WRITE_PROTOCOL in sr nsr; do
    [[ $channel == mbcf ]] || continue
    export VIADUCT_WRITE_PROTOCOL
    on_hosts "point_to_point, 2 ranks over $channel, $VIADUCT_WRITE_PROTOCOL" -n 2 "$point_to_point"
    on_hosts "stress, 4 ranks over $channel, $VIADUCT_WRITE_PROTOCOL" -n 4 "$stress" --seeds 1:$((jobs / 2))
    VIADUCT_FAULTS=loss=2%,dup=1%,reorder=2% VIADUCT_SHM=off \
      on_hosts "stress, 2 ranks over $channel, $VIADUCT_WRITE_PROTOCOL, with faults" -n 2 "$stress" --seeds 1:$((jobs / 2))
  done
  unset VIADUCT_WRITE_PROTOCOL
  export VIADUCT_SHM=off
  on_hosts "stress, 3 ranks over $channel, without shared memory" -n 3 "$stress" --seeds 1:$((jobs / 2))
  export VIADUCT_FAULTS=loss=2%,dup=1%,reorder=2%
  on_hosts "stress, 2 ranks over $channel, frames are lost, duplicated and reordered" -n 2 "$stress" --seeds 1:$((jobs / 2))
  unset VIADUCT_SHM VIADUCT_FAULTS
done
finish
