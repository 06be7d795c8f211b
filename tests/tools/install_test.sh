#!/bin/bash
# What `meson install` installs is enough to build and run another project's program, and the installed
# tools find each other. Prints TAP. Arguments: build directory, C++ compiler.
source "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
build=$(realpath "$1")
compiler=$2
here=$(cd "$(dirname "$0")" && pwd)
drivers=$(realpath "$here/../../drivers")

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
  flags=$(pkg-config --cflags viaduct-startx-cxx viaduct-mbcf-cxx) || return 1
  for header in drivers/startx_emul/node.hpp drivers/mbcf/node.hpp rte_pmd_startx.h rte_pmd_mbcf.h; do
    # shellcheck disable=SC2086  # flags are words
    "$compiler" -std=c++20 -fsyntax-only $flags -include "$header" -x c++ /dev/null || return 1
  done
}
# Each of the C++ headers, too, says in one sentence which standard it needs.
old_standard() {
  local flags header
  flags=$(pkg-config --cflags viaduct-startx-cxx viaduct-mbcf-cxx) || return 1
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
# Between two processes, over shared memory: what the second says.
exchange() {  # program
  local program=$1 port=socket=$scratch/m.sock,socket-abstract=no first words
  export LD_LIBRARY_PATH
  LD_LIBRARY_PATH=$(pkg-config --variable=libdir vipl)
  empty "$scratch/first"
  "$program" "net_memif0,role=server,$port" >"$scratch/first" &
  first=$!
  within 100 test -s "$scratch/first" && read -ra words <"$scratch/first" &&
    timeout 60 "$program" "net_memif0,role=client,$port" "${words[@]}" || { kill "$first"; return 1; }
  wait "$first" || return 1
  tail -n +2 "$scratch/first"
}
c_example() {  # driver, example, what its two processes say
  local flags said
  flags=$(pkg-config --cflags --libs "viaduct-$1") || return 1
  # shellcheck disable=SC2086  # flags are words
  cc -std=c11 -pedantic -Wall -Wextra -Werror -D_GNU_SOURCE "$2" -o "$scratch/c_example" $flags || return 1
  said=$(exchange "$scratch/c_example") || return 1
  echo "$said"
  [[ $said == "$3" ]]
}
both_drivers() {
  local flags
  flags=$(pkg-config --cflags --libs viaduct-startx viaduct-mbcf) || return 1
  # shellcheck disable=SC2086  # flags are words
  cc -Wall -Wextra -Werror -x c - -o "$scratch/both" $flags <<'C' && LD_LIBRARY_PATH=$(pkg-config --variable=libdir vipl) "$scratch/both"
#include <rte_pmd_mbcf.h>
#include <rte_pmd_startx.h>
#include <stdio.h>
int main(void) {
  struct rte_pmd_startx* startx = rte_pmd_startx_open("net_ring0", NULL);
  struct rte_pmd_mbcf* mbcf = rte_pmd_mbcf_open("net_ring1", NULL);
  if (startx == NULL) puts(rte_pmd_startx_error());
  if (mbcf == NULL) puts(rte_pmd_mbcf_error());
  // Requests to connect, which nobody answers: each takes frames of its own pool and gives them back.
  const unsigned char nobody[6] = {2, 0, 0, 0, 0, 1};
  unsigned peer;
  if (rte_pmd_startx_peer(startx, nobody, &peer) == 0)
    rte_pmd_startx_send(startx, peer, RTE_PMD_STARTX_HIGH, &(struct rte_pmd_startx_packet){.words = 2});
  if (rte_pmd_mbcf_peer(mbcf, nobody, &peer) == 0) rte_pmd_mbcf_fence(mbcf, peer, NULL, NULL);
  for (int i = 0; i < 100000; i++)
    if (rte_pmd_startx_poll(startx) != 0 || rte_pmd_mbcf_poll(mbcf) != 0) return 1;
  rte_pmd_mbcf_close(mbcf);
  rte_pmd_startx_close(startx);
  return startx == NULL || mbcf == NULL;
}
C
}
# Loaded by EAL into a program that is linked with DPDK only.
plugin() {
  local flags libs
  flags=$(pkg-config --cflags viaduct-startx libdpdk) && libs=$(pkg-config --libs libdpdk) || return 1
  # shellcheck disable=SC2086  # flags are words
  cc -Wall -Wextra -Werror "$drivers/startx_emul/examples/plugin.c" -o "$scratch/plugin" $flags $libs -lrte_net_ring || return 1
  [[ $(LD_LIBRARY_PATH=$(pkg-config --variable=libdir vipl) "$scratch/plugin" --no-pci --no-huge -m 256 --no-shconf \
    --file-prefix="viaduct_$$" -d librte_raw_startx.so --vdev rawdev_startx0,port=net_ring_a \
    --vdev rawdev_startx1,port=net_ring_b) == "received: 41 42" ]]
}
# With other MPIs on the machine, and nothing of ours in PATH.
cmake_finds_it() {
  local place=$scratch/root$prefix
  command -v cmake >/dev/null || { echo "cmake was not found"; return 77; }
  CMAKE_PREFIX_PATH=$place cmake -S "$here/bare_root" -B "$scratch/cmake" -DEXAMPLES="$place/share/doc/viaduct/examples" &&
    cmake --build "$scratch/cmake" --target mpi_programs packets || return 1
  grep -E '^(MPIEXEC_EXECUTABLE|MPI_mpi_abi_LIBRARY|MPI_mpifort_abi_LIBRARY|viaduct_DIR):' "$scratch/cmake/CMakeCache.txt" | tee "$scratch/found"
  [[ $(grep -c "=$place/" "$scratch/found") == $([[ -e $bin/mpifort ]] && echo 4 || echo 3) ]] && (cd "$scratch/cmake" && ctest -R mpi --output-on-failure)
}
# The functions that it exports are those that it hands out in a table.
table_is_complete() {  # driver, library
  local header exported
  header=$(grep -c '__typeof__(rte_pmd' "$(find "$scratch/root" -name "rte_pmd_$1.h")")
  exported=$(nm -D --defined-only "$(find "$scratch/root" -name "librte_raw_$1.so")" | grep -c " T rte_pmd_$1_")
  echo "$header in the table, $exported exported"
  [[ $header == "$exported" && $header -gt 20 ]]
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
# To the real prefix, as an administrator does it, but where no other process sees it; not even the dynamic
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
check "StarT-X from C, linked by pkg-config" \
  c_example startx "$drivers/startx_emul/examples/packets.c" "answer: 42"
check "MBCF from C, linked by pkg-config" \
  c_example mbcf "$drivers/mbcf/examples/remote_write.c" "before: 41
written from afar, 42"
check "CMake finds it all" cmake_finds_it
check "both drivers in one C program" both_drivers
check "a driver that is loaded with -d can send" plugin
for driver in startx mbcf; do check "$driver hands out all its functions" table_is_complete $driver; done
for program in viaduct-info viaduct-testbed viaduct-pingpong viaduct-run viaduct-vm mpicc mpicxx \
  $([[ ! -e $bin/mpifort ]] || echo mpifort mpif90 mpif77); do
  check "$program is installed" documented "$program"
done
finish
