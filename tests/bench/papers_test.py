#!/usr/bin/env python3
"""What bench/papers makes of its commands' output, without measuring. Argument: the directory bench."""
import contextlib
import io
import json
import os
import stat
import subprocess
import sys
import tempfile
import types
import unittest
from importlib.machinery import SourceFileLoader

sys.dont_write_bytecode = True
BENCH = sys.argv.pop(1)
sys.path.insert(0, BENCH)
import papers_figures as figures_of  # noqa: E402
import papers_tables  # noqa: E402

papers = types.ModuleType("papers")
SourceFileLoader("papers", os.path.join(BENCH, "papers")).exec_module(papers)

STATS = """\
viaduct: rank 0: within nodes:                     256-511            3             1200           0.00
viaduct: job: between nodes: 7 messages (5.0/s), 0.9 MB (0.4 MB/s), by Remote Write 12.50 % of the bytes and 16 % of the messages
viaduct: job: between nodes:      bytes of a message     messages     bytes in all remote write %
viaduct: job: between nodes:                       0            2                0          50.00
viaduct: job: between nodes:                 256-511            4             1200           0.00
viaduct: job: within nodes:      bytes of a message     messages     bytes in all remote write %
viaduct: job: within nodes:                 256-511            6             1800           0.00
viaduct: job: within nodes:     4294967296 and more            1       9000000000          99.90
"""


def options(**more):
    return types.SimpleNamespace(**({"build": "/build", "rounds": 2, "seconds": 0.1, "quick": False, "peers": False,
                                     "limit": 60, "timeout": 60, "plots": "/none"} | more))


def printed(function, *arguments):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        result = function(*arguments)
    return out.getvalue(), result


class Tables(unittest.TestCase):
    def setUp(self):
        self.tables = papers_tables.tables(options())

    def test_each_row_is_measured_by_a_command_of_its_table(self):
        for table in self.tables:
            for row in table.rows:
                self.assertIn(row.command, table.commands, row.title)
            self.assertTrue(table.rows or any(c.reader in ("text", "sizes") for c in table.commands), table.name)
            for command in table.commands:
                self.assertIn(command.reader, [*figures_of.READERS, "text"])

    def test_siblings_exist_and_help_names_every_table(self):
        for table in self.tables:
            self.assertIn(f"    {table.name} ", papers.__doc__)
            for command in table.commands:
                if command.arguments[0].startswith(BENCH):
                    self.assertTrue(os.access(command.arguments[0], os.X_OK), command.arguments[0])

    def test_published_ratios_are_those_of_the_papers(self):
        ratios = {table.name: [papers.better(*row.published, row.smaller_is_better) for row in table.rows]
                  for table in self.tables}
        self.assertEqual(ratios["000-table3"], ["0.99", "1.68", "2.09", "1.93"])
        self.assertEqual(ratios["001-table1"], ["1.58", "0.96", "0.98"])
        self.assertEqual(ratios["001-table2"], ["1.44", "-"])

    def test_a_quick_run_leaves_tables_and_takes_fewer_ranks(self):
        quick = papers_tables.tables(options(quick=True))
        self.assertEqual([t.name for t in quick], [t.name for t in self.tables])
        self.assertEqual(len(next(t for t in quick if t.name == "000-table3").rows), 2)


class Readers(unittest.TestCase):
    def program(self, place, rows, status):
        """Writes rows to the file that --json names, as the siblings do, and ends with a status."""
        path = os.path.join(place, "program")
        with open(path, "w") as file:
            file.write("#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\n"
                       f"{'' if rows is None else f'cat >$1 <<END{chr(10)}{json.dumps(rows)}{chr(10)}END{chr(10)}'}"
                       f"exit {status}\n")
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def measured(self, rows, status=0, reader="samples", **more):
        with tempfile.TemporaryDirectory() as place:
            command = papers_tables.Command((self.program(place, rows, status),), reader, **more)
            return figures_of.measure(command, options())

    def test_samples_are_read_though_a_bar_is_missed(self):
        rows = [{"who": "sr", "test": "posted-latency", "bytes": 0, "medians": [4, 5]},
                {"who": "on", "test": "bcast-round", "bytes": 8, "medians": [1500]}]
        self.assertEqual(self.measured(rows, 1), {("sr", "posted-round-trip", 0): [8, 10],
                                                  ("on", "bcast-round", 8): [1.5]})

    def test_a_program_without_figures_is_a_failure(self):
        with self.assertRaises(figures_of.mp.RunFailed):
            self.measured(None, 1)

    def test_pingpong_is_started_each_round(self):
        rows = [{"layer": "udp", "bytes": 8, "round_trip_ns": {"median": 4000}, "bandwidth_MBps": None}]
        self.assertEqual(self.measured(rows, 0, "pingpong", each_round=True), {("udp", "one way", 8): [2, 2]})

    def test_sizes_of_all_channels_are_added(self):
        self.assertEqual(figures_of.sizes_in(STATS), {0: (2, 0), 256: (10, 3000), 4294967296: (1, 9000000000)})


class Page(unittest.TestCase):
    def test_a_line_has_medians_spread_and_both_ratios(self):
        table = next(t for t in papers_tables.tables(options()) if t.name == "000-table3")
        row = table.rows[1]
        figures = {row.ours: [1, 2, 4], row.beside: [3, 4, 5]}
        text, good = printed(papers.show, table, {row.command: figures})
        line = next(line for line in text.splitlines() if line.startswith("P=2+2"))
        for part in ("2.000 [1.000..4.000]", "4.000 [3.000..5.000]", " 2.00 ", "1.68"):
            self.assertIn(part, line)
        self.assertFalse(good, "the other rows were not measured")

    def test_what_cannot_be_measured_says_why(self):
        table = papers_tables.Table("x", "t", "b", (papers_tables.Command(("/bin/false",), "samples"),))
        text, measured = printed(papers.take, table, {}, options())
        self.assertIn("NOT MEASURED: ", text)
        self.assertFalse(papers.show(table, measured))

    def test_plots_have_every_point(self):
        sizes = {("viaduct", what, least): [pair[i]] for least, pair in figures_of.sizes_in(STATS).items()
                 for i, what in enumerate(("messages", "bytes"))}
        script = "\n".join(figures_of.sizes("f.svg", [sizes]))
        self.assertIn('"256" 76.923 0.000', script)
        of = {("viaduct", "bandwidth", 8): [1, 3, 2], ("mpich", "bandwidth", 8): [7]}
        script = "\n".join(figures_of.curves("f.svg", [of, of]))
        self.assertEqual(script.count("8 2\n"), 2)
        self.assertEqual(script.count("8 7\n"), 2)

    def test_wrong_names_are_wrong_usage(self):
        done = subprocess.run([os.path.join(BENCH, "papers"), "--only", "002-table9"], capture_output=True, text=True)
        self.assertEqual((done.returncode, "000-table1" in done.stderr), (2, True))


if __name__ == "__main__":
    unittest.main()
