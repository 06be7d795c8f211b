#!/usr/bin/env python3
"""What bench/vi-connections says of its rows. Argument: the directory bench."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
BENCH = sys.argv.pop(1)
sys.path.insert(0, BENCH)
import vi_report as report  # noqa: E402


def row(part, name, ranks, manager="on-demand", number=0, **found):
    return {"part": part, "name": name, "ranks": ranks, "manager": manager, "round": number, **found}


def table2(vis=None):
    """Rows with the paper's figures, or others."""
    for name, by_ranks in report.PAPER_VIS.items():
        for ranks, paper in by_ranks.items():
            made = (vis or {}).get((name, ranks), paper)
            yield row("table2", name, ranks, results=[], counters={"vis_made": [made] * ranks},
                      peers=[made / 2] * ranks)


def table1():
    for name in report.COUNTED:
        for ranks in (16, 64, 1024):
            yield {"part": "table1", "name": name, "ranks": ranks, "messages": 3.5, "with_collectives": 6.75}


def fig1():
    for number in range(3):
        for name in ("latency", "bandwidth"):
            for manager, factor in (("static-peer", 1), ("on-demand", 1.02)):
                results = [{"bytes": size, "with_connection_us": 10 * factor * (number + 1),
                            "connected_us": 10.0 * (number + 1)} for size in (8, 1024)]
                yield row("fig1", name, 4, manager, number, results=results, counters={}, peers=[])


def fig2():
    for name, manager, steps, us in (("8 bytes", "on-demand", (0, 8), 10.0), ("allreduce", "on-demand", (0, 8), 20.0),
                                     ("allreduce", "static-peer", (0,), 30.0)):
        results = [{"idle": idle, "us": [us, us + 1, us + idle]} for idle in steps]
        yield row("fig2", name, 16, manager, results=results, counters={}, peers=[])


def fig5():
    for ranks in (4, 8):
        for manager in [*report.MANAGERS, report.SHM]:
            found = {} if manager == report.SHM else {"counters": {"vis_made": [ranks - 1] * ranks}, "peers": []}
            results = [{"rank": rank, "init_ms": 10.0 + rank, "cpu_ms": 5.0, "pinned_kib": 64} for rank in range(ranks)]
            yield row("fig5", "init", ranks, manager, results=results, **found)


def page(rows):
    return "\n".join(report.page(report.Figures(list(rows))))


def cells(text, *start):
    """Of the line that begins with these."""
    return next(line.split() for line in text.splitlines() if line.split()[:len(start)] == list(start))


class Tables(unittest.TestCase):
    def test_table2_is_beside_the_paper(self):
        said = page(table2())
        self.assertEqual(cells(said, "CG", "16"), ["CG", "16", "15", "4.75", "4.75", "0.16", "0.32", "0.50", "1.00"])
        self.assertNotIn("ABOVE", said)

    def test_more_than_the_paper_fails(self):
        figures = report.Figures(list(table2({("barrier", 32): 10, ("mg", 16): 5})))
        self.assertEqual(figures.above_paper(), [("barrier", 32)])
        self.assertFalse(figures.good())
        self.assertEqual(cells(page(table2({("barrier", 32): 10})), "Barrier", "32")[-1], "ABOVE")

    def test_published_means_have_two_places(self):
        self.assertTrue(report.Figures(list(table2({("cg", 32): 5.78125}))).good())

    def test_table1_says_what_could_not_be_counted(self):
        said = page(table1())
        self.assertEqual(cells(said, "Sweep3D"), ["Sweep3D", "3.50", "6.75", "-", "3.50", "6.75", "3.5", "3.50", "6.75",
                                                  "<4"])
        for name in ("SMG2000", "SAMRAI"):
            self.assertIn(f"{name} could not be counted: ", said)

    def test_what_was_not_measured_is_not_there(self):
        self.assertNotIn("TABLE 1", page(table2()))
        self.assertNotIn("FIGURE", page(table1()))

    def test_a_failed_run_is_told_and_fails(self):
        rows = [*table2(), row("fig5", "init", 8, "static-peer", failed="it took more than 1 s")]
        self.assertIn("fig5, init, 8 ranks, static-peer: it took more than 1 s", page(rows))
        self.assertFalse(report.Figures(rows).good())


class Curves(unittest.TestCase):
    def test_ratios_are_of_the_same_round(self):
        self.assertEqual(cells(page(fig1()), "latency", "8")[2:],
                         ["20.0", "[10.0..30.0]", "20.4", "[10.2..30.6]", "1.02", "[1.02..1.02]", "1.00", "[1.00..1.00]",
                          "0.97..1.03"])

    def test_idle_connections_are_compared_with_none(self):
        said = page(fig2())
        self.assertEqual(cells(said, "8")[1:5], ["11.0", "1.10", "<=", "1.05"])
        self.assertIn("static Virtual Interfaces over on demand: 1.50; paper (Berkeley VIA): 1.17", said)

    def test_init_is_a_mean_over_the_ranks(self):
        self.assertEqual(cells(page(fig5()), "static-peer", "8"),
                         ["static-peer", "8", "13.5", "1.00", "5.00", "64.0", "7.00"])


class Plots(unittest.TestCase):
    def test_there_is_one_of_each(self):
        rows = [*table1(), *table2(), *fig1(), *fig2(), *fig5()]
        with tempfile.TemporaryDirectory() as place:
            files = report.draw(report.Figures(rows), os.path.join(place, "it's"))
            if not files:
                self.skipTest("gnuplot is missing")
            self.assertEqual(len(files), 5)
            for file in files:
                with open(file) as plot:
                    self.assertIn("</svg>", plot.read())


class Program(unittest.TestCase):
    program = os.path.join(BENCH, "vi-connections")

    def test_help_is_a_manual_page(self):
        done = subprocess.run([self.program, "--help"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0)
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "PARTS", "OPTIONS", "FILES", "EXIT STATUS"):
            self.assertIn(f"{section}\n    ", done.stdout)

    def test_wrong_usage_is_refused(self):
        for arguments in (["--part", "fig9"], ["--fast"]):
            done = subprocess.run([self.program, *arguments], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""))


unittest.main()
