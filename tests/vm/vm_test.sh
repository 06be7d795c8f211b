#!/bin/bash
# viaduct-vm as its users meet it. Prints TAP. Argument: the program. A boot takes 10 s and on a busy
# machine several times that, so each one answers many questions.
source "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
vm=$(realpath "$1")
mkdir "$scratch/kept" "$scratch/tmp" "$scratch/a directory"
# Everything viaduct-vm starts has this in its environment, which is how we find it again.
mark=VM_TEST=$scratch
booting() { boots_with "$mark"; }
nothing_left() { nothing_left_with "$mark" && [[ -z $(ls -A "$scratch/tmp") ]]; }
cleanup() {
  local pid
  for pid in $(processes_with "$mark"); do kill -9 "$pid" 2>/dev/null; done
  rm -rf "$scratch"
}
trap cleanup EXIT

run_vm() { exec env "$mark" TMPDIR="$scratch/tmp" "$vm" "$@"; }
# start NAME OPTION...: in the background; its output goes to NAME.out, its errors to NAME.err. The
# time is for a machine with much else to do.
start() {
  local name=$1
  shift
  run_vm --timeout 800 "$@" <&0 >"$scratch/$name.out" 2>"$scratch/$name.err" &
}
said() {  # NAME LINE
  grep -aqx -- "$2" "$scratch/$1.out" && return
  head -c 4000 "$scratch/$1.out" | cat -v
  tail -n 30 "$scratch/$1.err"
  return 1
}
exits() {  # expected status, process
  local rc
  wait "$2"
  rc=$?
  echo "exit $rc, expected $1"
  [[ $rc == "$1" ]]
}

# A machine without a program: /dev/null in its place.
without() { refuses 77 "depmod, modprobe not found; run: apt-get install .*kmod" \
  unshare --mount bash -c 'mount --bind /dev/null "$(readlink -f "$(command -v depmod)")" && exec "$@"' bash "$vm" true; }
offline() { refuses 77 "; run apt-get update, or mend" \
  unshare --net env XDG_CACHE_HOME="$scratch/cache" "$vm" true; }
not_there() {
  (cd /proc/self && run_vm true) >"$scratch/log.out" 2>&1
  local rc=$?
  echo "exit $rc: $(<"$scratch/log.out")"
  [[ $rc == 125 ]] && grep -q "^viaduct-vm: the guest .* could not enter /proc/.*console ends with" "$scratch/log.out"
}

echo "TAP version 13"
check "--help is a manual page" has_sections \
  "$vm" NAME SYNOPSIS DESCRIPTION OPTIONS ENVIRONMENT EXAMPLES "EXIT STATUS"
check "no command" refuses 2 "a command is needed" "$vm"
check "unknown option" refuses 2 "--host" "$vm" --host 2 true
check "too many hosts" refuses 2 "--hosts: takes a number from 1 to 2, not '3'" "$vm" --hosts 3 true
check "memory is not a number" refuses 2 "--memory: takes a number" "$vm" --memory much true
check "no value" refuses 2 "--timeout" "$vm" --timeout
check "SR-IOV is for one host" refuses 2 "--sriov is for one host" "$vm" --hosts 2 --sriov true
check "what is to be written is a directory" refuses 2 "--writable: takes a directory" "$vm" --writable "$vm" true
check "and not everything" refuses 2 "--writable: takes a directory other than /" "$vm" --writable / true
if may_make_hosts; then
  check "a program is missing" without
  check "no kernel and no network" offline
fi

# What is asked of one guest. It prints lines; after "first" it waits for us.
cat >"$scratch/questions" <<'GUEST'
echo first
for ((i = 0; i < 600; i++)); do [[ -e $KEPT/go ]] && break; sleep 0.1; done
[[ -e $KEPT/go ]] && echo "what the host writes is seen"
echo "directory $(pwd), arguments $# <$1> <$2>, variable <$ODD>, host $VIADUCT_VM_HOST of $VIADUCT_VM_HOSTS"
[[ $(id -u) == 0 && -z $(cat) ]] && echo "root, and no input"
echo kept >"$KEPT/result" && echo lost >"$KEPT/../lost" && rm "$KEPT/../precious" && echo "files are written"
echo "to error, by name" >/dev/stderr
rdma link
received() { cat /sys/class/net/veth2/statistics/rx_packets; }
# Two ends of a test; the client is started again until the server listens.
pair() {  # server's words -- client's words
  local server=() i
  while [[ $1 != -- ]]; do server+=("$1"); shift; done
  shift
  "${server[@]}" >/dev/null &
  for ((i = 0; i < 40; i++)); do
    sleep 0.5
    "$@" >/dev/null && wait $! && return
    kill -0 $! || return
  done
  return 1
}
before=$(received)
pair ib_send_lat -d rxe1 -x 1 -n 200 -s 64 -- ib_send_lat -d rxe2 -x 1 -n 200 -s 64 127.0.0.1 &&
  echo "ib_send_lat passes"
(($(received) >= before + 200)) && echo "packets cross the wire"
pair ibv_rc_pingpong -d rxe1 -g 1 -n 100 -- ibv_rc_pingpong -d rxe2 -g 1 -n 100 host1 &&
  echo "ibv_rc_pingpong passes"
