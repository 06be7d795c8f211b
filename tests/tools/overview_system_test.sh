#!/bin/bash
# bench/overview (and so tools/quickstart) really measures, leaves no emulated hosts behind, and draws
# its plot. Prints TAP. Arguments: the program, the build directory.
source "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
overview=$1 build=$2

measures() {
  "$overview" --build "$build" --no-peers --rounds 1 --seconds 0.002 --json "$scratch/figures.json" \
    --plot "$scratch/plot.svg" >"$scratch/page" || return 1
  cat "$scratch/page"
}
# Each way has a figure in each of the three columns, for both wires.
is_complete() {
  local way
  for way in "kernel TCP" "StarT-X" "MBCF" "MPI: Viaduct"; do
    [[ $(grep -c "^  $way  *[0-9.,]*  *[0-9.,]*  *[0-9.,]*  *[0-9.,]*  *[0-9.,]*  *[0-9.,]*$" "$scratch/page") == 2 ]] ||
      { echo "$way is not there twice:"; cat "$scratch/page"; return 1; }
  done
}
is_short() { (($(wc -l <"$scratch/page") <= 37)); }
is_drawn() { grep -q "MPI: Viaduct" "$scratch/plot.svg"; }
# Hosts are named after the process that made them.
abandoned() {
  local name
  for name in $(ip netns list | grep -oE '^(pingpong|vrun|cmp)-[0-9]+\S*'); do
    [[ -e /proc/$(cut -d - -f 2 <<<"$name") ]] || echo "$name"
  done
}
nothing_left() { [[ -z $(comm -13 <(echo "$before") <(abandoned | sort)) ]]; }
is_possible() {
  local tool
  for tool in gnuplot mpiexec.hydra ethtool; do command -v $tool >/dev/null || return 1; done
  unshare --mount --net true 2>/dev/null && (($(nproc) > 1))
}

echo "TAP version 13"
if ! is_possible; then
  echo "1..0 # SKIP needs root, the right to make network namespaces, two processors, gnuplot, Hydra and ethtool"
  exit 0
fi
before=$(abandoned | sort)
check "it measures" measures
check "every way has its figures" is_complete
check "the page is short" is_short
check "the plot is drawn" is_drawn
check "nothing is left" nothing_left
finish
