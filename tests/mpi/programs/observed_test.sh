#!/bin/bash
# What processes tell about themselves: counters at MPI_Finalize, their state on a signal, what they
# wait for when that takes long, and that one has ended without MPI_Finalize. Prints TAP. Arguments:
# observed, viaduct-run.
program=$(realpath "$1") viaduct_run=$(realpath "$2")
source "$(dirname "${BASH_SOURCE[0]}")/../../tap.sh"
# A sanitizer would turn a rank's SIGSEGV into a report and an ordinary exit.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0
mine=$scratch/observed
cp "$program" "$mine"
LD_LIBRARY_PATH=$(dirname "$(ldd "$program" | sed -n 's/.*libmpi_abi.* => \(.*\) (.*/\1/p')")
export LD_LIBRARY_PATH

said() { grep -Eq -- "$1" "$scratch/out"; }
ended() { ! kill -0 "$launcher" 2>/dev/null; }
all_said() {
  local pattern
  for pattern in "${patterns[@]}"; do said "$pattern" || return 1; done
}
start() {  # how, launcher...
  local how=$1
  shift
  empty "$scratch/out"
  "$@" "$mine" "$how" >>"$scratch/out" 2>&1 &
  launcher=$!
}
stop() {
  kill "$launcher" 2>/dev/null
  within 50 ended || kill -9 "$launcher"
  end_all
  cat "$scratch/out"
}
# Each of the patterns is found in what is said.
says() {  # how, launcher... -- patterns
  local how=$1 result
  local -a command=() patterns
  shift
  while [[ $1 != -- ]]; do command+=("$1"); shift; done
  shift
  patterns=("$@")
  start "$how" "${command[@]}"
  within 150 all_said
  result=$?
  stop
  return $result
}
# The same after a signal to all ranks.
dumps() {  # signal, how, launcher... -- patterns
  local signal=$1 how=$2 result pid
  local -a command=() patterns
  shift 2
  while [[ $1 != -- ]]; do command+=("$1"); shift; done
  shift
  patterns=("$@")
  start "$how" "${command[@]}"
  within 150 said '^started' && sleep 0.3
  for pid in $(processes); do kill "-$signal" "$pid"; done
  within 50 all_said
  result=$?
  stop
  return $result
}
lines() { grep -Ec -- "$1" "$scratch/out"; }

# ---- long waits --------------------------------------------------------------------------------

export VIADUCT_HANG_REPORT_SECONDS=1
check "who waits in a cycle says for whom" says cycle mpiexec.hydra -n 3 -- \
  'rank 0: MPI_Recv has waited [0-9]+ s for a receive from rank 1, tag 7, MPI_COMM_WORLD, at most 4 bytes: no message yet; that process is in MPI' \
  'rank 2: MPI_Recv has waited [0-9]+ s for a receive from rank 0, tag 7' 'SIGUSR1: the whole state'
check "ranks in different collectives say in which" says mismatch mpiexec.hydra -n 3 -- \
  'rank 0: MPI_Recv has waited [0-9]+ s for a receive from rank 1, tag 9' \
  'rank 1: MPI_Barrier has waited [0-9]+ s for a collective operation on MPI_COMM_WORLD: receive from rank 0, collective'
check "a probe says for what, and whoever is not in MPI is said not to be" says probe mpiexec.hydra -n 2 -- \
  'rank 0: MPI_Probe has waited [0-9]+ s for a message from any rank, tag 5, MPI_COMM_WORLD'
reports_once() {
  start patient mpiexec.hydra -n 2
  within 150 ended
  stop
  [[ $(lines 'has waited') == 1 ]]
}
check "a wait that is meant is reported once, not each time" reports_once
is_silent() {
  VIADUCT_HANG_REPORT_SECONDS=0 start patient mpiexec.hydra -n 2
  within 150 ended
  stop
  [[ $(lines 'viaduct') == 0 ]]
}
check "reports can be turned off" is_silent
unset VIADUCT_HANG_REPORT_SECONDS

# ---- dumps -------------------------------------------------------------------------------------

check "a signal makes ranks tell their state" dumps USR1 cycle mpiexec.hydra -n 3 -- \
  'rank 0: in MPI_Recv, has waited .* for a receive from rank 1, tag 7' \
  'rank 2: operations under way: 1' 'rank 2:   receive from rank 0, tag 7, MPI_COMM_WORLD, at most 4 bytes: no message yet' \
  'rank 1: rank 2 by shm, ring of .*; that process is in MPI' 'rank 1:   pid [0-9]+, [0-9]+ bytes in the ring'
