#!/bin/bash
# The drivers on real PCI functions: two virtual functions of an emulated NIC and another NIC as a
# whole, DPDK's own drivers for them, an IOMMU between. Prints TAP. Arguments: viaduct-vm, viaduct-pingpong, vm_port_pci_test,
# mpiexec's program. Runs itself again in the guest.
source "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
vm=$(realpath "$1") pingpong=$(realpath "$2") port_test=$(realpath "$3") stress=$(realpath "$4")

if [[ -z ${VIADUCT_VM_VF0:-} ]]; then
  "$vm" --sriov --timeout 800 "${BASH_SOURCE[0]}" "$@" >"$scratch/tap" 2>"$scratch/err"
  status=$?
  if ((status == 77)); then
    echo "TAP version 13"
    skip "drivers on SR-IOV" "$(tail -n 1 "$scratch/err")"
    finish
  fi
  cat "$scratch/tap"
  sed 's/^/# /' "$scratch/err"
  exit $status
fi

layers=raw,startx-pio,startx-queue,startx-rdma,mbcf-write,mbcf-signal,mbcf-fifo,mbcf-read,mbcf-atomic

is_bound() { [[ $(readlink "/sys/bus/pci/devices/$1/driver") == */vfio-pci && -e /dev/vfio/vfio ]]; }

# Each side has a processor of its own, as it has on real hosts.
listen() {
  taskset -c 0 "$pingpong" --listen --port "$VIADUCT_VM_VF0" >"$scratch/listener" 2>&1 &
  listener=$!
  within 600 grep -q "has address $VIADUCT_VM_VF0_MAC" "$scratch/listener"
}
connect() {
  taskset -c 1 "$pingpong" --connect "$VIADUCT_VM_VF0_MAC" --port "$VIADUCT_VM_VF1" --layer "$layers" \
    --sizes 8,4K --rounds 1 --messages 200 --json "$scratch/figures"
}
ends_well() {
  wait "$listener"
  local rc=$?
  cat "$scratch/listener"
  [[ $rc == 0 ]]
}
# Of every size there is a round trip and a rate. Raw frames may be lost.
measured() {
  python3 - "$scratch/figures" "$1" <<'PYTHON'
import json, sys
rows = [row for row in json.load(open(sys.argv[1])) if row["layer"] == sys.argv[2]]
print(rows)
good = [row for row in rows if row["round_trip_ns"]["median"] > 0 and row["messages_per_s"] > 0]
sys.exit(sorted(row["bytes"] for row in good) != [8, 4096])
PYTHON
}
mpi_between() {  # channel, ports
  VIADUCT_SHM=off VIADUCT_CHANNEL=$1 VIADUCT_PORTS="$2;$3" mpiexec.hydra -n 2 "$stress" --seeds 1:5
}
no_faults() { ! dmesg | grep -i 'DMAR:.*fault'; }

echo "TAP version 13"
check "the first function waits for a user-space driver" is_bound "$VIADUCT_VM_VF0"
check "so does the second" is_bound "$VIADUCT_VM_VF1"
check "and the whole NIC" is_bound "$VIADUCT_VM_NIC"
check "ports open, carry frames, close and open again" "$port_test"
check "pingpong listens" listen
check "pingpong runs every layer" connect
check "the listener ends with it" ends_well
for layer in ${layers//,/ }; do
  [[ $layer == raw ]] || check "$layer" measured "$layer"
done
for channel in mbcf startx; do
  check "MPI over $channel, a function for each rank" mpi_between $channel "$VIADUCT_VM_VF0" "$VIADUCT_VM_VF1"
done
check "MPI to a rank with a whole NIC, whose interrupt wakes it" mpi_between mbcf "$VIADUCT_VM_VF0" "$VIADUCT_VM_NIC"
check "the IOMMU has refused no access" no_faults
finish
