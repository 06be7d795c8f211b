#!/bin/bash
# VIPL programs that know only what was installed, where there are RDMA devices: in a guest, C and C++,
# which the installed viaduct-vm boots, from a clean environment. Prints TAP. Argument: the build directory.
source "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "$1")

install_all() {
  meson install -C "$build" --no-rebuild --destdir "$scratch/root" || return 1
  prefix=$(sed -n 's/^prefix=//p' "$(find "$scratch/root" -name vipl.pc)")
}
# What an administrator of the guest does, then what a user does.
cat >"$scratch/administrator" <<'SH'
mount --bind "$1$2" "$2" && ldconfig && cd /tmp &&
  exec env -i PATH="$2/bin:/usr/bin:/bin" HOME=/tmp bash "$3" "$2/share/doc/viaduct/examples/vipl" "$4"
SH
cat >"$scratch/user" <<'SH'
set -eu
flags=$(pkg-config --cflags --libs vipl)
c++ "$2" -o opens $flags
./opens nic0 && echo opened
cc "$1/client_server.c" -o client_server $flags
./client_server nic1 >said &
sleep 1
./client_server nic0 host2
wait
cat said
SH
run_both() {
  "$scratch/root$prefix/bin/viaduct-vm" --timeout 240 bash "$scratch/administrator" "$scratch/root" "$prefix" "$scratch/user" \
    "$here/bare_root/vipl.cpp" >"$scratch/said" || return 1
  cat "$scratch/said"
  grep -qx opened "$scratch/said" && grep -qx "the server says: hello, client" "$scratch/said" &&
    grep -qx "the client says: hello, server" "$scratch/said"
}

echo "TAP version 13"
check "meson install" install_all
check "C and C++ programs" run_both
finish
