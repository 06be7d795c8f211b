#!/usr/bin/env python3
"""The table of functions and tests in docs/vipl.md is true: every function of vipl.h is exported and
stands in the table, and every test that it names exists. Prints TAP.
Arguments: docs/vipl.md, vipl.h, libvipl.so, the test programs (GoogleTest)."""
import fnmatch
import re
import subprocess
import sys

DOCS, HEADER, LIBRARY, *PROGRAMS = sys.argv[1:]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def declared():
    return set(re.findall(r"^(?:VIP_RETURN|VIP_PVOID|void) (Vip\w+)\(", read(HEADER), re.M))


def exported():
    said = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True,
                          check=True).stdout
    return {line.split()[2] for line in said.splitlines()}


def tests():
    found = set()
    for program in PROGRAMS:
        said = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True,
                              check=True).stdout
        suite = ""
        for line in said.splitlines():
            word = line.split("#")[0].strip()
            if not line.startswith(" "):
                suite = word
            else:
                found.add(re.sub(r"/\d+$", "", suite + word))
    return found


def rows():
    """[(functions, patterns of tests)]"""
    out = []
    for line in read(DOCS).split("| function | group |")[1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not cells[0].startswith("`"):
            continue
        patterns, suite = [], ""
        for name in cells[2].split(","):
            name = name.strip()
            suite, dot, case = name.rpartition(".") if not name.startswith(".") else (suite, ".", name[1:])
            patterns.append(suite + dot + case)
        out.append((re.findall(r"`(Vip\w+)`", cells[0]), patterns))
    return out


def main():
    table, known = rows(), tests()
    in_table = {function for functions, _ in table for function in functions}
    lost = [f"{functions[0]}: {pattern}" for functions, patterns in table for pattern in patterns
            if not fnmatch.filter(known, pattern)]
    checks = [("the header declares the functions of VIPL 1.0, two of cLAN and ten of ours", len(declared()) == 53,
               len(declared())),
              ("the library exports what the header declares and nothing else",
               declared() == exported(), declared() ^ exported()),
              ("every function stands in the table", declared() == in_table, declared() ^ in_table),
              ("every row names tests", all(patterns for _, patterns in table), table),
              ("every test that is named exists", known and not lost, lost)]
    for number, (what, good, said) in enumerate(checks, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {what}")
        if not good:
            print(f"# {said}")
    print(f"1..{len(checks)}")
    sys.exit(0 if all(good for _, good, _ in checks) else 1)


main()
