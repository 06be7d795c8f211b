"""What a guest is made of, from Debian packages: unpacked below the user's cache directory, so that
nothing of the host is replaced and no kernel is installed.
"""
import contextlib
import fcntl
import os
import pathlib
import platform
import re
import shutil
import subprocess

import children

# Program, and the package that has it.
PROGRAMS = {"qemu-system-x86_64": "qemu-system-x86", "depmod": "kmod", "modprobe": "kmod",
            "ip": "iproute2", "rdma": "iproute2"}
# QEMU 10 has an SR-IOV NIC (igb); Debian 12 has it in its backports.
QEMU_10 = ("qemu-system-x86", "qemu-system-common", "qemu-system-data")
# The BIOS of Debian 12, not that of its backports; why: see sriov_options in guest.py.
BIOS = pathlib.Path("/usr/share/seabios/bios-256k.bin")


class CannotRun(Exception):
    """A guest cannot run on this machine: one sentence that says what is missing and what helps."""


def find_program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin")


def check_machine():
    if platform.machine() != "x86_64":
        raise CannotRun("the guest is an x86-64 machine and runs this one's programs, which are for "
                        f"{platform.machine()}; use an x86-64 host")
    missing = [name for name in PROGRAMS if not find_program(name)]
    if missing:
        packages = " ".join(sorted({PROGRAMS[name] for name in missing}))
        raise CannotRun(f"{', '.join(missing)} not found; "
                        f"run: apt-get install --no-install-recommends {packages}")


def cache_directory():
    base = os.environ.get("XDG_CACHE_HOME", "")
    base = base if os.path.isabs(base) else os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "viaduct" / "vm"


@contextlib.contextmanager
def locked(cache):
    """One fetches, those that come meanwhile wait. The lock goes with its holder."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(cache, os.O_RDONLY)
    except OSError as error:
        raise CannotRun(f"no cache directory ({error}); "
                        "set XDG_CACHE_HOME to a directory that can be written") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def newest(cache, package):
    """The unpacked package of the highest version whose name begins so, or None."""
    def version(path):  # numbers compare as numbers
        words = re.split(r"(\d+)", path.name)
        return [(0, int(word), "") if word.isdigit() else (1, 0, word) for word in words]
    return max(cache.glob(package + "*_*"), key=version, default=None)


def run(what, remedy, *command, cwd=None):
    """Runs a command of Debian's packaging and returns what it said."""
    try:
        done = subprocess.run(
            command, env=dict(os.environ, LC_ALL="C"), cwd=cwd, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", check=False,
            preexec_fn=children.end_with_us())
    except OSError as error:
        raise CannotRun(f"{what} failed ({error}); this needs Debian") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        reason = said[-1] if said else f"exit {done.returncode}"
        raise CannotRun(f"{what} failed ({reason}); {remedy}")
    return done.stdout


def apt_get(what, remedy, *arguments, cwd):
    # As root, apt would complain that its own user cannot read our directory.
    sandbox = ("-o", "APT::Sandbox::User=root") if os.geteuid() == 0 else ()
    run(what, remedy, "apt-get", "-q", *sandbox, *arguments, cwd=cwd)


def fetch(cache, packages, remedy, tell, options=(), finish=lambda tree: None):
    """Downloads packages and unpacks them into one directory, named after the file of the first.
    It appears under that name when it is complete.
    """
    tell(f"fetching {' '.join(packages)} into {cache}; this is done once")
    partial = cache / "partial"
    shutil.rmtree(partial, ignore_errors=True)  # of one that was killed
    tree = partial / "tree"
    tree.mkdir(parents=True)
    try:
        apt_get(f"downloading {packages[0]}", remedy, *options, "download", *packages, cwd=partial)
        for file in sorted(partial.glob("*.deb")):
            run(f"unpacking {file.name}", f"is there room in {cache}?", "dpkg-deb", "-x", file, tree)
        finish(tree)
        final = cache / next(partial.glob(packages[0].split("/")[0] + "_*.deb")).stem
        tree.rename(final)
    finally:
        shutil.rmtree(partial)
    return final


def kernel(tell):
    """Directory with the distribution's kernel, boot/vmlinuz-* and lib/modules/*, and a busybox that
    needs no library.
    """
    cache = cache_directory()
    with locked(cache):
        have = newest(cache, "linux-image-")
        if have:
            return have
        remedy = "run apt-get update, or mend /etc/apt/sources.list* or the network"
        depends = run("looking for the kernel", remedy, "apt-cache", "depends", "linux-image-amd64")
        package = re.search(r"Depends: (linux-image-\S+)", depends)
        if not package:
            raise CannotRun(f"apt knows no package linux-image-amd64; {remedy}")

        def index_modules(tree):
            for modules in tree.glob("lib/modules/*"):
                run("depmod", f"is there room in {cache}?", find_program("depmod"), "-b", tree,
                    modules.name)
        return fetch(cache, [package[1], "busybox-static"], remedy, tell, finish=index_modules)


def backports_options(cache):
    """Makes a package list of this distribution's backports that only we look at, from the mirror
    that the machine uses anyway.
    """
    codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    mirrors = run("looking for the Debian mirror", "mend /etc/apt/sources.list*",
                  "apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages",
                  f"Codename: {codename}", "Component: main").split()
    if not mirrors:
        raise CannotRun("apt has no list of this distribution's packages; run: apt-get update")
    apt = cache / "apt"
    (apt / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    keyring = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
    signed = f"[signed-by={keyring}] " if keyring.exists() else ""
    source = apt / "sources.list"
    source.write_text(f"deb {signed}{mirrors[0]} {codename}-backports main\n", encoding="ascii")
    settings = {"Dir::Etc::sourcelist": source, "Dir::Etc::sourceparts": "/dev/null",
                "Dir::State::lists": apt / "lists", "Dir::Cache": apt}
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    return options, f"{codename}-backports"


def qemu_10(tell):
    """Directory with QEMU 10 or newer, which brings an SR-IOV NIC."""
    if not BIOS.exists():
        raise CannotRun(f"{BIOS} not found; run: apt-get install --no-install-recommends seabios")
    cache = cache_directory()
    with locked(cache):
        have = newest(cache, "qemu-system-x86_")
        if have:
            return have
        options, suite = backports_options(cache)
        remedy = (f"QEMU 10 is in {suite} of the Debian mirror in /etc/apt/sources.list*; "
                  "mend that or the network")
        try:
            apt_get("reading the list of backports", remedy, *options, "update", cwd=cache)
            return fetch(cache, [f"{package}/{suite}" for package in QEMU_10], remedy, tell,
                         options=options)
        finally:
            shutil.rmtree(cache / "apt")
