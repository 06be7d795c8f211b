#!/bin/bash
# viaduct-run as its users meet it. Prints TAP. Arguments: viaduct-run, an MPI program that runs with
# any number of processes and tells its success by its exit status, its arguments.
source "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
run=$(realpath "$1")
program=$(realpath "$2")
shift 2
program_arguments=("$@")

# What other runs on this machine have does not count: testbeds bear their owner's process id.
beds_of() { ip netns list | sed -n "s/^\(vrun-$1-[0-9]*\)-.*/\1/p" | sort -u; }
no_bed_of() { [[ -z $(beds_of "$1") ]]; }

# Where each rank is: rank, local rank, how many there, which network namespace.
kPlace='echo "$PMI_RANK $MPI_LOCALRANKID $MPI_LOCALNRANKS $(readlink /proc/self/ns/net)"'
readonly kPlace
placed() {  # expected "rank local localsize host", hosts numbered as they appear; options...
  local expected=$1 said
  shift
  said=$("$run" "$@" sh -c "$kPlace" | sort -n |
    awk '!($4 in host) {host[$4] = n++} {print $1, $2, $3, host[$4]}')
  diff <(echo "$said") <(echo "$expected")
}
on_a_machine_called() {  # host name, command...: viaduct-run in it is one on such a machine
  local real=$run run=$scratch/run_named
  printf '#!/bin/sh\nexec unshare --uts sh -c '\''hostname "$0" && exec "$@"'\'' %q %q "$@"\n' "$1" "$real" >"$run"
  chmod 755 "$run"
  "${@:2}"
}
ports_are() {  # what viaduct-run must have said to the processes; options...
  local expected=$1
  shift
  diff <("$run" "$@" sh -c '[ "$PMI_RANK" = 0 ] || exit 0; echo "$VIADUCT_CHANNEL $VIADUCT_PORTS"; ls /sys/class/net') <(echo "$expected")
}
no_name_of_ours() { ! "$run" -n 1 env | grep VIADUCT_ | grep -v -e ^VIADUCT_CHANNEL= -e ^VIADUCT_PORTS=; }
passes_input() { [[ $(echo "to rank 0" | "$run" -n 2 --hosts 2 sh -c '[ "$PMI_RANK" != 0 ] || cat') == "to rank 0" ]]; }
keeps_words() { [[ $("$run" -n 1 printf '<%s>' 'two words' "it's" '$HOME;*') == "<two words><it's><\$HOME;*>" ]]; }
mtu_is() { [[ $("$run" -n 1 --mtu "$1" cat /sys/class/net/p0/mtu) == "$1" ]]; }
side_by_side() {
  local one two
  "$run" -n 2 sleep 1 & one=$!
  "$run" -n 2 sleep 1 & two=$!
  wait "$one" && wait "$two"
}

# One line, and the others are ended.
names_the_killed() {  # signal, its number
  local status
  "$run" -n 4 --hosts 2 sh -c '[ "$PMI_RANK" != 3 ] || kill -"$1" "$$"; sleep 20' sh "$1" >"$scratch/out" 2>&1
  status=$?
  echo "exit $status"; cat "$scratch/out"
  ((status == 128 + $2)) &&
    diff "$scratch/out" <(echo "viaduct-run: rank 3 on host1 was killed by signal $2 (SIG$1)")
}
says_nothing_of_signals() {
  returns 137 "$run" -n 2 sh -c 'exit 137' >"$scratch/out" 2>&1
  ! grep killed "$scratch/out"
}
passes_signal() {  # to all ranks
  local runner
  empty "$scratch/out"
  "$run" -n 4 sh -c 'trap "echo signalled; exit 0" "$1"; echo ready; while :; do sleep 0.1; done' sh "$1" >>"$scratch/out" 2>/dev/null &
  runner=$!
  within 100 said_by_all ready && kill -"$1" "$runner" && within 50 said_by_all signalled && returns 0 wait "$runner"
}
said_by_all() { [[ $(grep -cx "$1" "$scratch/out") == 4 ]]; }

start_sleepers() {  # they ignore SIGTERM
  empty "$scratch/pids"
  "$run" -n 4 sh -c 'trap "" TERM; echo "$$"; while :; do sleep 1; done' >>"$scratch/pids" &
  runner=$!
  within 100 all_run
}
all_run() { [[ $(wc -l <"$scratch/pids") == 4 ]]; }
sleepers_ended() {
  local pid
  all_run || return 1
  while read -r pid; do
    # Where no parent collects them, dead processes stay in the process table.
    grep -s '^State:' "/proc/$pid/status" | grep -vq Z && return 1
  done <"$scratch/pids"
  return 0
}
signalled() {  # signal, exit status
  start_sleepers || return 1
  kill -"$1" "$runner"
  returns "$2" wait "$runner" && no_bed_of "$runner" && sleepers_ended
}
# The next run removes what a killed run has left, and nothing of a running one.
killed() {
  local dead living
  start_sleepers || return 1
  dead=$runner
  cp "$scratch/pids" "$scratch/dead_pids"
  kill -KILL "$dead"
  wait "$dead"
  ! no_bed_of "$dead" || { echo "no bed was left"; return 1; }
  empty "$scratch/stay"
  "$run" -n 1 sh -c 'while [ -e "$1" ]; do sleep 0.1; done' sh "$scratch/stay" & living=$!
  within 100 no_bed_of "$dead" || return 1
  cp "$scratch/dead_pids" "$scratch/pids"
  sleepers_ended || return 1
  [[ -z $(compgen -G "${TMPDIR:-/tmp}/vrun-$dead-*") ]] || { echo "its folder is left"; return 1; }
  within 100 has_bed_of "$living" || return 1
  "$run" -n 1 true || return 1
  has_bed_of "$living" || { echo "a living run has lost its bed"; return 1; }
  rm "$scratch/stay"
  returns 0 wait "$living" && no_bed_of "$living"
}
# A run was killed while it removed a testbed: any of its namespaces may be left.
half_removed() {
  local dead=4194305 testbed bed  # more than any process id
  testbed=$(dirname "$run")/viaduct-testbed bed=vrun-$dead-1
  "$testbed" up --name "$bed" --hosts 2 --ports 2 && ip netns del "$bed-$1" && ip netns del "$bed-$2" &&
    has_bed_of "$dead" && "$run" -n 1 true && no_bed_of "$dead"
}
has_bed_of() { ! no_bed_of "$1"; }

