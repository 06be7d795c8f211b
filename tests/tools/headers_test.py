#!/usr/bin/env python3
"""Every header that is installed compiles alone: C++ ones as C++20, C ones in both languages. Prints TAP.
Arguments: the tree, the build directory, the C++ and the C compiler."""
import concurrent.futures
import json
import os
import subprocess
import sys

TREE, BUILD, CXX, CC = sys.argv[1:5]
DPDK = subprocess.run(["pkg-config", "--cflags", "libdpdk"], capture_output=True, text=True, check=True)
FLAGS = [*DPDK.stdout.replace("-I", "-isystem").split(), "-I" + TREE, "-DALLOW_EXPERIMENTAL_API", "-D_GNU_SOURCE",
         "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]


def installed_headers():
    plan = subprocess.run(["meson", "introspect", "--install-plan", BUILD], capture_output=True, text=True,
                          check=True)
    return sorted(json.loads(plan.stdout)["headers"])


def compile_alone(header, language):
    command = [*((CXX, "-std=c++20") if language == "c++" else (CC, "-std=c11")), *FLAGS, "-x", language,
               "-include", header, "/dev/null"]
    return subprocess.run(command, capture_output=True, text=True)


HEADERS = installed_headers()
if not HEADERS:
    sys.exit("the build directory installs no header")
JOBS = [(header, language) for header in HEADERS
        for language in (("c++",) if header.endswith(".hpp") else ("c", "c++"))]
print("TAP version 13")
with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
    results = pool.map(lambda job: compile_alone(*job), JOBS)
    for number, ((header, language), done) in enumerate(zip(JOBS, results), 1):
        print("ok" if done.returncode == 0 else "not ok", number, "-", os.path.relpath(header, TREE), "as", language)
        for line in done.stderr.splitlines():
            print("#", line)
print(f"1..{len(JOBS)}")
