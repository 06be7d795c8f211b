#!/bin/bash
# MPI jobs on a wire that does not do what it should. Prints TAP.
# Arguments: viaduct-run, stress, forged_requests.
viaduct_run=$(realpath "$1") stress=$(realpath "$2") forged_requests=$(realpath "$3")
source "$(dirname "${BASH_SOURCE[0]}")/../../tap.sh"

# As a process of viaduct-run: the wire carries less than the ports, then the program.
cat >"$scratch/on_a_narrow_wire" <<'SH'
#!/bin/bash
host=$(ip netns identify $$)
switch=${host%-*}-switch
for end in $(ip -n "$switch" -o link show type veth | sed -n 's/^[0-9]*: \(h[0-9]*p0\)@.*/\1/p'); do
  ip -n "$switch" link set dev "$end" mtu 1500 || exit 1
done
exec "$@"
SH
chmod +x "$scratch/on_a_narrow_wire"

# The ring of a port must not be stuck, and each pair of ranks must find the size that passes.
jumbo_ports() {  # channel
  local said
  said=$(VIADUCT_STATS=on timeout 100 "$viaduct_run" -n 3 --hosts 3 --mtu 9000 --channel "$1" \
    "$scratch/on_a_narrow_wire" "$stress" --seeds 1:20 2>&1) || { echo "exit status $?"; echo "$said"; return 1; }
  grep -q '^ok' <<<"$said" || { echo "$said"; return 1; }
}
forged() { timeout 100 "$viaduct_run" -n 4 --hosts 4 --channel "$1" "$forged_requests"; }
settings() {  # rank 2's setting, what is said; at once
  local said
  said=$(timeout 30 "$viaduct_run" -n 3 --hosts 3 bash -c \
    '[[ ${PMI_RANK:-0} != 2 ]] || export "$0"; exec "$1" --seeds 1:1' "$1" "$stress" 2>&1) && { echo "$said"; return 1; }
  grep -E "$2" <<<"$said" || { echo "$said"; return 1; }
}

if may_make_hosts; then
  for channel in mbcf startx; do
    check "ports of 9000 bytes on a wire of 1500, $channel" jumbo_ports "$channel"
    check "forged connection requests, $channel" forged "$channel"
  done
  check "one rank has another VIADUCT_JOB" settings VIADUCT_JOB=mine \
    'rank 2 has VIADUCT_JOB=mine and rank 0 has another one'
  check "one rank has another VIADUCT_CHANNEL" settings VIADUCT_CHANNEL=startx \
    'rank 2 has VIADUCT_CHANNEL=startx and rank 0 has mbcf'
  check "one rank has another VIADUCT_WRITE_PROTOCOL" settings VIADUCT_WRITE_PROTOCOL=nsr \
    'rank 2 has VIADUCT_WRITE_PROTOCOL=nsr and rank 0 has auto'
  export VIADUCT_PORTS=net_nonsense{n}
  check "VIADUCT_PORTS is nonsense" settings VIADUCT_STATS=off \
    'VIADUCT_PORTS gives local rank 0 a port that does not open: cannot open port net_nonsense0: .*no driver of that name'
else
  skip "all" "emulated hosts need root and network namespaces"
fi
finish
