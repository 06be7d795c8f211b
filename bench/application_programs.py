"""The programs of bench/applications: how each is built by its own build system, what is run, and what the
program itself says about whether its results are right."""
import math
import os
import re

import mpi_peers as mp

BENCH = os.path.dirname(os.path.abspath(__file__))


def require(good, what, said):
    if not good:
        raise mp.RunFailed(what, said)


class Program:
    """`package`: its source package; `unpack_options`: tar's, to leave out what is large and not needed."""
    name = package = ""
    unpack_options = []

    def prepare(self, source):
        """Commands that are run once in the unpacked sources, for all MPI libraries."""
        return []

    def build(self, library, source):
        """Commands that build it for a library in an empty directory."""
        raise NotImplementedError

    def build_ours(self, library):
        """Commands that compile what of it is ours, in the same directory; always run, as it may change."""
        return []

    def measure(self, job):
        """Runs it and looks at its results. Gives seconds by what was measured."""
        raise NotImplementedError


class NetPipe(Program):
    name, package = "NetPIPE", "netpipe"
    SIZES = [8, 16 << 10, 1 << 20]

    def build(self, library, source):
        return [["cp", "-a", f"{source}/.", "."], ["make", "mpi", f"MPICC={library.cc}", "CFLAGS=-O2"]]

    def measure(self, job):
        said = job.run("NPmpi", "-i", "-u", 64 << 10)
        require("Integrity check passed" in said and "failed" not in said, "the integrity check failed", said)
        times = {}
        for size in self.SIZES:
            said = job.run("NPmpi", "-p", 0, "-l", size, "-u", size, "-o", "np.out")
            rows = [line.split() for line in job.read("np.out").splitlines()]
            require(len(rows) == 1 and int(rows[0][0]) == size, "it measured another size", said)
            times[f"{size} bytes, one way"] = float(rows[0][2])
        return times


class Fftw(Program):
    name, package = "FFTW", "fftw3"
    # What mpi-bench calls them: o and i, out of place and in place; c, r, k: complex, real, real to real;
    # f and b, forward and backward.
    VERIFIED = ["ocf60x40x24", "icb32x32x32", "orf48x30x18", "irb24x40x20", "ok20e10x24o01x12b", "ocf5040", "icb65536"]
    TIMED = ["ocf128x128x128", "ocf256x256", "ocf1048576"]
    # All directories that know nothing of MPI.
    SERIAL = ["support", "kernel", "simd-support", "dft", "rdft", "reodft", "api", "libbench2"]

    def prepare(self, source):
        # Configured with a stand-in for the MPI compiler, since only the directory mpi is compiled with one.
        return [["./configure", "-q", "--enable-mpi", "--disable-fortran", "--disable-doc", "MPICC=mpicc.mpich"],
                *(["make", "-s", "-C", part] for part in self.SERIAL),
                ["make", "-s", "libfftw3.la"]]

    def build(self, library, source):
        return [["cp", "-a", f"{source}/.", "."],
                ["make", "-s", "-C", "mpi", "mpi-bench", f"CC={library.cc} {library.older}".strip(),
                 f"MPICC={library.cc}"]]

    def measure(self, job):
        said = job.run("mpi/mpi-bench", "-v", "-oestimate", *("--verify=" + what for what in self.VERIFIED))
        for what in self.VERIFIED:
            found = re.search(rf"^{what} (\S+) (\S+) (\S+)$", said, re.MULTILINE)
            require(found and max(map(float, found.groups())) < 1e-10, f"{what} was not verified", said)
        times = {}
        for what in self.TIMED:
            said = job.run("mpi/mpi-bench", "-oestimate", "-r", 4, "--report-time", "-s", what)
            found = re.search(r"^\(\S+ \S+ \S+ (\S+)\)$", said, re.MULTILINE)
            require(found, "it reported no time", said)
            times[what] = float(found[1])
        return times


