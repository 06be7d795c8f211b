#!/usr/bin/env python3
"""What bench/overview (and so tools/quickstart) says of its figures. Argument: the directory bench."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
BENCH = sys.argv.pop(1)
sys.path.insert(0, BENCH)
import mpi_peers  # noqa: E402
import overview_report as report  # noqa: E402

# By layer: the round trip of 8 bytes in us, MB/s of 64 KiB messages, MB/s of 8-byte messages. Each is
# the median of three rounds.
CONTAINERS = {"udp": (5, 550, 3), "tcp": (6, 2500, 60), "startx-pio": (0.25, 4000, 480),
              "startx-queue": (0.3, 3900, 520), "startx-rdma": (0.7, 11000, 45),
              "mbcf-write": (0.24, 12000, 380), "mpi": (0.4, 11000, 120), "mpich": (12, 1500, 4),
              "openmpi": (20, 1400, 2)}
HOSTS = {"udp": (5, 550, 3), "tcp": (6, 600, 56), "tcp-offload": (6, 2600, 60),
         "startx-pio": (3.4, 400, 35), "startx-queue": (3.6, 410, 88), "startx-rdma": (12, 750, 7),
         "mbcf-write": (3.5, 760, 79), "mpi": (3.7, 715, 57), "mpich": (13, 550, 4)}


def figures(tables=None, failures=None):
    rows = []
    for wire, table in (tables or {"containers": CONTAINERS, "hosts": HOSTS}).items():
        for layer, (trip, rate, small) in table.items():
            for size in report.SIZES:
                middle = small if size == 8 else rate
                rows.append({"wire": wire, "layer": layer, "bytes": size,
                             "round_trip_us": [trip * 1.5, trip, trip * 0.6],
                             "MBps": [middle * 0.6, middle, middle * 1.5]})
    return {"rounds": 3, "failures": failures or {}, "rows": rows}


def page(tables=None, failures=None):
    return list(report.page(report.Figures(figures(tables, failures)), "PLOT  x.svg"))


def row(lines, wire, way):
    """The six cells behind a name, in the table of a wire."""
    start = lines.index(report.WIRES[wire])
    line = next(line for line in lines[start:] if line.strip().startswith(way + "  "))
    return line.replace(way, "").split()


class Page(unittest.TestCase):
    def test_is_short(self):
        lines = page()
        self.assertLessEqual(len(lines), 40 - 3)  # tools/quickstart prints three lines itself
        self.assertLessEqual(max(map(len, lines)), 110)

    def test_figures_are_medians_beside_tcp(self):
        self.assertEqual(row(page(), "containers", "kernel TCP"), ["6.00", "1.00", "2,500", "1.00", "7.50", "1.00"])
        self.assertEqual(row(page(), "hosts", "MBCF"), ["3.50", "1.71", "760", "1.27", "9.88", "1.41"])

    def test_a_way_shows_the_best_of_its_layers(self):
        self.assertEqual(row(page(), "containers", "StarT-X")[::2], ["0.25", "11,000", "65.0"])

    def test_our_mpi_is_compared_with_the_better_one(self):
        self.assertEqual(row(page(), "containers", "x better other MPI"), ["30.0", "7.33", "30.0"])

    def test_what_was_not_measured_is_not_there(self):
        lines = page()
        start = lines.index(report.WIRES["hosts"])
        self.assertFalse([line for line in lines[start:] if "Open MPI" in line])
        tables = {wire: {layer: figure for layer, figure in table.items() if layer not in ("mpich", "openmpi")}
                  for wire, table in (("containers", CONTAINERS), ("hosts", HOSTS))}
        lines = page(tables, {"MPICH": "not compared"})
        self.assertFalse([line for line in lines if "other MPI" in line])
        self.assertIn("MPICH: not compared", lines)

    def test_losses_are_said_with_their_ratio_and_cause(self):
        said = "\n".join(page())
        self.assertIn("64 KiB stream between hosts: kernel TCP, offload on is 3.42 times as good", said)
        self.assertIn(report.CAUSE, said)
        self.assertNotIn("between containers:", said)

    def test_nothing_is_said_to_be_lost_that_is_not(self):
        tables = {"containers": CONTAINERS, "hosts": {**HOSTS, "tcp-offload": (6, 700, 56)}}
        said = "\n".join(page(tables))
        self.assertNotIn("times as good\n", said)
        self.assertNotIn(report.CAUSE, said)

    def test_a_busy_machine_is_noticed(self):
        self.assertNotIn("ROUNDS DIFFER", "\n".join(page()))
        values = figures()
        next(one for one in values["rows"] if one["layer"] == "mpi")["round_trip_us"] = [0.4, 0.5, 40]
        self.assertIn("ROUNDS DIFFER BY UP TO 100 TIMES", "\n".join(report.page(report.Figures(values), "")))

    def test_a_round_in_which_nothing_came_does_not_count(self):
        values = figures()
        for one in values["rows"]:
            if one["layer"] == "udp":
                one["round_trip_us"] = [None, 5, None]
                one["MBps"] = [None] * 3
        lines = list(report.page(report.Figures(values), ""))
        self.assertEqual(row(lines, "hosts", "kernel UDP"), ["5.00", "1.20", "-", "-", "-", "-"])


class LongTableAndPlot(unittest.TestCase):
    def test_long_table_has_every_layer_and_size_with_its_spread(self):
        lines = list(report.long_table(report.Figures(figures())))
        self.assertEqual(len([line for line in lines if " startx-rdma " in line]), 2 * len(report.SIZES))
        self.assertTrue(any("3.50 [2.10..5.25]" in line and " mbcf-write " in line for line in lines))

    def test_plot_script_has_every_way_of_a_wire(self):
        script = report.plot_script(report.Figures(figures()), "it''s.svg")
        self.assertIn("set output 'it''s.svg'", script)
        self.assertEqual(script.count('title "MPI: Viaduct"'), 4)
        self.assertEqual(script.count('title "kernel TCP, offload on"'), 2)


class Program(unittest.TestCase):
    def test_shows_what_was_recorded(self):
        with tempfile.TemporaryDirectory() as place:
            file = os.path.join(place, "figures.json")
            with open(file, "w") as out:
                json.dump(figures(), out)
            done = subprocess.run([os.path.join(BENCH, "overview"), "--show", file, "--long"],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(report.WIRES["hosts"], done.stdout)

            with open(file, "w") as out:
                json.dump(figures({"containers": {"tcp": CONTAINERS["tcp"]}, "hosts": HOSTS}), out)
            done = subprocess.run([os.path.join(BENCH, "overview"), "--show", file],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("StarT-X, MBCF, MPI: Viaduct could not be measured between two containers", done.stderr)


class OtherMpis(unittest.TestCase):
    """Debian's mpich has the compiler's command without the headers."""
    def can_build(self, status):
        with tempfile.TemporaryDirectory() as place:
            compiler = os.path.join(place, "mpicxx.some")
            with open(compiler, "w") as out:
                out.write(f"#!/bin/sh\nexit {status}\n")
            os.chmod(compiler, 0o755)
            with mock.patch.dict(os.environ, {"PATH": place + os.pathsep + os.environ["PATH"]}):
                return mpi_peers.can_build("some")

    def test_a_compiler_that_finds_no_header_is_not_installed(self):
        self.assertTrue(self.can_build(status=0))
        self.assertFalse(self.can_build(status=1))
        self.assertFalse(mpi_peers.can_build("missing"))


class Quickstart(unittest.TestCase):
    """Without measuring anything."""
    program = os.path.join(BENCH, "..", "tools", "quickstart")

    def test_help_is_a_manual_page(self):
        done = subprocess.run([self.program, "--help"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0)
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS"):
            self.assertIn(f"{section}\n    ", done.stdout)

    def test_wrong_usage_is_one_sentence(self):
        for arguments in (["--layer", "raw"], ["--rounds"]):
            done = subprocess.run([self.program, *arguments], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr.count("\n"), 1)


unittest.main()
