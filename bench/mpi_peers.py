"""What the scripts that compare MPI libraries share: mpi_bench built for each of them, runs with a time
limit that leave nothing behind, medians and ratios."""
import argparse
import contextlib
import glob
import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOLS = os.path.join(ROOT, "tools")
sys.dont_write_bytecode = True  # nothing is left in the source tree
NAME = os.path.basename(sys.argv[0])


def fail(what, status=1):
    print(f"{NAME}: {what}", file=sys.stderr)
    sys.exit(status)


class RunFailed(Exception):
    def __init__(self, why, said=""):
        super().__init__(why)
        self.said = said  # all that the program has said


# ---- building ------------------------------------------------------------------------------------------

OURS = {"viaduct": "bench/mpi/mpi_bench", "pingpong": "tools/viaduct-pingpong",
        "vi_programs": "bench/vi/vi_programs"}


def can_build(library):
    """Whether programs of "mpich" or "openmpi" can be compiled: Debian has the compiler's command and
    the headers in packages of their own."""
    compiler = "mpicxx." + library
    return bool(shutil.which(compiler)) and subprocess.run(
        [compiler, "-fsyntax-only", "-x", "c++", "-"], input="#include <mpi.h>\n", text=True,
        capture_output=True).returncode == 0


def build(library, place):
    """mpi_bench for "viaduct" (the build directory `place`), "mpich" or "openmpi"; or viaduct-pingpong.
    For the others its files are compiled as one, as they are for us in fresh build directories."""
    text = None
    if library in OURS:
        if not os.path.exists(os.path.join(place, "build.ninja")):
            fail(f"{place} is not a build directory; run: meson setup {place}, or give --build DIR")
        command = ["ninja", "-C", place, OURS[library]]
        program = os.path.join(place, OURS[library])
    else:
        compiler = "mpicxx." + library
        if not can_build(library):
            fail(f"{compiler} or its mpi.h was not found; run: apt-get install "
                 f"{'libmpich-dev mpich' if library == 'mpich' else 'libopenmpi-dev openmpi-bin'}")
        sources = os.path.join(ROOT, "bench", "mpi")
        files = [os.path.join(sources, file) for file in sorted(os.listdir(sources))]
        text = "".join(f'#include "{file}"\n' for file in files if file.endswith(".cpp"))
        program = os.path.join(place, "mpi_bench." + library)
        command = [compiler, "-std=c++20", "-O3", "-DMPICH_SKIP_MPICXX", "-DOMPI_SKIP_MPICXX",
                   "-o", program, "-x", "c++", "-"]
        if os.path.exists(program) and os.path.getmtime(program) > max(map(os.path.getmtime, files)):
            return program
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"building for {library} failed:\n{done.stdout}{done.stderr}")
    return program


# ---- running -------------------------------------------------------------------------------------------

# A process namespace of its own: when its first process ends, so do all others, daemons too. And a
# /dev/shm of its own, which goes with it.
ISOLATE = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
           'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh"]


def bench_row(row):
    """A figure of mpi_bench: what it is, and its value."""
    return (row["test"], row["bytes"]), row["median"]