class Parpack(Program):
    """Its own examples, whose residuals are looked at, and the singular values of a large sparse matrix."""
    name, package = "PARPACK", "arpack"
    EXAMPLES = ["pssdrv1", "pdsdrv1", "psndrv1", "psndrv3", "pdndrv1", "pdndrv3", "pcndrv1", "pzndrv1"]

    def build(self, library, source):
        return [["cmake", "-S", source, "-B", ".", "-DMPI=ON", "-DEXAMPLES=ON", "-DTESTS=OFF",
                 "-DBUILD_SHARED_LIBS=OFF", "-DCMAKE_BUILD_TYPE=Release", f"-DMPI_Fortran_COMPILER={library.fc}",
                 "-DCMAKE_Fortran_FLAGS=-fallow-argument-mismatch"],
                ["make", "arpack", "parpack", *self.EXAMPLES]]

    def build_ours(self, library):
        return [command for name in ("svd", "multiply")  # multiply is for bench/mpi-start-tables
                for command in compile_ours(library, name, "-L.", "-lparpack", "-larpack")]

    def measure(self, job):
        for example in self.EXAMPLES:
            said = job.run("PARPACK/EXAMPLES/MPI/" + example)
            wanted = re.search(r"Ritz values requested is\s+(\d+)", said)
            found = re.search(r"number of converged Ritz values is\s+(\d+)", said)
            rows = [line.replace("D", "E").split() for line in re.findall(r"Row\s+\d+:(.*)", said)]
            bound = 1e-3 if example[1] in "sc" else 1e-9
            require(wanted and found and int(found[1]) >= int(wanted[1]) and len(rows) >= int(found[1]) and
                    all(float(row[-1]) < bound for row in rows), f"{example} has not found what it looked for", said)
        job.run("svd", 600, 20)
        return {"SVD 10K x 10K": result(job.run("svd"))[0]}


def compile_ours(library, program, *libraries):
    """Commands that compile one of the programs in bench/mpi_start."""
    source, timer = (os.path.join(BENCH, "mpi_start", file) for file in (program + ".f90", "communication_time.c"))
    return [[library.cc, "-O2", "-c", timer, "-o", "communication_time.o"],
            [library.fc, "-O2", "-o", program, source, "communication_time.o", *libraries, "-llapack", "-lblas"]]


def result(said):
    """What such a program says: seconds, and the share of them that it has communicated."""
    found = re.search(r"^result: (\S+) s, communication (\S+) %, right$", said, re.MULTILINE)
    require(found, "it did not say that its result is right", said)
    return float(found[1]), float(found[2]) / 100


class Hpcc(Program):
    name, package = "HPCC", "hpcc"
    SIZE, BLOCK = 2000, 64

    def build(self, library, source):
        # One of its own settings files, with everything that depends on the machine overridden. OMPI_...: it calls
        # functions that MPI-3 removed, which Open MPI's library has, but not its header.
        options = {"CC": library.cc, "LINKER": library.cc, "MPdir": "", "MPinc": "", "MPlib": "", "LAdir": "",
                   "LAinc": "", "LAlib": "-lblas",
                   "CCFLAGS": "$(HPL_DEFS) -O3 -funroll-loops -w -DOMPI_OMIT_MPI1_COMPAT_DECLS=1", "CCNOOPT": "$(HPL_DEFS) -w"}
        return [["cp", "-a", f"{source}/.", "."],
                ["cp", "hpl/setup/Make.Linux_PII_FBLAS", "hpl/Make.bench"],
                ["make", "arch=bench", *(f"{key}={value}" for key, value in options.items())]]

    def measure(self, job):
        job.write("hpccinf.txt", self.input(job.ranks))
        said = job.run("hpcc")
        report = job.read("hpccoutf.txt")
        figures = dict(re.findall(r"^(\w+)=(\S+)$", report, re.MULTILINE))
        require(figures.get("Success") == "1" and "FAILED" not in report and report.count("PASSED") >= 2,
                "its checks failed", said + report)
        values = {key: float(value) for key, value in figures.items() if re.fullmatch(r"[-+\d.eE]+", value)}
        size = values["MPIFFT_N"]  # its own count of operations is that of a power of two
        return {"HPL": values["HPL_time"],
                "PTRANS": values["PTRANS_time"],
                "RandomAccess, an update": values["MPIRandomAccess_time"] / values["MPIRandomAccess_ExeUpdates"],
                "FFT": 5 * size * math.log2(size) / (values["MPIFFT_Gflops"] * 1e9),
                "b_eff, ring, 8 bytes": values["RandomlyOrderedRingLatency_usec"] / 1e6,
                "b_eff, ring, 2 MB": 2e6 / (values["RandomlyOrderedRingBandwidth_GBytes"] * 1e9)}

    def input(self, ranks):
        rows = max(p for p in range(1, ranks + 1) if ranks % p == 0 and p * p <= ranks)
        lines = ["HPLinpack benchmark input file", "", "HPL.out", "8", "1", self.SIZE, "1", self.BLOCK, "0", "1", rows,
                 ranks // rows, "16.0", "1", "2", "1", "4", "1", "2", "1", "1", "1", "1", "1", "1", "2", "64", "0", "0",
                 "1", "8", "", "0", "0", "0", "0"]
        return "".join(f"{line}\n" for line in lines)
