#!/bin/bash
# viaduct-testbed as its users meet it. Prints TAP. Argument: the program.
source "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
testbed=$(realpath "$1")
bed=vtbt-$$
before=

cleanup() {
  "$testbed" down --name "$bed" >/dev/null 2>&1
  ip netns del "$bed-host7" 2>/dev/null
  rm -rf "$scratch"
}
trap cleanup EXIT

# Everything of the caller's namespace a testbed could leave behind.
left() { ip netns list | grep -e "$bed" | sort; ip -o link show | sed 's/^[0-9]*: \([^:]*\):.*/\1/' | sort; }

nothing_left() { diff <(echo "$before") <(left); }
tb() { local command=$1; shift; "$testbed" "$command" --name "$bed" "$@"; }

pings_everywhere() {  # hosts ports
  local from to p
  for ((from = 0; from < $1; from++)); do
    for ((to = 0; to < $1; to++)); do
      for ((p = 0; p < $2; p++)); do
        tb exec "host$from" -- ping -q -c 1 -W 2 "10.77.$p.$((to + 1))" || return 1
      done
    done
  done
}

# Frames to another port's address leave and arrive through the ports of the same number.
frames_seen() { tb exec "$1" -- cat "/sys/class/net/$2/statistics/rx_packets"; }
uses_port() {
  local before after
  before=$(frames_seen host1 p1)
  tb exec host0 -- ping -q -c 5 -i 0.01 -W 2 10.77.1.2 || return 1
  after=$(frames_seen host1 p1)
  echo "host1 p1 received $before, then $after frames"
  ((after >= before + 5))
}

# A frame whose sender's address is another host's, as damage can make it, must not draw that host's
# traffic away.
outlives_false_sender() {
  local own theirs
  own=$(tb exec host0 -- cat /sys/class/net/p1/address)
  theirs=$(tb exec host1 -- cat /sys/class/net/p0/address)
  tb exec host2 -- ping -q -c 1 -W 2 10.77.0.2 || return 1
  tb exec host0 -- ip link set dev p1 address "$theirs"
  tb exec host0 -- ping -q -c 1 -W 1 10.77.1.3
  tb exec host0 -- ip link set dev p1 address "$own"
  tb exec host2 -- ping -q -c 1 -W 2 10.77.0.2
}

# How many frames a megabyte of TCP takes from host0 to host1: some 700 of MTU 1500, without its being split fewer.
megabyte_takes() {  # frames, at least; at most
  local before after
  before=$(frames_seen host1 p0)
  tb exec host1 -- timeout 20 python3 -c '
import socket
server = socket.create_server(("10.77.0.2", 7777))
print("listens", flush=True)
peer = server.accept()[0]
while peer.recv(65536): pass' | (
    read -r
    tb exec host0 -- timeout 20 python3 -c '
import socket
peer = socket.create_connection(("10.77.0.2", 7777))
peer.sendall(bytes(1 << 20))')
  after=$(frames_seen host1 p0)
  echo "host1 p0 received $before, then $after frames"
  ((after - before >= $1 && after - before <= $2))
}

is_bridged() { ip -n "$bed-switch" link show dev br0; }
status_is() { tb status | tail -n +2 | awk '{print $1, $2, $4, $5, $6, $7}' | diff - <(echo "$1"); }

is_program() { [[ $(cat "/proc/$1/comm") == "$2" ]]; }  # process, name
signal_reaches() {  # the command is the process we started: no shell in between to lose the signal
  "$testbed" exec --name "$bed" host0 -- sleep 30 &
  local pid=$! rc
  within 100 is_program "$pid" sleep || return 1
  kill -TERM "$pid"
  wait "$pid"
  rc=$?
  echo "exit $rc"
  [[ $rc == 143 ]]
}

no_capability() {
  tb exec --user 65534:65534 host0 -- sh -c 'id -u; id -g; grep -E "Cap(Eff|Prm|Bnd)" /proc/self/status' |
    tr -d '\t' | diff - <(printf '65534\n65534\nCapPrm:%016d\nCapEff:%016d\nCapBnd:%016d\n' 0 0 0)
}

