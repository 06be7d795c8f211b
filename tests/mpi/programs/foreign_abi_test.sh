#!/bin/bash
# Programs compiled with another MPI's mpi.h of the standard ABI (MPI 5.0, chapter 20) run with our
# library. The header is that of MPICH 5 in Debian unstable; it is downloaded and only used here. Prints
# TAP. Arguments: libmpi_abi.so, the directory of the examples;
# FOREIGN_MPI_H: a directory that has such a header already.
library=$(realpath "$1") examples=$(realpath "$2")
source "$(dirname "${BASH_SOURCE[0]}")/../../tap.sh"

# apt-get with a list of sources, a state and a cache of its own: the system's stay as they are.
apt_unstable() {
  apt-get -o Dir::Etc::sourcelist="$scratch/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State::lists="$scratch/apt/lists" -o Dir::Cache="$scratch/apt/cache" \
    -o Acquire::Retries=1 -o Acquire::http::Timeout=30 -o APT::Sandbox::User=root "$@"
}
# From the mirror that this machine uses.
download_header() {
  command -v apt-get >/dev/null && [[ $(id -u) == 0 ]] || return 1
  local keys=/usr/share/keyrings/debian-archive-keyring.gpg mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -v security | head -n 1)
  [[ -n $mirror ]] || return 1
  mkdir -p "$scratch/apt/lists/partial" "$scratch/apt/cache/archives/partial" "$scratch/debian"
  echo "deb [signed-by=$keys] $mirror sid main" >"$scratch/apt/sources.list"
  cd "$scratch/debian" && timeout 120 bash -c "$(declare -f apt_unstable); scratch='$scratch'
    apt_unstable update && apt_unstable download libmpich-dev" &&
    dpkg-deb -x libmpich-dev_*.deb . && found=$(find "$PWD" -path '*/mpi_abi*/include/mpi.h' | head -n 1)
}

find_header() {
  found=
  if [[ -n ${FOREIGN_MPI_H:-} ]]; then
    found=$FOREIGN_MPI_H/mpi.h
  else
    download_header >"$scratch/download.log" 2>&1
  fi
  [[ -f $found ]] && grep -q MPI_ABI_VERSION "$found"
}

# Linked by name and found at run time, as any program of the ABI.
compile() {  # example
  local place
  place=$(dirname "$library")
  gcc -std=c11 -O2 -Wall -Werror -I "$(dirname "$found")" "$examples/$1.c" -o "$scratch/$1" "$library" \
    -Wl,-rpath,"$place" -lm && ldd "$scratch/$1" | grep "libmpi_abi.so.1 => $place/"
}
is_foreign() {  # the program was compiled with that header and not with ours
  local used
  used=$(gcc -std=c11 -I "$(dirname "$found")" -M "$examples/$1.c") && [[ $used == *"$found"* ]]
}
correct() {
  local said
  said=$(timeout 60 "$@" 2>&1) || { echo "exit status $?"; echo "$said"; return 1; }
  echo "$said"
  [[ $said == *", correct" ]]
}

# Every function that both headers declare has the same arguments in both.
prototypes_agree() {
  local ours=$examples/../include/mpi.h
  python3 - "$ours" "$found" <<'PYTHON'
import re, sys
def prototypes(path):
    text = re.sub(r"/\*.*?\*/", " ", open(path).read(), flags=re.S)
    text = re.sub(r"\s+", " ", re.sub(r"^\s*#.*$", " ", text, flags=re.M))
    found = {}
    for result, name, arguments in re.findall(
            r"\b(int|double|MPI_\w+) (MPI_[A-Z]\w*) ?\(([^()]*)\) ?(?:MPICH_\w+[^;]*)?;", text):
        kinds = []
        for argument in arguments.split(","):
            array = "[" in argument
            words = re.sub(r"\[[^\]]*\]", " ", argument).replace("*", " * ").split()
            stars = words.count("*") + array
            words = [w for w in words if w != "*"]
            if len(words) > 1 and words[-1] not in ("int", "char", "void"):
                words.pop()  # the name
            kinds.append((tuple(w for w in words if w not in ("const", "restrict")), stars))
        found[name] = (result, tuple(kinds))
    return found
ours, theirs = prototypes(sys.argv[1]), prototypes(sys.argv[2])
both = sorted(set(ours) & set(theirs))
different = [n for n in both if ours[n] != theirs[n]]
for name in different:
    print(name, ours[name], theirs[name])
print(len(both), "functions compared,", len(different), "differ")
missing = len(ours) - len(both)  # removed from MPI long ago, and only ours has them
sys.exit(bool(different) or missing > 20)
PYTHON
}

if find_header; then
  echo "# $found"
  check "the prototypes of both headers agree" prototypes_agree
  for example in halo matmul; do
    check "$example compiles with the other header and links with our library" compile $example
    check "$example was compiled with the other header" is_foreign $example
    for ranks in 1 2 4; do
      check "$example runs on $ranks ranks" correct mpiexec.hydra -n $ranks "$scratch/$example"
    done
  done
else
  skip "examples with another header of the ABI" \
    "no mpi.h of MPICH 5 could be downloaded from Debian unstable; set FOREIGN_MPI_H"
fi

finish
