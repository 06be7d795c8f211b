#!/usr/bin/env python3
"""tools/count-tests, the judge of all other tests. Argument: the program."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""

GTEST = """[==========] Running 4 tests from 1 test suite.
[ RUN      ] A.One
[       OK ] A.One (0 ms)
[ RUN      ] A.Two
a.cpp:7: Failure
[  FAILED  ] A.Two (0 ms)
[ RUN      ] A.Three
a.cpp:9: Skipped
no second port

[  SKIPPED ] A.Three (0 ms)
[ RUN      ] A.Four
[       OK ] A.Four (0 ms)
[==========] 4 tests from 1 test suite ran. (1 ms total)
[  PASSED  ] 2 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] A.Three
[  FAILED  ] 1 test, listed below:
[  FAILED  ] A.Two

 1 FAILED TEST
"""
ALL_WELL = """[==========] Running 1 test from 1 test suite.
[ RUN      ] A.One
[       OK ] A.One (0 ms)
[==========] 1 test from 1 test suite ran. (1 ms total)
[  PASSED  ] 1 test.
"""


def count(*tests):
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as log:
        for stdout, result, code in tests:
            log.write(json.dumps({"name": "viaduct / t", "stdout": stdout, "result": result,
                                  "returncode": code}) + "\n")
    try:
        said = subprocess.run([PROGRAM, "here", log.name], check=True, capture_output=True, text=True)
    finally:
        os.unlink(log.name)
    *lines, last = said.stdout.splitlines()
    return last, "\n".join(lines)


class CountTests(unittest.TestCase):
    def test_gtest_cases_one_by_one(self):
        last, lines = count((GTEST, "FAIL", 1))
        self.assertEqual(last, "2 1 1")
        self.assertIn("FAILED  here: t A.Two", lines)
        self.assertIn("skipped here: t A.Three: no second port", lines)

    def test_gtest_that_crashed(self):
        last, lines = count((GTEST[:GTEST.index("[ RUN      ] A.Two")] + "[ RUN      ] A.Two\n", "FAIL", -11))
        self.assertEqual(last, "1 1 0")
        self.assertIn("A.Two: did not return", lines)

    def test_gtest_that_failed_after_its_last_case(self):
        last, lines = count((ALL_WELL, "FAIL", 23))
        self.assertEqual(last, "1 1 0")
        self.assertIn("exit status 23", lines)

    def test_gtest_without_cases(self):
        out = "[==========] Running 0 tests from 0 test suites.\n[==========] 0 tests from 0 test suites ran. (0 ms total)\n[  PASSED  ] 0 tests.\n"
        self.assertEqual(count((out, "OK", 0))[0], "0 1 0")

    def test_gtest_whose_sum_does_not_add_up(self):
        self.assertEqual(count((ALL_WELL.replace("1 test from", "2 tests from"), "OK", 0))[0], "1 1 0")

    def test_gtest_disabled_cases_are_not_hidden(self):
        self.assertEqual(count((ALL_WELL + "  YOU HAVE 2 DISABLED TESTS\n", "OK", 0))[0], "1 0 2")

    def test_tap(self):
        last, lines = count(("TAP version 13\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP not root\n1..3\n", "FAIL", 1))
        self.assertEqual(last, "1 1 1")
        self.assertIn("c: not root", lines)

    def test_tap_skipped_as_a_whole(self):
        self.assertEqual(count(("1..0 # SKIP no tshark\n", "SKIP", 0))[0], "0 0 1")

    def test_plain_program(self):
        self.assertEqual(count(("", "OK", 0), ("", "FAIL", 1), ("", "TIMEOUT", -15), ("why\n", "SKIP", 77))[0], "1 2 1")

    def test_sum_over_programs(self):
        self.assertEqual(count((GTEST, "FAIL", 1), (ALL_WELL, "OK", 0))[0], "3 1 1")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
