#!/bin/bash
# inside.sh CHECK [ARGUMENT...]: what bare_root_test.sh asks for, inside the root that has only the
# distribution's packages and what was installed.
set -u
cd /tmp || exit 1
project=/project
examples=$1/share/doc/viaduct/examples prefix=$1
shift

said() {  # expected, command...
  local expected=$1 output
  shift
  output=$("$@") || { echo "exit $?: $output"; return 1; }
  echo "$output"
  [[ $output == "$expected" ]]
}
build() {  # compiler with options, source, pkg-config names
  local compiler=$1 source=$2 flags
  shift 2
  flags=$(pkg-config --cflags --libs "$@") || return 1
  # shellcheck disable=SC2086  # these are words
  $compiler -Wall -Wextra -Werror "$source" -o program $flags
}
# Between two processes, over shared memory.
exchange() {  # program, what the second and then the first say
  local program=$1 expected=$2 port=socket=/tmp/m.sock,socket-abstract=no first words
  : >first
  timeout 60 "$program" "net_memif0,role=server,$port" >first &
  first=$!
  for _ in {1..100}; do [[ -s first ]] && break; sleep 0.1; done
  read -ra words <first
  timeout 60 "$program" "net_memif0,role=client,$port" "${words[@]}" >second && wait "$first" || return 1
  tail -n +2 first >>second
  said "$expected" cat second
}

# What is found below can only be what was installed.
nothing_else() {
  find / /usr -xdev \( -name 'libviaduct*' -o -name 'libvipl*' -o -name 'libmpi_abi*' -o -name 'rte_pmd_mbcf*' \) \
    -not -path "$prefix/*" | tee found
  [[ ! -s found ]]
}
mpi_c() { mpicc "$project/mpi.c" -o program && said "sum 6 of 4 ranks" mpiexec -n 4 ./program; }
mpi_cxx() { mpic++ "$project/mpi.cpp" -o program && said "sum 3 of 3 ranks" mpirun -n 3 ./program; }
mpi_fortran() {  # one of the three bindings, the compiler's name
  command -v mpifort || { echo "built without Fortran"; return 77; }
  "$2" -D$1 "$project/mpi.F90" -o program && said "sum 6 of 4 ranks" mpiexec -n 4 ./program
}
mpi_pkg_config() {
  build cc "$examples/mpi/matmul.c" viaduct-mpi && mpiexec -n 4 ./program 101 | grep ', correct$'
}
mpi_between_hosts() {
  mpicc "$project/mpi.c" -o program && said "sum 6 of 4 ranks" viaduct-run -n 4 --hosts 2 ./program
}
vipl_c() {
  build cc "$examples/vipl/client_server.c" vipl && ./program nic0 2>&1 | grep "no RDMA device: viaduct-info"
}
vipl_cxx() { build c++ "$project/vipl.cpp" vipl && ./program nic0 2>&1 | grep "no RDMA device"; }
startx_c() { build cc "$examples/startx/packets.c" viaduct-startx && exchange ./program "answer: 42"; }
mbcf_c() {
  build cc "$examples/mbcf/remote_write.c" viaduct-mbcf &&
    exchange ./program $'before: 41\nwritten from afar, 42'
}
drivers_cxx() {
  build c++ "$project/classes.cpp" viaduct-startx-cxx viaduct-mbcf-cxx && return 1  # the old standard
  # DPDK's own headers are not clean in C++20.
  build "c++ -std=c++20 -Wno-volatile" "$project/classes.cpp" viaduct-startx-cxx viaduct-mbcf-cxx && ./program
}
plugin() {
  # shellcheck disable=SC2046  # flags are words
  cc "$examples/startx/plugin.c" $(pkg-config --cflags viaduct-startx libdpdk) $(pkg-config --libs libdpdk) \
    -lrte_net_ring -o program &&
    said "received: 41 42" ./program --no-pci --no-huge -m 256 --no-shconf -d librte_raw_startx.so \
      --vdev rawdev_startx0,port=net_ring_a --vdev rawdev_startx1,port=net_ring_b
}
cmake_project() {
  cmake -S "$project" -B build -DEXAMPLES="$examples" && cmake --build build || return 1
  (cd build && ctest --output-on-failure) || return 1
  readelf -d build/mpi_c build/mpi_cxx | grep NEEDED
  [[ $(readelf -d build/mpi_c build/mpi_cxx | grep -c 'NEEDED.*libmpi_abi.so.1') == 2 ]] || return 1
  mpiexec -n 2 build/matmul 101 | grep ', correct$' || return 1
  exchange build/packets "answer: 42" && exchange build/remote_write $'before: 41\nwritten from afar, 42' || return 1
  build/client_server nic0 2>&1 | grep "no RDMA device"
}
other_mpis() {
  "mpicc.$1" "$project/mpi.c" -o theirs || return 1
  mpiexec -n 2 ./theirs && return 1  # refused
  case $1 in
    openmpi) said "sum 1 of 2 ranks" mpirun.openmpi --allow-run-as-root --oversubscribe -n 2 ./theirs ;;
    mpich) said "sum 1 of 2 ranks" mpiexec.hydra -n 2 ./theirs ;;
  esac
}
documented() {
  local program
  for program in "$prefix"/bin/*; do
    program=${program##*/}
    "$program" --help | grep -qx SYNOPSIS || { echo "$program --help"; return 1; }
    grep -q '^.SH SYNOPSIS' "$prefix/share/man/man1/$program.1" || { echo "$program.1"; return 1; }
  done
  [[ -s $prefix/share/doc/viaduct/LICENSE && -s $prefix/share/doc/viaduct/README.md &&
    -s $prefix/share/doc/viaduct/docs/mpi.md ]]
}
run_tools() { viaduct-info && viaduct-pingpong --bed memif --layer startx-pio,mbcf-write --sizes 8 --rounds 1; }

"$@"
