"""One guest: a QEMU process and the lines to it. Everything is a descriptor that both hold, so there
is nothing to remove and nothing two guests could collide on, whatever ends them.
"""
import collections
import contextlib
import os
import socket
import subprocess
import threading

import children
import debian

CONSOLE_LINES = 15
WHOLE_NIC_MAC = "52:54:00:00:02:00"  # in_guest/sriov tells it


def escape(path):
    """A path as a value in a QEMU option."""
    return str(path).replace(",", ",,")


def share(path, tag, readonly):
    return ("-virtfs", f"local,path={escape(path)},mount_tag={tag},security_model=none,"
            f"multidevs=remap,readonly={'on' if readonly else 'off'}")


def sriov_options():
    """QEMU 10's command, with two emulated 82576 behind an emulated IOMMU. Its BIOS (SeaBIOS 1.16.3)
    puts the registers of virtual functions above 4 GiB, where this QEMU maps only the low half of
    the address: every register reads 0, and DPDK says that the link is down. That of Debian 12
    (1.16.2) keeps below. The first NIC switches between its functions; the hub is a wire to the
    second, which is used as a whole.
    """
    return ("-bios", str(debian.BIOS),
            "-device", "intel-iommu,intremap=on",
            "-device", "pcie-root-port,id=port0,chassis=1,slot=1",
            "-netdev", "hubport,hubid=0,id=wire",
            "-device", "igb,bus=port0,netdev=wire,romfile=,mac=52:54:00:00:01:00",
            "-device", "pcie-root-port,id=port1,chassis=2,slot=2",
            "-netdev", "hubport,hubid=0,id=wire1",
            "-device", f"igb,bus=port1,netdev=wire1,romfile=,mac={WHOLE_NIC_MAC}")


def unpacked_qemu(root):
    """Command and environment of the QEMU that is unpacked in `root`."""
    modules = next(root.glob("usr/lib/*/qemu"))
    command = [str(root / "usr/bin/qemu-system-x86_64"), "-L", str(root / "usr/share/qemu")]
    return command, dict(os.environ, QEMU_MODULE_DIR=str(modules))


class Guest:
    """Streams to read from are `control`, `out`, `err` (sockets) and `console` (a file). `input` is a
    socket to write to, if the command has standard input.
    """

    def __init__(self, number, job):
        self.number = number
        self.job = job
        self.ready = False
        self.status = None               # of the command, when it has ended
        self.expected = {}               # bytes of out and err there are to come in all
        self.received = {"out": 0, "err": 0}
        self.failure = None              # what the guest says it could not do
        self.last_lines = collections.deque(maxlen=CONSOLE_LINES)
        self.streams = {}
        self.input = None
        self.process = None
        self._control_text = b""
        self._console_text = b""

    def start(self, kernel, qemu, initramfs, options, wire):
        """Boots the kernel in directory `kernel`, in the QEMU in directory `qemu` if that is not
        None. `options` are the user's; `wire` is a socket to the other guest's, or None.
        """
        theirs = {}
        for name in ("control", "out", "err"):
            self.streams[name], theirs[name] = socket.socketpair()
        if options.job and self.number == 1:
            self.input, theirs["in"] = socket.socketpair()
        command, environment = [debian.find_program("qemu-system-x86_64")], None
        if qemu:
            command, environment = unpacked_qemu(qemu)
        # no_timer_check: on a busy machine the emulated timer looks broken to the kernel.
        arguments = ["console=ttyS0", "panic=-1", "mitigations=off", "no_timer_check"]
        arguments += [] if options.verbose else ["quiet"]
        if options.sriov:
            arguments += ["intel_iommu=on", "iommu=nopt"]
        command += [
            "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-vga", "none",
            "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max",
            "-m", str(options.memory), "-smp", str(options.cpus), "-serial", "stdio",
            "-kernel", str(next(kernel.glob("boot/vmlinuz-*"))),
            "-initrd", f"/proc/self/fd/{initramfs}", "-append", " ".join(arguments),
            *share("/", "host", True), *share(kernel / "lib/modules", "modules", True),
            "-device", "virtio-serial-pci"]
        for i, path in enumerate(options.writable):
            command += share(path, f"writable{i}", False)
        for i, (name, end) in enumerate(theirs.items(), 1):
            command += ["-chardev", f"socket,id={name},fd={end.fileno()}",
                        "-device", f"virtserialport,chardev={name},nr={i},name={name}"]
        descriptors = [initramfs] + [end.fileno() for end in theirs.values()]
        if wire:
            descriptors.append(wire.fileno())
            netdev = f"stream,id=wire,server=off,addr.type=fd,addr.str={wire.fileno()}"
            nic = f"virtio-net-pci,netdev=wire,romfile=,mac=52:54:00:00:00:{self.number:02x}"
            command += ["-netdev", netdev, "-device", nic]
        if options.sriov:
            command += sriov_options()
        with children.endings_wait():
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, pass_fds=descriptors, start_new_session=True,
                preexec_fn=children.end_with_us())
        self.streams["console"] = self.process.stdout
        for end in theirs.values():
            end.close()
        self.tell(b"%d\n%s" % (len(self.job), self.job))

    def read(self, name):
        """What there is, or b"" at the end."""
        return os.read(self.streams[name].fileno(), 65536)

    def hear_control(self, data):
        *lines, self._control_text = (self._control_text + data).split(b"\n")
        for line in lines:
            word, _, rest = line.decode(errors="replace").partition(" ")
            if word == "ready":
                self.ready = True
            elif word == "failed":
                self.failure = rest
            elif word == "exit":
                status, out, err = map(int, rest.split())
                self.status, self.expected = status, {"out": out, "err": err}

    def hear_console(self, data):
        """Returns the lines that are complete."""
        *lines, self._console_text = (self._console_text + data).split(b"\n")
        lines = [line.decode(errors="replace").strip() for line in lines]
        self.last_lines.extend(line for line in lines if line)
        return lines

    def tell(self, data):
        with contextlib.suppress(ConnectionError):  # it has ended, which is seen when we read
            self.streams["control"].sendall(data)

    def go(self):
        self.tell(b"go\n")

    def hand_over_input(self):
        """Our standard input, to its end. A thread waits for it, and for the command to read it. The
        line before it tells the guest that this end is connected.
        """
        def relay():
            with contextlib.suppress(OSError):  # there is no standard input, or the guest has ended
                self.input.sendall(b"\n")
                while data := os.read(0, 65536):
                    self.input.sendall(data)
            with contextlib.suppress(OSError):  # half a close: at a whole one QEMU forgets what it has not read
                self.input.shutdown(socket.SHUT_WR)
        threading.Thread(target=relay, daemon=True).start()

    @property
    def done(self):
        return self.status is not None and self.received == self.expected

    def end(self):
        """The command is over, and files are written as they are written to: a guest has nothing to
        lose and need not shut down.
        """
        if self.process:
            self.process.kill()
            self.process.wait()