echo "TAP version 13"
check "--help is a manual page" has_sections \
  "$run" NAME SYNOPSIS DESCRIPTION OPTIONS ENVIRONMENT EXAMPLES "EXIT STATUS"
check "no program" refuses 2 "a program is needed" "$run" -n 4
check "unknown option" refuses 2 "unknown option '--host'" "$run" --host 2 true
check "option without value" refuses 2 "--hosts needs a value" "$run" --hosts
check "not a number" refuses 2 "-n takes a number from 1 to 1023, not 'four'" "$run" -n four true
check "fewer ports than processes" refuses 2 "--ports takes a number from 2" "$run" -n 4 --ports 1 true
check "too many processes on a host" refuses 2 "use more --hosts" "$run" -n 300 --hosts 1 true
check "too many ports" refuses 2 "use fewer --hosts" "$run" --hosts 200 --ports 5 true
check "unknown channel" refuses 2 "--channel must be mbcf, startx or vi, not 'shm'" "$run" --channel shm true
check "too many guests" refuses 2 "--channel vi takes at most [12] for --hosts, not '3'" "$run" --channel vi --hosts 3 true
check "guests have no ports" refuses 2 "are for mbcf and startx" "$run" --channel vi --mtu 9000 true
check "files are kept without --writable" refuses 2 "--writable is for --channel vi only" "$run" --writable . true
check "unknown kind of port" refuses 2 "--port-kind must be" "$run" --port-kind memif true
check "unknown bed" refuses 2 "--bed must be netns" "$run" --bed cloud true
check "what Hydra only may do" refuses 2 "-x is for Hydra only" "$run" -x host0 true
check "no Hydra" refuses 1 "no-hydra was not found; install it with" env MPIEXEC=no-hydra "$run" true

reason=
command -v mpiexec.hydra >/dev/null || reason="mpiexec.hydra was not found; see tools/install-packages"
unshare --mount --net true 2>/dev/null ||
  reason="no right to make network namespaces here (needs root with CAP_SYS_ADMIN and CAP_NET_ADMIN)"
if [[ -n $reason ]]; then
  skip "runs" "$reason"
  finish
fi

check "2 + 2 in blocks" placed "0 0 2 0
1 1 2 0
2 0 2 1
3 1 2 1" -n 4 --hosts 2
check "2 + 2 + 1" placed "0 0 2 0
1 1 2 0
2 0 2 1
3 1 2 1
4 0 1 2" -n 5 --hosts 3
check "a host without processes" placed "0 0 2 0
1 1 2 0
2 0 2 1
3 1 2 1" -n 4 --hosts 3
check "a machine that is called as a host" on_a_machine_called host1 placed "0 0 2 0
1 1 2 0
2 0 2 1
3 1 2 1" -n 4 --hosts 2
check "channel and ports" ports_are "startx net_af_xdp0,iface=p{n}
lo
p0
p1
p2" --channel startx --port-kind af_xdp
check "two hosts with one port are wired directly" ports_are "mbcf net_af_packet0,iface=p{n}
lo
p0" -n 2
check "the caller's ports are kept" env VIADUCT_PORTS='x{n}' "$run" -n 1 sh -c '[ "$VIADUCT_PORTS" = "x{n}" ]'
check "no variables of its own" no_name_of_ours
check "MTU" mtu_is 9000
check "standard input" passes_input
check "words stay words" keeps_words
check "exit status" returns 7 "$run" -n 2 sh -c 'exit 7'
check "side by side" side_by_side
check "a rank that is killed is named, in one line" names_the_killed SEGV 11
check "... whatever the signal" names_the_killed KILL 9
check "an exit status above 128 is no signal" says_nothing_of_signals
check "SIGUSR1 reaches all ranks" passes_signal USR1
check "SIGTERM" signalled TERM 143
if { ( kill -HUP "$BASHPID"; true ); } 2>/dev/null; then
  skip "SIGHUP" "it is ignored here, as under nohup"
else
  check "SIGHUP" signalled HUP 129
fi
check "SIGKILL, then the next run" killed
check "half a bed, then the next run" half_removed host0 switch
check "the other half" half_removed host0 host1
for channel in mbcf startx; do
  for kind in af_packet af_xdp; do
    check "an MPI program on 2 + 2, $channel, $kind" timeout 600 "$run" -n 4 --hosts 2 --channel $channel --port-kind $kind "$program" "${program_arguments[@]}"
  done
done
check "an MPI program on 2 hosts with jumbo frames" timeout 600 "$run" -n 2 --mtu 9000 "$program" "${program_arguments[@]}"
check "nothing is left" no_bed_of '[0-9]*'
finish
