#!/bin/bash
# A rank is killed in the middle of communication: the job must end with an error within seconds and
# leave nothing behind. And processes that wait for a dead process hear of it, if the launcher does
# not end them before. Prints TAP. Arguments: stress, viaduct-run, survivors.
viaduct_run=$(realpath "$2")
source "$(dirname "${BASH_SOURCE[0]}")/../../tap.sh"
source "$(dirname "${BASH_SOURCE[0]}")/deaths.sh"
copy_programs "$1" "$3"
mine=$scratch/stress

beds() { ip netns list 2>/dev/null | grep -o '^vrun-[0-9]*-[0-9]*' | sort -u; }
bed_of_mine() { beds | grep -q "^vrun-$launcher-"; }
no_bed_of_mine() { ! bed_of_mine; }
# kill_one RANKS WHICH LAUNCHER...: starts a long job, kills one of its ranks.
kill_one() {
  local ranks=$1 which=$2 victim status
  shift 2
  "$@" "$mine" --seeds 1:100000000 >"$scratch/out" 2>&1 &
  launcher=$!
  within 300 are_running_or_ended "$ranks"
  are_running "$ranks" || { echo "did not start"; cat "$scratch/out"; end_all; return 1; }
  victim=$(processes | sort -n | sed -n "${which}p")
  kill -KILL "$victim"
  within 100 ended || { echo "the job goes on"; kill "$launcher"; within 100 ended; return 1; }
  wait "$launcher"
  status=$?
  echo "exit status $status"
  ((status != 0)) || return 1
  within 20 nothing_left || { echo "processes are left"; return 1; }
  # Shared memory has no name and goes with the processes.
  within 20 no_bed_of_mine || { echo "the bed is left"; return 1; }
}

check "a receive of what a dead process had announced fails" notices announced
check "the death of a process that has never said anything is noticed" notices stranger
check "a process that calls exit() without MPI_Finalize counts as dead" notices leaver
check "who looks only every 10 ms notices a death in time" notices napper
check "who only probes for a dead process hears of its death" notices probed
check "what a dead process has said is received, and its death disturbs no other call" notices speaker
check "receives from anybody fail where the dead process could have sent, and nowhere else" notices elsewhere
check "who is kept busy by others notices a death as well" notices busy
check "a send that waits for a process when it dies fails" notices connecting
check "a long message from a process that dies fails in its middle, and others go on" notices transfer

for ranks in 3 5; do
  check "every epoch with a dead process ends, and its locks go on, among $ranks processes" \
    notices windows mpiexec.hydra -n $ranks
done
for ranks in 3 4 7; do
  what="no survivor of $ranks takes a collective without the dead process for complete"
  check "$what" notices collectives mpiexec.hydra -n $ranks
  VIADUCT_NODE_RANKS=2 check "$what, by nodes" notices collectives mpiexec.hydra -n $ranks
  VIADUCT_TWO_STAGE=off VIADUCT_OVERSUBSCRIBED=off check "$what, in one stage" notices collectives mpiexec.hydra -n $ranks
  check "$ranks processes make no communicator with a dead one, and none waits forever" \
    notices constructors mpiexec.hydra -n $ranks
done

check "2 ranks in memory, the first is killed" kill_one 2 1 mpiexec.hydra -n 2
check "4 ranks in memory, the last is killed" kill_one 4 4 mpiexec.hydra -n 4
for channel in mbcf startx; do
  what="no survivor of 4 on two hosts over $channel takes such a collective for complete"
  if may_make_hosts; then
    VIADUCT_DEAD_AFTER_MS=500 check "$what" \
      notices collectives "$viaduct_run" -n 4 --hosts 2 --channel $channel
  else
    skip "$what" "emulated hosts need root and network namespaces"
  fi
  what="every epoch with a dead process ends, between hosts over $channel"
  if may_make_hosts; then
    VIADUCT_DEAD_AFTER_MS=500 check "$what" \
      notices windows "$viaduct_run" -n 4 --hosts 2 --channel $channel
  else
    skip "$what" "emulated hosts need root and network namespaces"
  fi
  what="2 ranks on two hosts over $channel, the second is killed"
  if may_make_hosts; then
    check "$what" kill_one 2 2 "$viaduct_run" -n 2 --hosts 2 --channel $channel
  else
    skip "$what" "emulated hosts need root and network namespaces"
  fi
done
finish
