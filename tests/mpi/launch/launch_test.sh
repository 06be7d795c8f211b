#!/bin/bash
# join_job() under a real process manager. Prints TAP. Arguments: the program (launch_program), the
# manager: hydra, hydra-port, openmpi, slurm-pmi2 or slurm-pmix.
set -u
export LC_ALL=C
program=$(realpath "$1")
manager=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

case $manager in
  hydra) speaks=pmi1 start=(mpiexec.hydra) ;;
  hydra-port) speaks=pmi1 start=(mpiexec.hydra -pmi-port) ;;
  openmpi) speaks=pmix start=(mpirun.openmpi --allow-run-as-root --oversubscribe) ;;
  # -K: srun lets the others live when a process dies, unless it is told not to.
  slurm-pmi2) speaks=pmi1 start=(srun -K --mpi=pmi2) ;;
  slurm-pmix) speaks=pmix start=(srun -K --mpi=pmix) ;;
  *) echo "launch_test: unknown manager '$manager'" >&2; exit 2 ;;
esac

skip_all() { printf 'TAP version 13\nok 1 - %s # SKIP %s\n1..1\n' "$manager" "$*"; exit 0; }

command -v "${start[0]}" >/dev/null || skip_all "${start[0]} was not found; see tools/install-packages"
if [[ $manager == slurm-* && -z ${INSIDE_SLURM:-} ]]; then
  said=$("$here/with_slurm" true 2>&1)
  (($? != 77)) || skip_all "$said"
  INSIDE_SLURM=yes exec "$here/with_slurm" "$BASH" "${BASH_SOURCE[0]}" "$@"
fi

source "$here/../../tap.sh"
# A copy in the scratch directory, so that what is left of it can be found.
mine=$scratch/launch_program
cp "$program" "$mine"
export TMPDIR=$scratch  # for what mpirun leaves when it is killed

ended() { ! kill -0 "$1" 2>/dev/null; }

job() {  # ranks, arguments of the program
  local ranks=$1
  shift
  timeout 60 "${start[@]}" -n "$ranks" "$mine" "$@"
}
status_is() {  # expected exit status (or "any" but 0), command...
  local expected=$1 rc
  shift
  "$@"
  rc=$?
  echo "exit $rc, expected $expected"
  if [[ $expected == any ]]; then ((rc != 0 && rc != 124)); else ((rc == expected)); fi
}

ranks_of() { sed -n 's/^[a-z0-9]* rank \([0-9]*\)\/.* local \1\/.*/\1/p' "$1" | sort -n | tr '\n' ' '; }
job_of() { sed -n 's/.* job //p' "$1" | sort -u; }
exchanges() {  # ranks
  job "$1" cards >"$scratch/cards" || return 1
  cat "$scratch/cards"
  [[ $(ranks_of "$scratch/cards") == "$(seq -s ' ' 0 $(($1 - 1))) " ]] || return 1
  [[ $(grep -c "^$speaks rank [0-9]*/$1 local [0-9]*/$1 " "$scratch/cards") == "$1" ]] || return 1
  [[ $(job_of "$scratch/cards" | wc -l) == 1 ]]
}
jobs_differ() {
  exchanges 2 && mv "$scratch/cards" "$scratch/cards1" && exchanges 2 || return 1
  [[ $(job_of "$scratch/cards") != "$(job_of "$scratch/cards1")" ]]
}

aborts() {  # exit status, ranks, code, aborting rank
  status_is "$1" job "$2" abort "$3" "$4" && within 50 nothing_left
}

# Starts a job whose ranks wait, in a fence or anywhere; its launcher is $launcher, its ranks are in
# $scratch/pids.
start_waiting() {  # ranks, what
  empty "$scratch/pids"
  "${start[@]}" -n "$1" "$mine" "$2" >>"$scratch/pids" 2>"$scratch/err" &
  launcher=$!
  within 200 all_said "$1" || { cat "$scratch/err"; return 1; }
  sleep 0.5  # those that were to enter the fence have
}
all_said() { [[ $(grep -c '^pid ' "$scratch/pids") == "$1" ]]; }

