"""Programs of other projects for bench/applications and bench/mpi-start-tables: their sources from the
distribution's source packages, built once for each MPI library, all below one cache directory."""
import glob
import os
import shlex
import shutil
import subprocess

import mpi_peers as mp

# A mirror may lack a source package of one release; then the next one is asked.
RELEASES = ["trixie"]
DEFAULT_MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Library:
    """An MPI library, as a build system meets it: its compilers."""

    def __init__(self, name, build):
        self.name = name
        if name == "viaduct":
            place = os.path.join(os.path.abspath(build), "libmpi_lite")
            self.cc, self.cxx, self.fc = (os.path.join(place, c) for c in ("mpicc", "mpicxx", "mpifort"))
            # MPI_Comm_f2c and its kin, which the standard binary interface has no more.
            self.older = "-include mpi_fortran.h"
            remedy = f"run: ninja -C {build}"
        else:
            self.cc, self.cxx, self.fc = (c + "." + name for c in ("mpicc", "mpicxx", "mpif90"))
            self.older = ""
            remedy = "run: tools/install-packages bench"
        for compiler in (self.cc, self.cxx, self.fc):
            if not shutil.which(compiler):
                mp.fail(f"{compiler} was not found; {remedy}")


class Cache:
    """The directory in which everything is fetched and built."""

    def __init__(self, options):
        self.place = os.path.abspath(options.cache or os.path.join(options.build, "applications"))
        self.jobs = options.jobs
        for tool in ("apt-get", "cmake", "make"):
            if not shutil.which(tool):
                mp.fail(f"{tool} was not found; run: tools/install-packages bench")
        os.makedirs(self.place, exist_ok=True)

    def path(self, *parts):
        return os.path.join(self.place, *parts)

    # ---- fetching --------------------------------------------------------------------------------------

    def apt(self):
        """The options with which apt-get uses lists and sources of its own, and changes nothing of the
        system's."""
        options = {"Dir::Etc::SourceList": self.path("apt", "sources.list"),
                   "Dir::Etc::SourceParts": "/dev/null", "Dir::State::Lists": self.path("apt", "lists"),
                   "Dir::Cache": self.path("apt", "cache"), "APT::Sandbox::User": "root"}
        return [word for key, value in options.items() for word in ("-o", f"{key}={value}")]

    def update(self, release):
        """Fetches the lists of a release's source packages, once."""
        sources = self.path("apt", "sources.list")
        line = f"deb-src [signed-by={KEYRING}] {mirror()} {release} main\n"
        known = read(sources)
        if line in known:
            return
        for part in ("lists/partial", "cache/archives/partial"):
            os.makedirs(self.path("apt", part), exist_ok=True)
        with open(sources, "w") as file:
            file.write(known + line)
        done = subprocess.run(["apt-get", *self.apt(), "update"], capture_output=True, text=True)
        if done.returncode != 0:
            with open(sources, "w") as file:
                file.write(known)
            raise mp.RunFailed(f"the list of {release}'s source packages could not be fetched: "
                               f"{mp.reason(done.stderr)}")

    def fetch(self, package):
        """The archive that its authors published, as the distribution's source package has it; apt has
        checked it. The distribution's own changes are not used, and need not be there."""
        place = self.path("archives", package)
        os.makedirs(place, exist_ok=True)
        for release in dict.fromkeys([codename(), *RELEASES]):
            if archives(place):
                break
            self.update(release)
            done = subprocess.run(["apt-get", *self.apt(), "source", "--download-only", "--only-source",
                                   f"{package}/{release}"], cwd=place, capture_output=True, text=True)
            said = done.stderr
        if not archives(place):
            raise mp.RunFailed(f"the source package {package} could not be fetched: {mp.reason(said)}")
        return archives(place)[0]

    # ---- building --------------------------------------------------------------------------------------

    def tree(self, program):
        """The sources of a program, unpacked, with what is built once for all MPI libraries."""
        place = self.path(program.package, "source")
        steps = program.prepare(place)
        if not self.is_built(place, steps):
            archive = self.fetch(program.package)
            fresh(place)
            run_steps(place, [["tar", "-xf", archive, "--strip-components=1", *program.unpack_options]], place + ".tar.log", 1)
            self.make(place, steps)
        return place

    def build(self, program, library):
        """The directory of a program that is built for a library."""
        source = self.tree(program)
        place = self.path(program.package, library.name)
        steps = program.build(library, source)
        if not self.is_built(place, steps):
            print(f"{mp.NAME}: building {program.name} for {library.name}", flush=True)
            fresh(place)
            self.make(place, steps)
        run_steps(place, program.build_ours(library), place + ".ours.log", 1)
        return place

    @staticmethod
    def is_built(place, steps):
        """By the same commands."""
        return read(place + ".built") == commands(steps)

    def make(self, place, steps):
        run_steps(place, steps, place + ".log", self.jobs)
        with open(place + ".built", "w") as file:
            file.write(commands(steps))


def run_steps(place, steps, log_path, jobs):
    with open(log_path, "w") as log:
        for step in steps:
            log.write(f"$ {shlex.join(step)}\n")
            log.flush()
            done = subprocess.run(step, cwd=place, env={**os.environ, "MAKEFLAGS": f"-j{jobs}"},
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
            if done.returncode != 0:
                raise mp.RunFailed(f"'{shlex.join(step)[:120]}' failed; see {log_path}")


def add_arguments(parser):
    parser.add_argument("--cache", metavar="DIR", help="where everything is kept (default: BUILD/applications)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N",
                        help="compilers side by side (default: one for each core)")


def archives(place):
    return [path for path in glob.glob(os.path.join(place, "*.orig.tar.*")) if not path.endswith(".asc")]


def commands(steps):
    return "built by:\n" + "".join(shlex.join(step) + "\n" for step in steps)


def fresh(place):
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    if os.path.exists(place + ".built"):
        os.remove(place + ".built")


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return ""


def codename():
    """What the distribution's release is called."""
    for line in read("/etc/os-release").splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    mp.fail("this is not Debian (no VERSION_CODENAME in /etc/os-release), whose source packages are needed")


def mirror():
    """Where this machine has its packages from."""
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE) $(CODENAME)",
                           "Created-By: Packages", "Component: main"], capture_output=True, text=True)
    sites = [line.split()[0] for line in done.stdout.splitlines() if line.split()[1:] == [codename()]]
    return sites[0] if sites else DEFAULT_MIRROR
