#!/usr/bin/env python3
"""How bench/applications judges what programs say, what it says of their times, and what it builds again.
Argument: the directory bench."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
BENCH = sys.argv.pop(1)
sys.path.insert(0, BENCH)
import application_programs as programs  # noqa: E402
import mpi_peers as mp  # noqa: E402
import program_runs as runs  # noqa: E402
import program_sources as sources  # noqa: E402


def load(name):
    """A script without the ending of a module."""
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(BENCH, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


applications = load("applications")
tables = load("mpi-start-tables")


class FakeJob:
    """Says what it is told to, by the name of the program; files are what was told, too."""
    ranks, directory = 2, "/nowhere"

    def __init__(self, said, files=None):
        self.said, self.files, self.environment = said, files or {}, {}

    def run(self, program, *arguments):
        said = self.said[os.path.basename(program)]
        return said(list(map(str, arguments))) if callable(said) else said

    def read(self, name):
        return self.files[os.path.basename(name)]

    def write(self, name, text):
        pass


def netpipe(integrity="Integrity check passed"):
    job = FakeJob({})

    def run(arguments):
        if "-i" in arguments:
            return integrity
        size = int(arguments[arguments.index("-l") + 1])
        job.files["np.out"] = f"{size:8d} 123.456 {size * 1e-9:12.8f}\n"
        return ""
    job.said["NPmpi"] = run
    return job


def fftw(error="2.1e-16"):
    def run(arguments):
        verified = [word.partition("=")[2] for word in arguments if word.startswith("--verify=")]
        return "".join(f"{what} {error} 1e-16 1e-16\n" for what in verified) or "(0.1 0.3 0.4 0.2)\n"
    return FakeJob({"mpi-bench": run})


def hpcc(success=1, verdict="PASSED"):
    figures = {"Success": success, "HPL_time": 2.5, "PTRANS_time": 0.5, "MPIRandomAccess_time": 3,
               "MPIRandomAccess_ExeUpdates": 1000, "MPIFFT_N": 1024, "MPIFFT_Gflops": 0.5,
               "RandomlyOrderedRingLatency_usec": 4, "RandomlyOrderedRingBandwidth_GBytes": 2, "LANG": "C"}
    return FakeJob({"hpcc": ""}, {"hpccoutf.txt": f"PASSED\n{verdict}\n" +
                                                  "".join(f"{key}={value}\n" for key, value in figures.items())})


class Verdicts(unittest.TestCase):
    def fails(self, program, job, why):
        with self.assertRaisesRegex(mp.RunFailed, why):
            program.measure(job)

    def test_netpipe(self):
        times = programs.NetPipe().measure(netpipe())
        self.assertEqual(list(times.values()), [round(size * 1e-9, 8) for size in (8, 16 << 10, 1 << 20)])
        self.fails(programs.NetPipe(), netpipe("Integrity check failed: Expecting 1 but received 2"), "integrity")
        self.fails(programs.NetPipe(), netpipe(""), "integrity")

    def test_fftw(self):
        times = programs.Fftw().measure(fftw())
        self.assertEqual(set(times.values()), {0.2})
        self.fails(programs.Fftw(), fftw("1e-3"), "not verified")
        self.fails(programs.Fftw(), fftw("nan"), "not verified")
        self.fails(programs.Fftw(), FakeJob({"mpi-bench": ""}), "not verified")

    def test_hpcc(self):
        times = programs.Hpcc().measure(hpcc())
        self.assertAlmostEqual(times["RandomAccess, an update"], 0.003)
        self.assertAlmostEqual(times["FFT"], 5 * 1024 * 10 / 0.5e9)
        self.assertAlmostEqual(times["b_eff, ring, 2 MB"], 0.001)
        self.fails(programs.Hpcc(), hpcc(success=0), "checks failed")
        self.fails(programs.Hpcc(), hpcc(verdict="FAILED"), "checks failed")

    def test_ours(self):
        self.assertEqual(programs.result("x\nresult: .250000 s, communication 12.50 %, right\n"), (0.25, 0.125))
        with self.assertRaisesRegex(mp.RunFailed, "right"):
            programs.result("result: .250000 s, communication 12.50 %, wrong\n")


def samples(times):
    """Of times by library and channel."""
    found = mp.Samples()
    for (library, channel), time in times.items():
        placement = runs.Placement(channel, 2)
        found.take(f"{placement.who(library)}, fftw", lambda t=time: {("fftw", "a transform"): t})
    return found


class Report(unittest.TestCase):
    def report(self, times, channels=("shm", "mbcf", "startx")):
        placements = [runs.Placement(channel, 2) for channel in channels]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            good = applications.report(samples(times), placements, ["fftw"])
        return good, said.getvalue()

    def test_ratios(self):
        times = {("viaduct", "shm"): 1.0, ("mpich", "shm"): 2.0, ("openmpi", "shm"): 4.0,
                 ("viaduct", "mbcf"): 1.0, ("viaduct", "startx"): 8.0, ("mpich", "mbcf"): 4.0, ("openmpi", "mbcf"): 5.0}
        good, said = self.report(times)
        self.assertFalse(good)
        self.assertRegex(said, r"FFTW +a transform +1.000 s +0.50 +0.25 +1.000 s +0.25 +0.20 +8.000 s +2.00 +1.60")
        self.assertIn("shm 0.50, mbcf 0.25, startx 2.00", said)
        self.assertIn("FFTW a transform over startx: 2.00 of MPICH's time", said)
        self.assertTrue(self.report(times, ("shm", "mbcf"))[0])

    def test_a_failure_is_no_figure(self):
        good, said = self.report({("mpich", "shm"): 2.0, ("openmpi", "shm"): 4.0}, ("shm",))
        self.assertFalse(good)
        self.assertRegex(said, r"FFTW +a transform +failed")

    def test_peers_run_once_for_both_channels(self):
        turns = list(runs.turns([runs.Placement(channel, 2) for channel in ("shm", "mbcf", "startx")]))
        self.assertEqual([(library, placement.channel) for library, placement in turns],
                         [("viaduct", "shm"), ("mpich", "shm"), ("openmpi", "shm"), ("viaduct", "mbcf"),
                          ("mpich", "mbcf"), ("openmpi", "mbcf"), ("viaduct", "startx")])


class PaperTables(unittest.TestCase):
    def test_placements_are_the_papers(self):
        self.assertEqual([(text, placement.channel, placement.ranks) for text, placement in tables.placements("2+2,8")],
                         [("2+2", "startx", 4), ("2+2", "mbcf", 4), ("8", "shm", 8)])

    def test_a_row_has_times_ratios_and_communication(self):
        on = tables.placements("2+2")
        taken, shares = mp.Samples(), {}
        for who, time, share in (("viaduct, 4 ranks over startx", 2.0, 0.25), ("mpich, 4 ranks over tcp", 4.0, 0.5),
                                 ("openmpi, 4 ranks over tcp", 8.0, 0.75)):
            taken.take(who, lambda t=time: {("1K", ""): t})
            shares[who, "1K"] = [share]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            tables.report("Table", taken, shares, on, {"1K": ("multiply", 1024)}, lambda text, name: 4.8)
        self.assertRegex(said.getvalue(), r"2\+2 +startx +2.000 \(25 %\) +0.50 \(50 %\) +0.25 \(75 %\) +4.8\n")
        self.assertRegex(said.getvalue(), r"2\+2 +mbcf +failed +failed +failed +4.8\n")


class OneFile(programs.Program):
    """A program whose build notes that it was run."""
    name, package = "One", "one"

    def __init__(self, text):
        self.text = text

    def prepare(self, source):
        return [["sh", "-c", "echo prepared >>../notes"]]

    def build(self, library, source):
        return [["sh", "-c", f"cat {source}/file >built && echo {self.text} >>../notes"]]


class FakeLibrary:
    name = "viaduct"


class Building(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        top = os.path.join(self.place.name, "top")
        os.makedirs(top)
        with open(os.path.join(top, "file"), "w") as file:
            file.write("content")
        archives = os.path.join(self.place.name, "cache", "archives", "one")
        os.makedirs(archives)
        subprocess.run(["tar", "-czf", os.path.join(archives, "one_1.orig.tar.gz"), "-C", self.place.name, "top"],
                       check=True)
        self.cache = sources.Cache.__new__(sources.Cache)
        self.cache.place = os.path.join(self.place.name, "cache")

    def build(self, text, jobs=1):
        self.cache.jobs = jobs
        with contextlib.redirect_stdout(io.StringIO()):
            return self.cache.build(OneFile(text), FakeLibrary())

    def notes(self):
        with open(self.cache.path("one", "notes")) as file:
            return file.read().split()

    def test_built_once_unless_the_commands_change(self):
        for text, jobs in (("first", 1), ("first", 2), ("second", 2)):
            with open(os.path.join(self.build(text, jobs), "built")) as file:
                self.assertEqual(file.read(), "content")
        self.assertEqual(self.notes(), ["prepared", "first", "second"])

    def test_a_build_that_fails_is_tried_again(self):
        for _ in range(2):
            with self.assertRaisesRegex(mp.RunFailed, "failed; see .*viaduct.log"):
                self.build("first >>../notes; false")
        self.assertEqual(self.notes(), ["prepared", "first", "first"])


class Commands(unittest.TestCase):
    def run_bench(self, name, *arguments):
        return subprocess.run([os.path.join(BENCH, name), *arguments], capture_output=True, text=True)

    def test_help_is_a_manual_page(self):
        for name in ("applications", "mpi-start-tables"):
            done = self.run_bench(name, "--help")
            self.assertEqual(done.returncode, 0)
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "FILES", "EXIT STATUS"):
                self.assertIn(f"\n{section}\n    ", "\n" + done.stdout)
            self.assertIn("\n    --cache DIR ", done.stdout)

    def test_wrong_usage_is_refused(self):
        for name, *arguments in (("applications", "--fast"), ("mpi-start-tables", "--table", "6"),
                                 ("applications", "--program", "doom"), ("applications", "--ranks", "3"),
                                 ("mpi-start-tables", "--on", "1+3")):
            done = self.run_bench(name, *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertRegex(done.stderr, rf"^{name}: .*\n$")


unittest.main()
