"""The guest's first files: a cpio archive with busybox, kernel modules and the scripts of in_guest/."""
import lzma
import os
import pathlib
import stat

from debian import CannotRun

HERE = pathlib.Path(__file__).resolve().parent
SCRIPTS = ("init", "session", "network", "sriov", "rsh")
DIRECTORIES = ("bin", "dev", "lower", "memory", "modules", "newroot", "proc", "sys")
# The modules that are needed to reach the host's root file system and viaduct-vm itself.
MODULES = ("virtio_pci", "9p", "9pnet_virtio", "overlay", "virtio_console")


def module_files(root):
    """The files of MODULES and of all they depend on, in the order in which they must be loaded."""
    directory = next(root.glob("lib/modules/*"))
    depends = {}
    for line in (directory / "modules.dep").read_text(encoding="ascii").splitlines():
        file, needs = line.split(":")
        depends[pathlib.Path(file).name.split(".")[0]] = (file, needs.split())
    files = []
    for name in MODULES:
        if name not in depends:
            raise CannotRun(f"the kernel {directory.name} has no module {name}; "
                            f"remove {root}, so that a newer one is fetched")
        file, needs = depends[name]
        # modules.dep names the nearest first.
        files += [other for other in reversed(needs) if other not in files]
        files += [file] if file not in files else []
    return [directory / file for file in files]


def entry(name, mode, data=b""):
    """One file in the "newc" format of cpio: a header of hexadecimal numbers, padded to 4 bytes."""
    label = name.encode() + b"\0"
    numbers = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(label), 0)
    header = b"070701" + b"".join(b"%08X" % number for number in numbers) + label
    return header + bytes(-len(header) % 4) + data + bytes(-len(data) % 4)


def build(root):
    """The archive for the kernel in `root`."""
    directory = stat.S_IFDIR | 0o755
    program = stat.S_IFREG | 0o755
    busybox = next(path for path in (root / "bin/busybox", root / "usr/bin/busybox") if path.exists())
    parts = [entry(name, directory) for name in DIRECTORIES]
    parts.append(entry("bin/busybox", program, busybox.read_bytes()))
    for script in SCRIPTS:
        parts.append(entry(script, program, (HERE / "in_guest" / script).read_bytes()))
    order = []
    for file in module_files(root):
        data = file.read_bytes()
        if file.suffix == ".xz":
            data, file = lzma.decompress(data), file.with_suffix("")
        parts.append(entry(f"modules/{file.name}", stat.S_IFREG | 0o644, data))
        order.append(file.name)
    parts.append(entry("modules/order", stat.S_IFREG | 0o644, "\n".join(order).encode() + b"\n"))
    return b"".join(parts) + entry("TRAILER!!!", 0)


def as_file(root):
    """A descriptor of the archive, in memory: nothing to remove, whatever happens."""
    descriptor = os.memfd_create("viaduct-vm-initramfs")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(build(root))
    return descriptor