# Starts `up` of a testbed that takes a while, kills it after $1 ms, then removes what there is.
# Adds to half_made when the kill met it between the first namespace and the end.
half_made=0
kill_up() {
  local delay=$1 signal=$2 pid
  "$testbed" up --name "$bed" --hosts 6 --ports 3 >/dev/null 2>&1 &
  pid=$!
  sleep "$(printf '%d.%03d' $((delay / 1000)) $((delay % 1000)))"
  kill -"$signal" "$pid" 2>/dev/null
  wait "$pid" 2>/dev/null
}
is_up() { "$testbed" status --name "$bed" >/dev/null 2>&1; }
# The next delay. On a busy machine `up` begins late: goes on until so many have been met.
next_delay() {  # met, needed, step
  delay=$((delay + (delay < 300 ? $3 : delay / 4)))
  ((delay < 300 || ($1 < $2 && delay < 5000)))
}
met_half_made() { ip netns list | grep -qe "$bed-host" && ! is_up; }

killed_then_down() {
  local delay=5
  while next_delay "$half_made" 3 11; do
    kill_up "$delay" KILL
    met_half_made && half_made=$((half_made + 1))
    tb down || return 1
    nothing_left || return 1
  done
  echo "$half_made beds were half made"
  ((half_made >= 3))
}

killed_then_up() {
  local delay=10 met=0
  while next_delay "$met" 2 29; do
    kill_up "$delay" KILL
    flock /run/viaduct true  # the killed one's last child may be about to complete the testbed
    is_up && { tb down; continue; }
    ip netns list | grep -qe "$bed-host" && met=$((met + 1))
    tb up --hosts 2 --ports 1 || return 1
    pings_everywhere 2 1 || return 1
    tb down || return 1
    nothing_left || return 1
  done
  echo "$met beds were replaced"
  ((met >= 2))
}

interrupted() {  # the signal's own cleaning, without any `down`
  local delay
  for ((delay = 15; delay < 200; delay += 37)); do
    kill_up "$delay" "$1"
    is_up && { tb down; continue; }
    nothing_left || return 1
  done
}

unmounted_name() {  # killed between creating the file and mounting the namespace on it
  : >"/run/netns/$bed-host0"
  tb up && pings_everywhere 2 1 && tb down && nothing_left
}

down_ends_programs() {
  tb up || return 1
  "$testbed" exec --name "$bed" host1 -- \
    sh -c 'trap "" TERM; : >"$1"; sleep 60 & wait; sleep 60' sh "$scratch/ignores" &
  local pid=$!
  within 100 test -e "$scratch/ignores" || return 1
  tb down || return 1
  wait "$pid"
  [[ $? == 137 ]] && nothing_left
}

down_on_a_host() {
  tb up || return 1
  "$testbed" exec --name "$bed" host1 -- sleep 60 &
  local pid=$!
  within 100 is_program "$pid" sleep || return 1
  tb exec host0 -- "$testbed" down --name "$bed" || return 1
  wait "$pid"
  [[ $? == 143 ]] && nothing_left
}

leaves_foreign_alone() {
  ip netns add "$bed-host7" && ip -n "$bed-host7" link add fa type veth peer name fb || return 1
  refuses 1 "is not viaduct-testbed's.*ip netns del $bed-host7" tb up || return 1
  refuses 1 "is not viaduct-testbed's" tb down || return 1
  ip -n "$bed-host7" link show dev fa && ip netns del "$bed-host7"
}

without_rights() {
  refuses 1 "need root .*sudo" \
    setpriv --reuid=65534 --regid=65534 --clear-groups bash "$scratch/testbed" up --name "$bed"
}
without_ip() { refuses 1 "apt-get install iproute2" "$BASH" -c 'PATH=$1; . "$2" up' bash "$scratch/bin" "$scratch/testbed-noip"; }

echo "TAP version 13"
check "--help is a manual page" has_sections \
  "$testbed" NAME SYNOPSIS DESCRIPTION COMMANDS OPTIONS EXAMPLES "EXIT STATUS"
