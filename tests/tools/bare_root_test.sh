#!/bin/bash
# A root directory with the distribution's packages and what `meson install` put there, nothing else:
# programs are built and run in it from a clean environment. Prints TAP. Argument: the build directory.
here=$(cd "$(dirname "$0")" && pwd)
if [[ -z ${IN_NAMESPACE:-} ]] && unshare --mount true 2>/dev/null; then
  IN_NAMESPACE=yes exec unshare --mount "$BASH" "$0" "$@"
fi
source "$here/../tap.sh"
build=$(realpath "$1")
root=$scratch/root
prefix=$(meson introspect "$build" --buildoptions |
  python3 -c 'import json, sys; print(*[o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"])')

skip_all() { echo "1..0 # SKIP $*"; exit 0; }
[[ -n ${IN_NAMESPACE:-} && $(id -u) == 0 ]] || skip_all "making a root directory needs root and namespaces"
[[ $prefix == /usr/local ]] || skip_all "the prefix is $prefix, not /usr/local"
for program in cmake mpicc.openmpi mpicc.mpich mpiexec.hydra; do
  command -v $program >/dev/null || skip_all "$program was not found; see tools/install-packages"
done

# Never into what is mounted below.
trap '[[ $BASHPID != "$$" ]] || { end_all; umount -l "$root" 2>/dev/null; rm -rf --one-file-system "$scratch"; }' EXIT

make_root() {
  local directory device
  mkdir "$root" && mount -t tmpfs -o mode=755 tmpfs "$root" || return 1
  mkdir -p "$root"/{usr,proc,dev,sys,tmp,root,run,var/tmp,project}
  for directory in bin sbin lib lib32 lib64 libx32; do
    [[ ! -L /$directory ]] || ln -s "$(readlink "/$directory")" "$root/$directory"
  done
  mount --rbind /usr "$root/usr" && mount -o remount,bind,ro "$root/usr" && mount -t tmpfs -o mode=755 tmpfs "$root/usr/local" &&
    mount --bind /proc "$root/proc" && mount --bind /sys "$root/sys" &&
    ln -s /proc/self/fd "$root/dev/fd" && mkdir "$root/dev/shm" && mount -t tmpfs tmpfs "$root/dev/shm" || return 1
  for device in null zero full random urandom tty; do
    touch "$root/dev/$device" && mount --bind "/dev/$device" "$root/dev/$device" || return 1
  done
  cp -a /etc "$root/etc" && cp "$here"/bare_root/* "$root/project"
}
install_all() {
  meson install -C "$build" --no-rebuild --destdir "$root" && chroot "$root" /sbin/ldconfig
}
inside() {
  chroot "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/root \
    /bin/bash /project/inside.sh "$prefix" "$@"
}
uninstall_all() {
  ninja -C "$build" uninstall || return 1
  find "$root$prefix" -mindepth 1 -not -type d | tee "$scratch/left"
  [[ ! -s $scratch/left ]]
}

echo "TAP version 13"
check "a root with the distribution's packages" make_root
check "meson install" install_all
check "nothing of it is elsewhere" inside nothing_else
check "MPI, C: mpicc, mpiexec" inside mpi_c
check "MPI, C++: mpic++, mpirun" inside mpi_cxx
check "MPI, Fortran: mpif.h, mpif77" inside mpi_fortran MPIF_H mpif77
check "MPI, Fortran: module mpi, mpif90" inside mpi_fortran MPI_MODULE mpif90
check "MPI, Fortran: module mpi_f08, mpifort" inside mpi_fortran MPI_F08 mpifort
check "MPI, C: pkg-config" inside mpi_pkg_config
check "MPI between emulated hosts: viaduct-run" inside mpi_between_hosts
check "VIPL, C" inside vipl_c
check "VIPL, C++" inside vipl_cxx
check "StarT-X, C" inside startx_c
check "MBCF, C" inside mbcf_c
check "StarT-X and MBCF, C++" inside drivers_cxx
check "StarT-X, loaded by EAL" inside plugin
check "CMake: find_package(viaduct) and find_package(MPI)" inside cmake_project
check "beside Open MPI" inside other_mpis openmpi
check "beside MPICH" inside other_mpis mpich
check "every program has --help and a manual page; documentation and licence" inside documented
check "the tools" inside run_tools
check "uninstall leaves nothing" uninstall_all
finish