pair rping -s -a 10.9.0.1 -C 5 -- rping -c -a 10.9.0.1 -I 10.9.0.2 -C 5 && echo "rdma_cm passes"
sleep 1000 & # holds our output
cat "$KEPT/bytes"
exit 7
GUEST
head -c 300000 /dev/urandom >"$scratch/kept/bytes"
touch "$scratch/precious"
cd "$scratch/a directory" || exit 1
export KEPT=$scratch/kept ODD=$'a\'b\n"c" $d \\'
start questions --verbose --writable "$scratch/kept" bash "$scratch/questions" "" "two words" <<<"not for the guest"
guest=$!
until [[ -s $scratch/questions.out ]] || ! kill -0 $guest 2>/dev/null; do sleep 0.2; done
touch "$scratch/kept/go"
wait $guest
status=$?
if ((status == 77)); then
  skip "guests" "$(tail -n 1 "$scratch/questions.err")"
  finish
fi
check "the exit status is the command's" test $status == 7
check "output is there as it is written" said questions "what the host writes is seen"
check "directory, arguments, environment" grep -aqzF \
  "directory $PWD, arguments 2 <> <two words>, variable <$ODD>, host 1 of 1"$'\n' "$scratch/questions.out"
check "root, and no input" said questions "root, and no input"
check "files can be written" said questions "files are written"
check "those in a writable directory stay" grep -qx kept "$scratch/kept/result"
check "others do not" test ! -e "$scratch/lost"
check "and are not removed either" test -e "$scratch/precious"
check "every byte comes back" cmp <(tail -c 300000 "$scratch/questions.out") "$scratch/kept/bytes"
check "error output is kept apart" grep -qx "to error, by name" "$scratch/questions.err"
check "--verbose tells what is done" grep -qx "viaduct-vm: the command starts" "$scratch/questions.err"
check "... and shows the console" grep -q "host1 console: .*Linux version" "$scratch/questions.err"
check "first RDMA device" said questions "link rxe1/1 state ACTIVE physical_state LINK_UP netdev veth1 "
check "second RDMA device" said questions "link rxe2/1 state ACTIVE physical_state LINK_UP netdev veth2 "
check "messages pass between them" said questions "ib_send_lat passes"
check "... over the wire" said questions "packets cross the wire"
check "libibverbs' own ping-pong passes" said questions "ibv_rc_pingpong passes"
check "connections by address pass" said questions "rdma_cm passes"
check "nothing is left" nothing_left

# Two at once: a command that dies, and one that never ends.
start dies --job --memory 1024 --cpus 1 sh -c 'echo "$(nproc) processor, input <$(cat)>"
  awk "/MemTotal/ && \$2 < 1048576 && \$2 > 800000 { print \"1 GiB of memory\" }" /proc/meminfo; kill -SEGV $$' <<<"some words"
dies=$!
start endless sh -c 'echo up; sleep 1000'
endless=$!
check "128 + the signal that ended the command" exits 139 $dies
check "--cpus, and a job's input" said dies "1 processor, input <some words>"
check "--memory" said dies "1 GiB of memory"
check "another runs beside it" within 3000 said endless up
kill -9 $endless
check "killed with SIGKILL, it leaves nothing" within 50 nothing_left
wait $endless 2>/dev/null
check "without --verbose only the command is heard" test ! -s "$scratch/dies.err"

start interrupted true
interrupted=$!
within 600 booting
kill -TERM $interrupted
check "SIGTERM" exits 143 $interrupted
check "... leaves nothing" nothing_left
check "time limit" refuses 124 "not done within 2 s; .*--timeout" env "$mark" "$vm" --timeout 2 true
check "... leaves nothing" nothing_left
check "a directory the guest does not have" not_there

cat >"$scratch/two" <<'GUEST'
echo "I am $VIADUCT_VM_HOST of $VIADUCT_VM_HOSTS at $VIADUCT_VM_ADDRESS"
rdma link
if [[ $VIADUCT_VM_HOST == 1 ]]; then
  ib_send_lat -d rxe1 -x 1 -n 100 -s 64 >/dev/null && echo "served" >&2
  exit 3
fi
for ((i = 0; i < 100; i++)); do ib_send_lat -d rxe2 -x 1 -n 100 -s 64 host1 >/dev/null 2>&1 && break; sleep 0.5; done
((i < 100)) && printf 'asked %s' "$VIADUCT_VM_PEER"
exec no-such-command
GUEST
start two --hosts 2 bash "$scratch/two"
check "--hosts 2: the higher exit status" exits 127 $!
check "first host" said two "host1: I am 1 of 2 at 10.9.0.1"
check "... and its RDMA device" said two "host1: link rxe1/1 state ACTIVE .* netdev eth0 "
check "second host" said two "host2: I am 2 of 2 at 10.9.0.2"
check "... and its RDMA device" said two "host2: link rxe2/1 state ACTIVE .* netdev eth0 "
check "messages pass between the hosts" said two "host2: asked 10.9.0.1"
check "error output is labelled, too" grep -qx "host1: served" "$scratch/two.err"
check "nothing is left at the end" nothing_left
finish
