# shellcheck shell=bash
# Sourced by test scripts: TAP lines, a scratch directory, processes by name.
set -u
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
scratch=$(mktemp -d)
count=0 failures=0
# A copy of this shell that is about to start a program may get a signal that is meant for that.
trap '[[ $BASHPID != "$$" ]] || { end_all; rm -rf "$scratch"; }' EXIT
trap 'exit 1' INT TERM
# Where everything is built with AddressSanitizer: what other libraries lose. PMIx a few bytes when it
# starts, DPDK's af_xdp driver the description of its memory when it closes.
printf 'leak:%s\n' libpmix xsk_umem__create >"$scratch/suppressions"
export LSAN_OPTIONS=suppressions=$scratch/suppressions:print_suppressions=0

check() {  # description, then a command that must succeed; or return 77, its last line says why
  local what=$1 rc
  shift
  "$@" >"$scratch/log" 2>&1
  rc=$?
  ((rc != 77)) || { skip "$what" "$(tail -n 1 "$scratch/log")"; return; }
  count=$((count + 1))
  if ((rc == 0)); then
    echo "ok $count - $what"
  else
    failures=$((failures + 1))
    echo "not ok $count - $what"
    sed 's/^/# /' "$scratch/log"
  fi
}
skip() { count=$((count + 1)); echo "ok $count - $1 # SKIP $2"; }
finish() { echo "1..$count"; exit $((failures > 0)); }

# Of programs that were copied into the scratch directory, which makes them ours alone.
processes() {  # one find, not a process for each that runs here
  find /proc/[0-9]*/exe -maxdepth 0 -lname "$scratch/*" -printf '%h\n' 2>/dev/null | sed 's|/proc/||'
}
end_all() {
  local pid
  for pid in $(processes); do kill -9 "$pid" 2>/dev/null; done
}
nothing_left() { [[ -z $(processes) ]]; }

# Of programs started with NAME=VALUE in their environment, and all that they have started.
processes_with() { grep -lsz -x -F -- "$1" /proc/[0-9]*/environ | sed 's|/proc/\([0-9]*\)/.*|\1|'; }
# Among them is a guest. (Before it there are others: python3 may be a script that looks for the real one.)
boots_with() {
  local pid
  for pid in $(processes_with "$1"); do
    [[ $(readlink "/proc/$pid/exe") != */qemu-system-* ]] || return 0
  done
  return 1
}
nothing_left_with() {
  local pids
  pids=$(processes_with "$1")
  [[ -z $pids ]] || { echo "still there:" && ps -o pid,ppid,stat,args -p "${pids//$'\n'/,}"; return 1; }
}

# Before a program in the background writes to a file that another process watches: its own redirection may
# come too late, and what the file had before would be taken for the program's.
empty() { : >"$1"; }

# within TENTHS COMMAND...: it succeeds before so many tenths of a second have passed.
within() {
  local tenths=$1
  shift
  until "$@"; do
    ((tenths-- > 0)) || { echo "not within the time: $*"; return 1; }
    sleep 0.1
  done
}

# One sentence on standard error matching $2, nothing on standard output, exit status $1.
refuses() {
  local status=$1 pattern=$2 rc
  shift 2
  "$@" >"$scratch/stdout" 2>"$scratch/stderr"
  rc=$?
  echo "exit $rc, expected $status: $(cat "$scratch/stdout" "$scratch/stderr")"
  [[ $rc == "$status" && ! -s $scratch/stdout && $(wc -l <"$scratch/stderr") == 1 ]] &&
    grep -Eq -- "$pattern" "$scratch/stderr"
}
returns() {  # expected exit status, command...
  local status=$1 rc
  shift
  "$@"
  rc=$?
  echo "exit $rc, expected $status"
  [[ $rc == "$status" ]]
}

has_sections() {  # program, sections of its --help
  local program=$1 section
  shift
  "$program" --help >"$scratch/help" || return 1
  for section; do
    grep -qx "$section" "$scratch/help" || { echo "no $section"; return 1; }
  done
}

may_make_hosts() { [[ $(id -u) == 0 ]] && unshare --net true 2>/dev/null; }