def execute(command, env=None, timeout=120, isolate=True, place=None):
    """Runs a command in the directory `place`. Gives what it said."""
    full = [*(ISOLATE if isolate and os.geteuid() == 0 else []), *command]
    process = subprocess.Popen(full, env={**os.environ, **(env or {})}, text=True, cwd=place,
                               errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        said, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end(process)
        raise RunFailed(f"it took more than {timeout:g} s")
    except BaseException:
        end(process)
        raise
    if process.returncode != 0:
        raise RunFailed(reason(said) or f"exit status {process.returncode}", said)
    return said


def run(command, options, env=None, timeout=120, isolate=True, figure=bench_row):
    """Runs mpi_bench: `command` starts it on all ranks, `options` are its own. Gives its figures. (Or
    another program that writes rows as JSON, of which `figure` makes figures.)"""
    with tempfile.TemporaryDirectory() as place:
        rows = os.path.join(place, "rows.json")
        said = execute([*command, *options, "--json", rows], env, timeout, isolate)
        if not os.path.exists(rows):
            raise RunFailed(reason(said) or "it wrote no figures")
        with open(rows) as file:
            return dict(map(figure, json.load(file)))


def run_on_memif(program, channel, mtu, options, timeout):
    """mpi_bench as two ranks on this machine whose only way to each other is a memif wire."""
    with tempfile.TemporaryDirectory() as place:
        wire = f"socket={place}/memif.sock,socket-abstract=no"
        ports = f"net_memif0,role=server,{wire};net_memif0,role=client,{wire}"
        env = {"VIADUCT_SHM": "off", "VIADUCT_CHANNEL": channel, "VIADUCT_PORTS": ports,
               "VIADUCT_MTU": str(mtu)}
        return run(["mpiexec.hydra", "-n", "2", program], options, env, timeout)


def reason(said):
    """The line of what a failed run has said that tells most: the last one, but the first one of what
    Open MPI says between lines of dashes."""
    between = said.partition("-" * 40)[2]
    lines = [line.strip() for line in (between or said).splitlines() if re.search(r"\w", line)]
    return lines[0 if between else -1] if lines else ""


@contextlib.contextmanager
def scheduling_group():
    """A cgroup for the ranks of a run, as batch systems have one for a job. Gives what to put before a
    command that is to run in it.

    Without it Linux may share the CPUs out among sessions (/proc/sys/kernel/sched_autogroup_enabled), and
    while Open MPI's ranks are one session, Hydra makes one for each rank: a rank that yields then lets no
    other rank run before its time slice is over."""
    with contextlib.ExitStack() as undo:
        join = []
        try:
            group = f"{scheduling_groups(undo)}/viaduct-bench-{os.getpid()}"
            undo.callback(remove_group, group)
            os.mkdir(group)
            join = ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh"]
        except OSError as error:
            print(f"{NAME}: no cgroup for the ranks ({error.strerror}); sessions may be scheduled one by one",
                  file=sys.stderr)
        yield join


def scheduling_groups(undo):
    """The directory whose subdirectories are cgroups that the scheduler knows. What that changes on the
    machine is put into `undo`, each step before it is taken: a signal may come between any two."""
    root = "/sys/fs/cgroup"
    if not os.path.exists(f"{root}/cgroup.controllers"):
        return f"{root}/cpu"  # version 1
    control = f"{root}/cgroup.subtree_control"
    with open(control) as file:
        enabled = "cpu" in file.read().split()
    if not enabled:
        undo.callback(disable_cpu, root)
        with open(control, "w") as file:
            file.write("+cpu")
    return root


def disable_cpu(root):
    # The kernel would take it from other comparisons, whose cgroups have nothing below them.
    if glob.glob(f"{root}/viaduct-bench-*"):
        return
    # Refused where enabling it was.
    with contextlib.suppress(OSError), open(f"{root}/cgroup.subtree_control", "w") as file:
        file.write("-cpu")


def remove_group(group):
    """All that ran in it has been ended, but the kernel may not be done with it yet."""
    for _ in range(50):
        try:
            os.rmdir(group)
        except OSError:
            if os.path.exists(group):
                time.sleep(0.1)
                continue
        return
    print(f"{NAME}: {group} is still in use and stays", file=sys.stderr)


def end(process):
    """Politely first: viaduct-run removes its bed."""
    for sent, patience in ((signal.SIGTERM, 15), (signal.SIGKILL, 15)):
        try:
            os.killpg(process.pid, sent)
            process.communicate(timeout=patience)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


OPENMPI = ["mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none"]
# What lets a waiting rank give way where ranks share cores; Viaduct needs nothing.
OPENMPI_YIELDS = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
MPICH_YIELDS = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}


def on_this_machine(who, program, ranks, oversubscribed):
    """What starts a program of one of the libraries on this machine, and its environment."""
    if who == "openmpi":
        return [*OPENMPI, *(OPENMPI_YIELDS if oversubscribed else []), "-n", str(ranks), program], {}
    env = MPICH_YIELDS if oversubscribed and who == "mpich" else {}
    return ["mpiexec.hydra", "-n", str(ranks), program], env


