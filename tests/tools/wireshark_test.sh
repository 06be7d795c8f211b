#!/bin/bash
# What the Wireshark dissector says of real frames, field by field. Prints TAP. Arguments:
# wireshark_frames, the dissector. Where frames have changed on purpose, UPDATE=1 in the environment
# writes wireshark_fields.txt anew; its difference shows what the change has done to each field.
source "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
frames=$(realpath "$1")
dissector=$(realpath "$2")
fields=$(realpath "$(dirname "${BASH_SOURCE[0]}")/wireshark_fields.txt")
command -v tshark >/dev/null || { echo "1..0 # SKIP tshark is not installed (tools/install-packages test)"; exit 0; }

shark() { tshark -X "lua_script:$dissector" -r "$scratch/frames.pcap" "$@" 2>"$scratch/stderr"; }
# Its first line names them.
fields_agree() {
  local column
  local -a columns
  for column in $(head -n 1 "$fields"); do columns+=(-e "$column"); done
  { head -n 1 "$fields" && shark -T fields "${columns[@]}"; } >"$scratch/told" || { cat "$scratch/stderr"; return 1; }
  [[ -z ${UPDATE:-} ]] || cp "$scratch/told" "$fields"
  diff "$fields" "$scratch/told"
}
no_lua_error() { ! { shark -V | cat - "$scratch/stderr" | grep -i -E 'lua.*error|error.*lua'; }; }
frames_with() { shark -Y "$1" | wc -l; }
explains() { (($(frames_with "$1") == $2)); }
summary() { shark | grep -E -- "$1"; }

seen() { (($(frames_with "$1") > 0)); }
every_type() { diff <(shark -T fields -e viaduct.type | sort -u | grep .) <(seq 1 6); }

# All but a recall (17), which takes two writers to one FIFO.
every_kind() {
  diff <(shark -T fields -e mbcf.kind | tr ',' '\n' | grep . | sort -nu) <(seq 0 16; echo 18)
}

# Several messages may share a frame.
every_silent_kind() {
  diff <(shark -T fields -e mbcf.silent -e mbcf.kind |
    awk '{ n = split($1, silent, ","); split($2, kind, ",")
           for (i = 1; i <= n; i++) if (silent[i] == 1) print kind[i] }' | sort -nu) \
    <(printf '%s\n' 0 1 5 8 9)
}

check "frames of two links" "$frames" "$scratch/frames.pcap"
check "every field as it was" fields_agree
check "every type of frame was seen" every_type
check "frames that were sent again were seen" seen viaduct.retransmission
check "gaps were seen" seen viaduct.block.received
check "no error in the dissector" no_lua_error
check "frames shorter than they say are marked" explains viaduct.bad_length 2
check "an unknown version is marked" explains viaduct.bad_version 1
check "the altered frame is marked" explains viaduct.bad_checksum 1
check "summary of a message" summary 'Viaduct [0-9]+ data high seq=[0-9]+ .* startx rdma done$'
check "summary of several messages" summary 'data low seq=[0-9]+ .* startx queue and [0-9] more$'
check "summary of a request" summary 'Viaduct [0-9]+ data low seq=[0-9]+ .* mbcf write( |$)'
check "no request is malformed" explains mbcf.bad_message 0
check "every kind of silent request was seen" every_silent_kind
check "every kind of MBCF message was seen" every_kind
check "summary of an acknowledgement" summary ' ack .*bulk<[0-9]+'
check "summary of a handshake" summary ' hello mtu=1500$'
finish
