# shellcheck shell=bash
# Sourced by scripts that kill ranks, after tap.sh: programs whose processes are known by their path, and
# the program `survivors`.

copy_programs() {  # program...
  local program
  for program; do cp "$program" "$scratch"; done
  # A copy does not find the library by itself.
  LD_LIBRARY_PATH=$(dirname "$(ldd "$1" | sed -n 's/.*libmpi_abi.* => \(.*\) (.*/\1/p')")
  export LD_LIBRARY_PATH
}

ended() { ! kill -0 "$launcher" 2>/dev/null; }
# All ranks have run for a moment when each has used some processor time.
are_running() {  # ranks
  local pid used=0
  for pid in $(processes); do
    (($(awk '{print $14 + $15}' "/proc/$pid/stat" 2>/dev/null || echo 0) > 20)) && used=$((used + 1))
  done
  ((used == $1))
}
are_running_or_ended() { are_running "$1" || ended; }

has_said() { grep -q '^noticed$\|^missed$' "$scratch/out" || ended; }
notices() {  # which way of waiting, launcher... (mpiexec)
  local way=$1
  shift
  (($# > 0)) || set -- mpiexec.hydra -n 3
  empty "$scratch/out"
  "$@" "$scratch/survivors" "$way" >>"$scratch/out" 2>&1 &
  launcher=$!
  within 300 has_said
  kill "$launcher" 2>/dev/null
  within 100 ended || kill -9 "$launcher"
  end_all
  cat "$scratch/out"
  grep -qx noticed "$scratch/out"
}