def start_of(pid):
    """When a process began to run: with its id, this names it for ever."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(") ")[2].split()[19]
    return None


class Bed:
    """Two emulated hosts for the peers, with a port each; ranks in blocks, as viaduct-run does it.
    `frames`: the kernel's TCP builds frames of MTU size."""

    def __init__(self, mtu, frames):
        self.name = f"cmp-{os.getpid()}-{start_of(os.getpid())}" + ("-frames" if frames else "")
        self.mtu, self.frames = mtu, frames
        self.testbed = os.path.join(TOOLS, "viaduct-testbed")
        self.shell = [os.path.join(TOOLS, "viaduct-run"), "-x"]  # HOST COMMAND...: as ssh does it

    def __enter__(self):
        self.remove_abandoned()
        self.scratch = tempfile.TemporaryDirectory()
        done = subprocess.run([self.testbed, "up", "--name", self.name, "--mtu", str(self.mtu),
                               "--offload", "off" if self.frames else "on"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            fail(done.stderr.strip())
        return self

    def __exit__(self, *_):
        subprocess.run([self.testbed, "down", "--name", self.name])
        self.scratch.cleanup()

    def remove_abandoned(self):
        """What those that were killed have left: beds that say which process they belong to."""
        for place in glob.glob("/run/netns/cmp-*"):
            bed = re.fullmatch(r"(cmp-(\d+)-(\d+)(?:-frames)?)-(host\d+|switch)", os.path.basename(place))
            if bed and os.path.exists(place) and start_of(bed[2]) != bed[3]:
                subprocess.run([self.testbed, "down", "--name", bed[1]])

    def mpich(self, ranks, program):
        # UCX would find out that both hosts are one machine and use its memory.
        return self.on_host0(["env", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=p0", "mpiexec.mpich",
                              "-launcher", "ssh", "-disable-x", "-launcher-exec", self.shell[0],
                              "-iface", "p0", "-hosts", f"host0:{ranks // 2},host1:{ranks // 2}",
                              "-n", str(ranks), program])

    def openmpi(self, ranks, program, oversubscribed=False):
        net = "10.77.0.0/24"
        # vader: shared memory, among the ranks of a host.
        return self.on_host0([*OPENMPI, "--host", f"host0:{ranks // 2},host1:{ranks // 2}",
                              "--mca", "plm_rsh_agent", self.openmpi_shell(),
                              "--mca", "pml", "ob1", "--mca", "btl", "vader,tcp,self" if ranks > 2 else "tcp,self",
                              "--mca", "oob_tcp_if_include", net, "--mca", "btl_tcp_if_include", net,
                              # Its windows over UCX are chosen, and then fail for want of a device.
                              "--mca", "osc", "^ucx",
                              *(OPENMPI_YIELDS if oversubscribed else []), "-n", str(ranks), program])

    def openmpi_shell(self):
        """What Open MPI calls as it would call ssh. Its daemons and ranks on both hosts would use the same files
        below /tmp and /dev/shm; host1 gets its own, as hosts have."""
        path = os.path.join(self.scratch.name, "shell")
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\nexport TMPDIR={self.scratch.name}\n"
                       "exec unshare --mount sh -c 'mount -t tmpfs tmpfs /dev/shm && exec \"$@\"' sh "
                       f"{shlex.join(self.shell)} \"$@\"\n")
        os.chmod(path, 0o700)
        return path

    def on_host0(self, command):
        # Both launchers would take the host that is called as this machine is for this machine.
        return [self.testbed, "exec", "--name", self.name, "host0", "--",
                "unshare", "--uts", "sh", "-c", 'hostname localhost && exec "$@"', "sh", *command]


# ---- comparing -----------------------------------------------------------------------------------------

class Samples:
    """The medians of several runs, by who was run and what was measured."""

    def __init__(self):
        self.values, self.failures = {}, {}

    def take(self, who, measure):
        """measure() gives rows; a run that fails counts as none, and its reason is kept."""
        try:
            for what, value in measure().items():
                self.values.setdefault((who, what), []).append(value)
        except RunFailed as reason:
            self.failures.setdefault(who, []).append(str(reason))
            print(f"{NAME}: {who}: {reason}", file=sys.stderr)

    def median(self, who, what):
        values = self.values.get((who, what))
        return statistics.median(values) if values else None

    def text(self, who, what):
        values = self.values.get((who, what))
        if not values:
            return "failed" if who in self.failures else "-"
        return f"{number(statistics.median(values))} [{number(min(values))}..{number(max(values))}]"

    def rows(self):
        return [{"who": who, "test": what[0], "bytes": what[1], "medians": values}
                for (who, what), values in self.values.items()]


def number(value):
    if value >= 1e6:
        return f"{value / 1e6:.2f}M"
    if value >= 1e4:
        return f"{value / 1e3:.1f}k"
    return f"{value:.{3 if value < 10 else 1 if value < 1000 else 0}f}"


def judged(cells, mine, theirs, peer, bound, at_most):
    """The cells and what is to be said of the ratio mine / theirs; whether it is good."""
    want = f"{'<=' if at_most else '>='} {bound:.3g}"
    if mine is None or theirs is None:
        return [*cells, "-", want, "NOT MEASURED"], False
    ratio = mine / theirs
    good = ratio <= bound if at_most else ratio >= bound
    return [*cells, f"{ratio:.2f} x {peer}", want, "good" if good else "MISSED"], good


class Bar:
    """What the ratio ours / theirs must reach. Of several peers the better one counts."""

    def __init__(self, what, title, unit, bound, at_most, peers):
        self.what, self.title, self.unit = what, title, unit
        self.bound, self.at_most, self.peers = bound, at_most, peers

    def best(self, samples):
        values = [(samples.median(peer, self.what), peer) for peer in self.peers]
        values = [pair for pair in values if pair[0] is not None]
        if not values:
            return None, None
        return min(values) if self.at_most else max(values)

    def row(self, samples, ours, peers):
        mine, (theirs, peer) = samples.median(ours, self.what), self.best(samples)
        cells = [self.title, self.unit, samples.text(ours, self.what),
                 *(samples.text(p, self.what) for p in peers)]
        return judged(cells, mine, theirs, peer, self.bound, self.at_most)


# The tests of one-sided communication: name, bytes, title, unit.
ONE_SIDED = [("put", 8, "put and flush", "us"), ("put", 16 << 10, "put and flush", "us"),
             ("get", 8, "get and flush", "us"), ("get", 16 << 10, "get and flush", "us"),
             ("accumulate", 8, "accumulate and flush", "us"),
             ("accumulate", 16 << 10, "accumulate and flush", "us"),
             ("fetch-op", 8, "fetch_and_op and flush", "us"),
             ("cas", 8, "compare_and_swap and flush", "us"),
             ("put-rate", 8, "puts, 64 and a flush", "/s"),
             ("acc-rate", 8, "accumulates, 64 and a flush", "/s"),
             ("created-put", 8, "put, MPI_Win_create", "us"),
             ("created-put", 16 << 10, "put, MPI_Win_create", "us"),
             ("created-fetch-op", 8, "fetch_and_op, MPI_Win_create", "us"),
             ("lock", 8, "lock, put, unlock", "us"), ("fence", 8, "put and fence", "us")]
LATENCIES = ("put", "get", "fetch-op", "cas", "created-put", "created-fetch-op")


def one_sided_tests(*without):
    names = dict.fromkeys(test for test, *_ in ONE_SIDED)
    return ",".join(name for name in names if name not in without)


def one_sided_bars(short, others, peers):
    """`short`: what the times of short operations must reach; `others`: what all other times must."""
    bars = []
    for test, size, title, unit in ONE_SIDED:
        bound = short if test in LATENCIES and size == 8 else others
        at_most = unit == "us"
        bars.append(Bar((test, size), f"{title}, {size} bytes", unit, bound if at_most else 1 / bound, at_most,
                        peers))
    return bars


def print_table(heading, rows):
    widths = [max(len(str(row[i])) for row in [heading, *rows]) for i in range(len(heading))]
    for row in [heading, *rows]:
        cells = [str(cell).ljust(width) if i < 2 else str(cell).rjust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip())


def compare(samples, bars, ours, peers):
    """Prints a table of bars; whether all were reached."""
    results = [bar.row(samples, ours, peers) for bar in bars]
    print_table(["what", "unit", ours, *peers, "ratio", "wanted", ""], [row for row, _ in results])
    return all(good for _, good in results)


def common_arguments(parser, rounds, timed=True):
    # As after Ctrl-C: what has been started and set up is ended and undone.
    for asked in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(asked) != signal.SIG_IGN:  # as under nohup
            signal.signal(asked, lambda number, _: sys.exit(128 + number))
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="DIR",
                        help="build directory (default: build)")
    parser.add_argument("--rounds", type=int, default=rounds, metavar="N",
                        help=f"runs of each library, interleaved (default {rounds})")
    if timed:
        parser.add_argument("--seconds", type=float, default=0.5, metavar="S",
                            help="time for each figure of a run (default 0.5)")
    timeout = 120 if timed else 600
    parser.add_argument("--timeout", type=float, default=timeout, metavar="S",
                        help=f"limit for each run (default {timeout})")
    parser.add_argument("--json", metavar="FILE", help="write the medians of all runs to FILE")


def manual_page_parser(text):
    """A parser whose --help is `text`, a manual page, with OPTIONS and what it knows of them before FILES."""
    class Parser(argparse.ArgumentParser):
        def format_help(self):
            options = super().format_help().partition("options:\n")[2]
            before, files, after = text.partition("FILES\n")
            return f"{before}OPTIONS\n{options}\n{files}{after}"

    parser = Parser(usage="", add_help=False, allow_abbrev=False,
                    formatter_class=lambda prog: argparse.HelpFormatter(prog, indent_increment=4, max_help_position=28,
                                                                        width=110))
    parser.error = lambda what: fail(f"{what}; see --help", 2)
    parser.add_argument("--help", action="help", help="this text")
    return parser


def finish(options, samples, good):
    if options.json:
        with open(options.json, "w") as file:
            json.dump([row for s in samples for row in s.rows()], file, indent=1)
    sys.exit(0 if good else 1)
