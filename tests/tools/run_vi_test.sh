#!/bin/bash
# viaduct-run --channel vi where no device is: in guests. Prints TAP. Argument: viaduct-run. A boot takes
# long, so each one answers many questions.
source "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
run=$(realpath "$1")
mkdir "$scratch/kept"
# Everything viaduct-run starts here has this in its environment, which is how we find it again.
mark=RUN_VI_TEST=$scratch
nothing_left() { nothing_left_with "$mark"; }
is_booting() { boots_with "$mark" || ended; }
ended() { ! kill -0 "$runner" 2>/dev/null; }
cleanup() {
  local pid
  for pid in $(processes_with "$mark"); do kill -9 "$pid" 2>/dev/null; done
  rm -rf "$scratch"
}
trap cleanup EXIT

start() {  # NAME, options and program: in the background, with the standard input of the caller
  local name=$1
  shift
  empty "$scratch/$name.out"
  empty "$scratch/$name.err"
  env "$mark" KEPT="$scratch/kept" ODD=$'a\'b $d' "$run" --channel vi "$@" <&0 >>"$scratch/$name.out" 2>>"$scratch/$name.err" &
  runner=$!
}
said() { grep -qx -- "$2" "$scratch/$1.out" || { cat "$scratch/$1.out" "$scratch/$1.err"; return 1; }; }
said_by_all() { [[ $(grep -c "$1" "$scratch/two.out") == 4 ]] || ended; }

if compgen -G '/sys/class/infiniband_verbs/uverbs*' >/dev/null; then
  skip "guests" "this machine has an RDMA device, which viaduct-run uses"
  finish
fi

# Each rank says where it is, then waits for a signal; rank 3 is killed by another one. The shell has words of its
# own about signals.
cat >"$scratch/job" <<'SH'
exec 2>/dev/null
[ "$PMI_RANK" != 0 ] || echo "input <$(cat)>"
echo "rank $PMI_RANK is $MPI_LOCALRANKID of $MPI_LOCALNRANKS on $(uname -n)"
echo "$VIADUCT_CHANNEL, arguments $# <$1> <$2>, variable <$ODD>" >"$KEPT/rank$PMI_RANK"
trap 'told=yes' USR1
echo "ready $PMI_RANK"
until [ -n "$told" ]; do sleep 0.1; done
echo "signalled $PMI_RANK"
[ "$PMI_RANK" != 3 ] || { sleep 3; kill -SEGV $$; }
sleep 600
SH
cd "$scratch" || exit 1
start two -n 4 --writable kept sh job "two words" "" < <(echo "two"; sleep 1; echo "lines")
within 3000 said_by_all ready
kill -USR1 "$runner"
within 600 ended
wait "$runner"
status=$?
if ((status == 77)); then
  skip "guests" "$(tail -n 1 "$scratch/two.err")"
  finish
fi
check "2 + 2 in blocks, first" said two "rank 0 is 0 of 2 on host1"
check "... second" said two "rank 1 is 1 of 2 on host1"
check "... third" said two "rank 2 is 0 of 2 on host2"
check "... fourth" said two "rank 3 is 1 of 2 on host2"
check "standard input goes to rank 0" grep -qzF $'input <two\nlines>\n' "$scratch/two.out"
check "channel, arguments, environment, and a file that is kept" \
  diff "$scratch/kept/rank3" <(echo "vi, arguments 2 <two words> <>, variable <a'b \$d>")
check "SIGUSR1 reaches all ranks" said_by_all signalled
check "the rank that is killed is named, in one line" \
  diff "$scratch/two.err" <(echo "viaduct-run: rank 3 on host2 was killed by signal 11 (SIGSEGV)")
check "exit status" test $status == 139
check "nothing is left" nothing_left

start one --hosts 1 -n 2 sh -c 'echo "up $(uname -n) $(rdma link show | wc -l)"; trap "" TERM; while :; do sleep 1; done' </dev/null
within 3000 said one "up host1 2" >/dev/null
kill -TERM "$runner"
check "SIGTERM" returns 143 wait "$runner"
check "... leaves nothing" nothing_left
check "a guest has two devices" said one "up host1 2"
start killed --hosts 1 -n 1 true </dev/null
within 600 is_booting
kill -KILL "$runner"
check "SIGKILL leaves nothing" within 50 nothing_left
finish
