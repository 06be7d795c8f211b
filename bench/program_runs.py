"""How bench/applications and bench/mpi-start-tables run one program with each MPI library: on this
machine, or on two emulated hosts."""
import contextlib
import os
import tempfile

import mpi_peers as mp

PEERS = {"mpich": "MPICH", "openmpi": "Open MPI"}
LIBRARIES = ["viaduct", *PEERS]
MTU = 9000


class Placement:
    """`ranks` processes on one machine, over its memory, or in blocks on two emulated hosts: Viaduct over
    af_packet by one of its channels, the others over the kernel's TCP."""

    def __init__(self, channel, ranks):
        self.channel, self.ranks = channel, ranks
        self.hosts = 1 if channel == "shm" else 2

    def wire(self, library):
        """What carries a library's messages: the peers do not know Viaduct's channels."""
        return self.channel if library == "viaduct" or self.hosts == 1 else "tcp"

    def who(self, library):
        """Runs of the same name are the same."""
        return f"{library}, {self.ranks} ranks over {self.wire(library)}"


def turns(placements):
    """A library and a placement for each run of a round: no run twice."""
    found = {}
    for placement in placements:
        for library in LIBRARIES:
            found.setdefault(placement.who(library), (library, placement))
    return found.values()


class Runner:
    """Starts programs. What it has set up goes with it."""

    def __init__(self, timeout, cache):
        self.timeout, self.cache = timeout, cache
        self.undo = contextlib.ExitStack()
        self.bed, self.join = None, []

    def __enter__(self):
        self.join = self.undo.enter_context(mp.scheduling_group())
        return self

    def __exit__(self, *_):
        self.undo.close()

    def command(self, library, placement, program):
        """What starts a program, and its environment."""
        ranks = placement.ranks
        oversubscribed = ranks > (os.cpu_count() or 1)
        if placement.hosts == 1:
            return mp.on_this_machine(library, program, ranks, oversubscribed)
        if library == "viaduct":
            return [os.path.join(mp.TOOLS, "viaduct-run"), "-n", str(ranks), "--hosts", "2", "--mtu", str(MTU),
                    "--channel", placement.channel, program], {}
        if self.bed is None:
            self.bed = self.undo.enter_context(mp.Bed(MTU, False))
        if library == "openmpi":
            return self.bed.openmpi(ranks, program, oversubscribed), {}
        return self.bed.mpich(ranks, program), mp.MPICH_YIELDS if oversubscribed else {}

    @contextlib.contextmanager
    def job(self, name, library, placement, directory):
        """Runs of programs from `directory` in a working directory that is then removed. Of a run that
        fails, what it said is kept."""
        try:
            with tempfile.TemporaryDirectory(dir=self.cache, prefix="run-") as place:
                yield Job(self, library, placement, directory, place)
        except mp.RunFailed as failure:
            log = os.path.join(self.cache, f"failed-{name}-{library}-{placement.wire(library)}.log")
            with open(log, "w") as file:
                file.write(failure.said)
            raise mp.RunFailed(f"{failure}; what it said is in {log}") from None


class Job:
    def __init__(self, runner, library, placement, directory, place):
        self.runner, self.library, self.placement = runner, library, placement
        self.directory, self.place = directory, place
        self.ranks = placement.ranks
        # A BLAS with threads of its own would take the cores of other ranks.
        self.environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

    def run(self, program, *arguments):
        """Gives what the program said."""
        start, env = self.runner.command(self.library, self.placement, os.path.join(self.directory, program))
        # viaduct-run has to see whose the other testbeds are: not in a process namespace of its own.
        isolate = os.path.basename(start[0]) != "viaduct-run"
        return mp.execute([*self.runner.join, *start, *map(str, arguments)], {**self.environment, **env},
                          self.runner.timeout, isolate, self.place)

    def write(self, name, text):
        with open(os.path.join(self.place, name), "w") as file:
            file.write(text)

    def read(self, name):
        try:
            with open(os.path.join(self.place, name), errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            raise mp.RunFailed(f"it wrote no {name}") from None