check "no command" refuses 2 "a command is needed" "$testbed"
check "unknown command" refuses 2 "unknown command 'start'" "$testbed" start
check "unknown option" refuses 2 "unknown option '--host'" "$testbed" up --host 2
check "option without value" refuses 2 "--hosts needs a value" "$testbed" up --hosts
check "hosts not a number" refuses 2 "--hosts takes a number from 1 to 254, not 'two'" "$testbed" up --hosts two
check "no hosts" refuses 2 "--hosts takes a number" "$testbed" up --hosts 0
check "too many ports" refuses 2 "--ports takes a number" "$testbed" up --ports 255
check "too many in all" refuses 2 "at most 1023" "$testbed" up --hosts 254 --ports 5
check "impossible MTU" refuses 2 "--mtu takes a number from 68 to 65535, not '67'" "$testbed" up --mtu 67
check "bad name" refuses 2 "--name takes" "$testbed" up --name ../x
check "bad offload" refuses 2 "--offload takes on or off, not 'maybe'" "$testbed" up --offload maybe
check "bad user" refuses 2 "--user takes" "$testbed" exec --user nobody host0 -- id
check "stray argument" refuses 2 "unexpected argument 'now'" "$testbed" down now
check "option of another command" refuses 2 "--mtu belongs to up" "$testbed" down --mtu 9000
check "exec without a command" refuses 2 "exec needs a command" "$testbed" exec host0
cp "$testbed" "$scratch/testbed" && chmod 755 "$scratch" "$scratch/testbed"
if [[ $(id -u) == 0 ]]; then check "no rights" without_rights; fi
# A PATH with what the script needs except ip.
mkdir "$scratch/bin" && ln -s "$(command -v sed)" "$scratch/bin/sed"
sed 's|^export LC_ALL=C PATH=.*|export LC_ALL=C|' "$testbed" >"$scratch/testbed-noip"
check "no ip command" without_ip

if ! unshare --mount --net true 2>/dev/null; then
  echo "ok $((count + 1)) - emulated hosts # SKIP no right to make network namespaces here (needs root with CAP_SYS_ADMIN and CAP_NET_ADMIN)"
  echo "1..$((count + 1))"
  exit $((failures > 0))
fi
before=$(left)

check "status without a bed" refuses 1 "no bed named '$bed' is up; start it with" tb status
check "exec without a bed" refuses 1 "no bed named" tb exec host0 -- true
check "down without a bed" returns 0 tb down

check "up, 2 hosts with 1 port" tb up
check "they are wired directly" test ! -e "/run/netns/$bed-switch"
check "status" status_is "host0 p0 1500 10.77.0.1/24 UP net_af_packet0,iface=p0
host1 p0 1500 10.77.0.2/24 UP net_af_packet0,iface=p0"
check "ping between all" pings_everywhere 2 1
check "TCP is handed over in large pieces" megabyte_takes 16 500
check "no IPv6" returns 1 tb exec host0 -- grep -q p0 /proc/net/if_inet6
check "up again" refuses 1 "is up already; remove it with: viaduct-testbed down --name $bed" tb up
check "exec: exit status" returns 7 tb exec host1 -- sh -c 'exit 7'
check "exec: env" returns 0 tb exec host1 -- env A=b sh -c '[ "$A" = b ]'
check "exec: no such command" returns 127 tb exec host1 -- no-such-command
check "exec: signal" signal_reaches
check "exec: no such host" refuses 1 "has no 'host2'" tb exec host2 -- true
check "exec: options of the command are its own" returns 0 tb exec host0 -- test --name = --name
check "exec: unprivileged user" no_capability
check "down" tb down
check "nothing is left" nothing_left

check "up, without segmentation offload" tb up --offload off
check "TCP is sent in frames" megabyte_takes 700 5000
check "down" tb down

check "up, MTU 9000" tb up --mtu=9000
check "9000-byte frames pass" tb exec host0 -- ping -q -c 1 -W 2 -M "do" -s 8972 10.77.0.2
check "9001-byte frames do not" returns 1 tb exec host0 -- ping -q -c 1 -W 1 -M "do" -s 8973 10.77.0.2
check "down" tb down

check "up, 3 hosts with 2 ports, MTU 9000" tb up --hosts 3 --ports 2 --mtu 9000
check "they are joined by a bridge" is_bridged
check "ping between all" pings_everywhere 3 2
check "each port carries its own traffic" uses_port
check "9000-byte frames pass the bridge" tb exec host0 -- ping -q -c 1 -W 2 -M "do" -s 8972 10.77.1.3
check "a false sender's address does no harm" outlives_false_sender
check "down" tb down
check "nothing is left" nothing_left

check "kill -9 of up, then down" killed_then_down
check "kill -9 of up, then up" killed_then_up
check "SIGTERM to up cleans up" interrupted TERM
if { ( kill -HUP "$BASHPID"; true ); } 2>/dev/null; then
  skip "SIGHUP to up cleans up" "it is ignored here, as under nohup"
else
  check "SIGHUP to up cleans up" interrupted HUP
fi
check "killed inside ip netns add" unmounted_name
check "down ends programs on the hosts" down_ends_programs
check "down on one of the hosts" down_on_a_host
check "a foreign namespace is left alone" leaves_foreign_alone
check "nothing is left at the end" nothing_left
finish
