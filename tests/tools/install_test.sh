#!/bin/bash
# What `meson install` installs is enough to build and run somebody else's program, and the installed
# tools find each other. Prints TAP. Arguments: build directory, C++ compiler.
source "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
build=$(realpath "$1")
compiler=$2
here=$(cd "$(dirname "$0")" && pwd)

# Where a package manager would have put it is unknown to pkg-config: tell it where it really is.
relocate() {
  local pc
  prefix=$(sed -n 's/^prefix=//p' "$(find "$scratch/root" -name viaduct-link.pc)") || return 1
  for pc in $(find "$scratch/root" \( -name 'viaduct-*.pc' -o -name vipl.pc \)); do
    sed -i "s|^prefix=.*|prefix=$scratch/root$prefix|" "$pc"
    PKG_CONFIG_PATH=$(dirname "$pc")
  done
  export PKG_CONFIG_PATH
  bin=$scratch/root$prefix/bin
}
install_all() { meson install -C "$build" --no-rebuild --destdir "$scratch/root"; }
compile() {
  local flags
  flags=$(pkg-config --cflags viaduct-link) && libs=$(pkg-config --libs viaduct-link) || return 1
  # shellcheck disable=SC2086  # flags are words
  "$compiler" -std=c++20 -O1 "$here/installed_user.cpp" -o "$scratch/user" $flags $libs
}
# Each alone: what it needs is installed, too.
headers() {
  local flags header
  flags=$(pkg-config --cflags viaduct-startx viaduct-mbcf) || return 1
  for header in drivers/startx_emul/node.hpp drivers/mbcf/node.hpp rte_pmd_startx.h rte_pmd_mbcf.h; do
    # shellcheck disable=SC2086  # flags are words
    "$compiler" -std=c++20 -fsyntax-only $flags -include "$header" -x c++ /dev/null || return 1
  done
}
# Each of the C++ headers, too, says in one sentence which standard it needs.
old_standard() {
  local flags header
  flags=$(pkg-config --cflags viaduct-startx viaduct-mbcf) || return 1
  while read -r header; do
    # shellcheck disable=SC2086  # flags are words
    "$compiler" -std=c++17 -fsyntax-only $flags -include "$header" -x c++ /dev/null 2>"$scratch/said" && return 1
    grep 'error: ' "$scratch/said" >"$scratch/errors"
    echo "$header: $(cat "$scratch/errors")"
    # What comes second is how the compiler is stopped.
    [[ $(wc -l <"$scratch/errors") == 2 && $(head -n 1 "$scratch/errors") == *"need C++20: compile with -std=c++20"* ]] ||
      return 1
  done < <(find "$scratch/root" -name '*.hpp')
}
plugins() {
  local name
  for name in startx mbcf; do
    find "$scratch/root" -name "librte_raw_$name.so" | grep . || return 1
  done
}
# The examples of libvipl, in C; without arguments they say how they are used.
vipl() {
  local flags said name
  flags=$(pkg-config --cflags --libs vipl) || return 1
  for name in client_server peer rdma_write; do
    # shellcheck disable=SC2086  # flags are words
    cc -Wall -Wextra -Werror "$here/../../libvipl/examples/$name.c" -o "$scratch/$name" $flags || return 1
    said=$(LD_LIBRARY_PATH=$(pkg-config --variable=libdir vipl) "$scratch/$name" 2>&1)
    [[ $? == 2 && $said == usage:* ]] || return 1
  done
}
# To the real prefix, as an administrator does it, but where nobody else sees it; not even the dynamic
# linker's cache.
in_its_place() {
  local libdir
  libdir=$(pkg-config --variable=libdir vipl)
  libdir=${libdir#"$scratch/root"}
  unshare --net true 2>/dev/null || { echo "no right to make namespaces here"; return 77; }
  grep -rqsx "$libdir" /etc/ld.so.conf.d || { echo "$libdir is not a directory of the dynamic linker"; return 77; }
  [[ $(command -v meson) != "$prefix"/* ]] || { echo "meson itself is in $prefix"; return 77; }
  cp -a /etc "$scratch/etc" && unshare --mount bash -euc '
    mount --bind "$1" /etc
    mount -t tmpfs tmpfs "$2"
    ldconfig
    meson install -C "$3" --no-rebuild
    export PKG_CONFIG_PATH=$4/pkgconfig
    cc "$5" -o "$6/in_place" $(pkg-config --cflags --libs vipl)
    "$6/in_place" || [[ $? == 2 ]]' bash "$scratch/etc" "$prefix" "$build" "$libdir" \
    "$here/../../libvipl/examples/client_server.c" "$scratch"
}
documented() { "$bin/$1" --help | grep -x SYNOPSIS; }

check "meson install" install_all
check "pkg-config files" relocate
check "a program builds with pkg-config alone" compile
check "it runs" "$scratch/user"
check "VIPL programs build with pkg-config alone and run" vipl
check "a program finds the library where it is installed for all" in_its_place
check "the drivers' headers are complete" headers
check "an older standard is one sentence" old_standard
check "the drivers' plugins are installed" plugins
for program in viaduct-info viaduct-testbed viaduct-pingpong viaduct-run viaduct-vm mpicc mpicxx; do
  check "$program is installed" documented "$program"
done
finish