check "messages without receives and sends without are told, and who is not in MPI says that it heard" \
  dumps USR1 busy mpiexec.hydra -n 3 -- \
  'rank 0:   send to rank 1, tag 4, MPI_COMM_WORLD, 1048576 bytes: announced; its receive has not been called' \
  'rank 1: messages without a receive: 2' 'rank 1:   from process 0, rank 0 of context [0-9]+, tag 3, 4 bytes' \
  'tag 4, 1048576 bytes, announced' 'rank 2: its state was asked for, and follows as soon as it waits in MPI'
check "who polls with MPI_Test tells its state as well" dumps USR1 poll mpiexec.hydra -n 2 -- \
  'rank 0: .*in MPI_Test' 'receive from rank 1, tag 7'
check "a program keeps its own handler" dumps USR1 handler mpiexec.hydra -n 2 -- "the program's own handler"
keeps_quiet() { ! said 'operations under way'; }
check "... and nothing else is said" keeps_quiet
VIADUCT_DUMP_SIGNAL=SIGUSR2 check "another signal can be had" dumps USR2 handler mpiexec.hydra -n 2 -- \
  'rank 0: operations under way: 1'
between_hosts() {  # description, command of this script, its arguments with HOSTS for viaduct-run
  local what=$1
  shift
  if may_make_hosts; then
    check "$what" "${@/#HOSTS/$viaduct_run}"
  else
    skip "$what" "emulated hosts need root and network namespaces"
  fi
}
between_hosts "the state of the link is told" dumps USR1 cycle HOSTS -n 2 -- \
  'rank 0: rank 1 by mbcf on .*; that process is in MPI' \
  'rank 0:   02:[0-9a-f:]+: up, MTU 1500, round trip .* heard of .* ago, .*timer in ' \
  'rank 0:     low lane: sends: [0-9]+ waiting, [0-9]+ in flight, .*credit' 'rank 0: mbcf link: frames_sent'
VIADUCT_HANG_REPORT_SECONDS=1 between_hosts "between hosts, too, it is known who is in MPI" \
  says cycle HOSTS -n 2 --channel startx -- 'rank 0: MPI_Recv has waited .* that process is in MPI'
for channel in mbcf startx; do
  VIADUCT_STATS=1 VIADUCT_FAULTS=loss=10%,corrupt=10%,seed=3 \
    between_hosts "what was dropped and sent again is told at the end, $channel" \
    says talk HOSTS -n 2 --channel $channel -- \
    "rank 0: $channel link: frames_sent .*(retransmits|probes) [1-9]" "drop_checksum [1-9]" \
    "rank 0: to rank 1 by $channel on .*; .*(retransmits|probes) [1-9]"
done

# ---- ends --------------------------------------------------------------------------------------

ends_with_one_line() {
  start die "$viaduct_run" -n 4 --hosts 2
  within 150 ended
  stop
  diff <(grep -v ^started "$scratch/out") <(echo "viaduct-run: rank 3 on host1 was killed by signal 11 (SIGSEGV)")
}
between_hosts "of a rank that is killed there is one line, which names it and the signal" ends_with_one_line
check "exit() without MPI_Finalize is said by its name" says leave mpiexec.hydra -n 3 -- \
  'rank 2 ends without MPI_Finalize: the program has called exit\(\) or returned from main\(\)'
# Where the launcher does not notice an end (it is a shell that it watches), the ranks do; but not
# each of them has to say so.
one_rank_says() {  # how, pattern
  start "$1" mpiexec.hydra -n 4 sh -c '"$0" "$@"; sleep 5'
  within 150 ended
  stop
  said "$2" && [[ $(lines 'was lost') == 1 ]]
}
check "one of its peers says so as well" one_rank_says leave \
  'process 3 of MPI_COMM_WORLD was lost: its process on this node \(pid [0-9]+\) has called exit\(\) without MPI_Finalize'
check "one of the peers of a killed process says that it was" one_rank_says die \
  'process 3 of MPI_COMM_WORLD was lost: its process on this node \(pid [0-9]+\) was ended by a signal or _exit\(\)'
finish