# Slurm's daemon for a step can itself crash when the step ends in the middle of a PMIx fence (22.05:
# in PMIx_server_finalize). Then srun waits for ever, which is not ours to mend.
step_crashed() { [[ $manager == slurm-pmix ]] && ! grep -qsx slurmstepd /proc/[0-9]*/comm; }
node_is_idle() { [[ $(sinfo -h -o %t) == idle ]]; }
# Judges a job that has not ended in time, and ends it.
not_ended() {
  local rc=1 crashed=no
  ! step_crashed || crashed=yes
  grep -s . /proc/[0-9]*/{comm,wchan}
  kill -9 "$launcher" 2>/dev/null
  end_all
  if [[ $crashed == yes ]]; then
    scancel --user "$(id -un)"
    within 300 node_is_idle || return 1
    echo "slurmstepd itself has crashed"
    rc=77
  fi
  return $rc
}
rank_is_killed() {  # what the others do
  start_waiting 3 "$1" || return 1
  kill -9 "$(sed -n '2s/pid //p' "$scratch/pids")"
  within 100 ended "$launcher" || { not_ended; return; }
  status_is any wait "$launcher" || return 1
  within 50 nothing_left || not_ended
}
launcher_is_killed() {
  start_waiting 3 "$1" || return 1
  kill -9 "$launcher"
  wait "$launcher"
  within 100 nothing_left || not_ended
}

# CPU time of a process in hundredths of a second.
cpu_time() { sed 's/.*) //' "/proc/$1/stat" | awk '{print $12 + $13}'; }
fence_sleeps() {
  local before used
  start_waiting 3 fence || return 1
  before=$(cpu_time_of_ranks)
  sleep 1
  used=$(($(cpu_time_of_ranks) - before))
  echo "in a second three ranks used $used hundredths of a second of CPU time"
  kill "$launcher"
  within 100 ended "$launcher" || { not_ended; return; }
  end_all
  # The next job would wait for what is left of this one.
  [[ $manager != slurm-* ]] || within 300 node_is_idle || return 1
  ((used < 20))
}
cpu_time_of_ranks() {
  local pid used=0
  while read -r _ pid; do used=$((used + $(cpu_time "$pid"))); done <"$scratch/pids"
  echo "$used"
}

# One word for each rank, and no complaint although rank 0 has long left.
leaves_early() {
  job 3 early >"$scratch/early" || return 1
  [[ $(grep -c '^done$' "$scratch/early") == 3 ]]
}

announced_but_absent() {
  status_is 1 env "$@" "$mine" cards >"$scratch/absent" 2>&1
  cat "$scratch/absent"
  [[ $(grep -c . "$scratch/absent") == 2 ]] && grep -q '^launch_program: ' "$scratch/absent"
}

echo "TAP version 13"
check "one rank" exchanges 1
check "four ranks exchange values" exchanges 4
check "two jobs have different names" jobs_differ
check "a rank that is ready early is not taken for a failed one" leaves_early
check "a fence uses no CPU time" fence_sleeps
check "abort of a single rank: its code is the launcher's status" aborts 7 1 7 0
case $manager in
  # srun reports the highest status, and the others were killed.
  slurm-*) check "abort ends the other ranks" aborts any 3 7 1 ;;
  *) check "abort ends the other ranks; the code is the launcher's status" aborts 7 3 7 1 ;;
esac
check "abort with code 0 is no success" aborts any 3 0 2
check "a rank is killed, the others wait" rank_is_killed wait
check "a rank is killed, the others are in a fence" rank_is_killed fence
check "the launcher is killed, the ranks wait" launcher_is_killed wait
check "the launcher is killed, the ranks are in a fence" launcher_is_killed fence
case $speaks in
  pmi1) check "a manager that is not there" announced_but_absent PMI_FD=99 ;;
  pmix) check "a server that is not there" announced_but_absent PMIX_NAMESPACE=x PMIX_RANK=0 ;;
esac
finish
