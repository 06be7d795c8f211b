#!/usr/bin/env python3
"""viaduct-pingpong as its users meet it. Prints TAP. Arguments: the program, viaduct-testbed."""
import concurrent.futures
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM, TESTBED = sys.argv[1], sys.argv[2]
SCRATCH = tempfile.mkdtemp(prefix="pingpong-test-")
PORT_LAYERS = ["raw", "raw-fetch", "startx-pio", "startx-queue", "startx-rdma", "mbcf-write",
               "mbcf-signal", "mbcf-fifo", "mbcf-read", "mbcf-atomic"]
# A process can have one side of these only.
LONE_LAYERS = ["mpi"]
KERNEL_LAYERS = ["packet", "udp", "tcp"]
# Two rounds: the second one begins with another layer.
TINY = ["--rounds", "2", "--time-per-point", "5"]
CASES = []


class Skip(Exception):
    pass


def case(function):
    CASES.append(function)
    return function


def run(*arguments, timeout=60, **more):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=timeout,
                          **more)


def check(condition, said=""):
    if not condition:
        raise AssertionError(said)


def all_namespaces():
    try:
        return {n for n in os.listdir("/run/netns") if n.startswith("pingpong-")}
    except FileNotFoundError:
        return set()


# Of other runs on this machine.
FOREIGN = all_namespaces()


def namespaces():
    return sorted(all_namespaces() - FOREIGN)


def need_namespaces():
    if os.geteuid() != 0:
        raise Skip("network namespaces need root")
    probe = subprocess.run(["unshare", "-n", "true"], capture_output=True)
    if probe.returncode != 0:
        raise Skip("this machine does not let root make network namespaces")


def need_two_cpus():  # both sides spin
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip("this needs two CPUs")


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(p) for p in file.read().split()]


# Both sides spin while they measure: who has used as much of a processor as this does it.
def measures(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            user, system = stat.read().rsplit(")", 1)[1].split()[11:13]
    except FileNotFoundError:
        return False
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") >= 0.5


def wait_until(condition, what, process):
    deadline = time.monotonic() + 20
    while not condition():
        check(time.monotonic() < deadline and process.poll() is None, what)
        time.sleep(0.02)


def check_json(file, bed, layers, sizes):
    with open(file) as f:
        rows = json.load(f)
    check([(r["layer"], r["bytes"]) for r in rows] == [(l, s) for l in layers for s in sizes], rows)
    for r in rows:
        check(set(r) == {"bed", "layer", "bytes", "round_trip_ns", "bandwidth_MBps",
                         "messages_per_s"}, r)
        check(r["bed"] == bed, r)
        rtt, rate = r["round_trip_ns"], r["bandwidth_MBps"]
        check(rtt is not None and rate is not None, r)
        check(0 < rtt["min"] <= rtt["median"] <= rtt["p99"], r)
        check(0 < rate["median"] <= rate["max"], r)
        expected = rate["median"] * 1e6 / r["bytes"]
        check(abs(r["messages_per_s"] / expected - 1) < 0.01, r)


def measure(bed, layers, sizes, *more, **how):
    if bed != "ring":
        need_two_cpus()
    file = os.path.join(SCRATCH, f"{bed}.json")
    done = run("--bed", bed, "--layer", ",".join(layers), "--sizes", ",".join(map(str, sizes)),
               "--json", file, *TINY, *more, **how)
    check(done.returncode == 0, done.stderr)
    check(done.stderr == "", done.stderr)
    check_json(file, bed, layers, sizes)
    for layer in layers:
        check(re.search(rf"^ +{sizes[0]}  {layer} ", done.stdout, re.M), done.stdout)
    return done.stdout


@case
def ring_measures_every_layer():
    out = measure("ring", PORT_LAYERS, [4, 8, 88, 92, 5000])
    check("Compared with raw" in out, out)


@case
def ring_with_a_fixed_number_of_messages():
    out = run("--bed", "ring", "--layer", "startx-queue", "--sizes", "8", "--rounds", "1",
              "--measure", "bandwidth", "--messages", "20000")
    check(out.returncode == 0 and "20,000 messages" in out.stdout, out)
    check("median ns" not in out.stdout, out.stdout)


@case
def memif_measures_every_layer():
    measure("memif", PORT_LAYERS + LONE_LAYERS, [4, 8, 5000, 100000])


@case
def memif_mpi_over_startx():
    measure("memif", ["startx-pio", "mpi"], [4, 5000, 100000],
            env=dict(os.environ, VIADUCT_CHANNEL="startx"))


@case
def verbs_without_a_device():
    if os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
        raise Skip("this host has an RDMA device; that its layers work is seen in tests/vipl")
    out = run("--bed", "verbs")
    check(out.returncode == 1 and out.stdout == "", out)
    check(re.fullmatch(r"viaduct-pingpong: this host has no RDMA device .*viaduct-vm.*\n", out.stderr), out)


@case
def memif_without_checksum_and_with_jumbo_frames():
    measure("memif", ["raw", "startx-rdma", "mbcf-write"], [65536], "--checksum", "off",
            "--mtu", "9000")


@case
def memif_survives_injected_faults():
    # raw shows that the faults happen, the others that they do not matter to them.
    faults = dict(os.environ, VIADUCT_FAULTS="loss=5%,dup=1%,reorder=2%,corrupt=1%,seed=3")
    done = run("--bed", "memif", "--layer", "raw,startx-pio,mbcf-write,mbcf-fifo", "--sizes", "8",
               "--rounds", "3", "--time-per-point", "30", env=faults)
    check(done.returncode == 0, done.stderr)
    check(re.search(r"^raw at 8 bytes: \d+ round trips lost", done.stdout, re.M), done.stdout)
    for layer in ("startx-pio", "mbcf-write", "mbcf-fifo"):
        check(f"{layer} at 8 bytes:" not in done.stdout, done.stdout)


@case
def netns_measures_every_layer():
    need_namespaces()
    out = measure("netns", PORT_LAYERS + LONE_LAYERS + KERNEL_LAYERS, [4, 8, 5000])
    for base in ("raw", "packet", "udp", "tcp"):
        check(f"Compared with {base}" in out, out)
    check(namespaces() == [], namespaces())


@case
def netns_without_segmentation_offload():
    need_namespaces()
    measure("netns", ["tcp"], [8, 5000], "--offload", "off")


@case
def netns_over_af_xdp():
    need_namespaces()
    need_two_cpus()
    done = run("--bed", "netns", "--pmd", "af_xdp", "--sizes", "8", *TINY)
    if done.returncode != 0 and re.search("af_xdp.*(not permitted|no driver)", done.stderr):
        raise Skip("af_xdp does not work here: " + done.stderr.strip())
    check(done.returncode == 0, done.stderr)
    check("Compared with udp" in done.stdout, done.stdout)  # the port has made way for it


@case
def plots_are_drawn():
    if not shutil.which("gnuplot"):
        raise Skip("gnuplot is not installed")
    for name, start in (("a plot.svg", b"<?xml"), ("plot.png", b"\x89PNG")):
        file = os.path.join(SCRATCH, name)
        done = run("--bed", "ring", "--layer", "raw,startx-pio", "--sizes", "8:64", "--plot", file,
                   *TINY)
        check(done.returncode == 0, done.stderr)
        with open(file, "rb") as f:
            content = f.read()
        check(content.startswith(start), content[:100])
        if name.endswith(".svg"):
            check(b"startx-pio" in content and b"round trip" in content.lower(), content[:200])


@case
def bad_input_is_one_sentence():
    usage = [["--bed", "moon"], ["--bed", "memif", "--layer", "warp"],
             ["--bed", "ring", "--sizes", "3"], ["--bed", "memif", "--layer", "tcp"],
             ["--bed", "ring", "--rounds", "-1"], ["--bed", "ring", "--layer", "mpi"],
             ["--listen"], []]
    failure = [["--listen", "--port", "net_nonsense0"],
               ["--listen", "--port", "net_af_packet0,iface=nosuchport"],
               ["--bed", "ring", "--json", "/nonexistent/out.json"],
               ["--bed", "ring", "--json", "/"],
               ["--listen", "--ip", "192.0.2.1"]]
    for status, all_arguments in ((2, usage), (1, failure)):
        for arguments in all_arguments:
            done = run(*arguments)
            check(done.returncode == status, (arguments, done))
            check(done.stdout == "" and done.stderr.count("\n") == 1, (arguments, done))
            check(done.stderr.startswith("viaduct-pingpong: "), (arguments, done))


@case
def a_bad_variable_is_one_sentence():
    # What the link reads, what only MPI and only VIPL do; before any other side is started.
    for bed, name in itertools.product(("ring", "memif"), ("MAX_WINDOW", "EAGER_SHM", "VIPL_SPIN")):
        done = run("--bed", bed, "--layer", "startx-pio", "--sizes", "8", *TINY,
                   env={**os.environ, "VIADUCT_" + name: "many"})
        check(done.returncode == 1, done)
        check(done.stderr.count("\n") == 1, done)
        check(done.stderr.startswith(f"viaduct-pingpong: VIADUCT_{name}=many is not "), done)


@case
def plot_without_gnuplot_names_the_package():
    done = run("--bed", "ring", "--plot", os.path.join(SCRATCH, "x.svg"),
               env={"PATH": SCRATCH})
    check(done.returncode == 1 and "apt-get install gnuplot-nox" in done.stderr, done)


@case
def netns_without_root_says_what_it_needs():
    if os.geteuid() != 0:
        command = [PROGRAM]
    else:
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                   "--inh-caps=-all", "--bounding-set=-all", PROGRAM]
        if subprocess.run([*command, "--help"], capture_output=True).returncode != 0:
            raise Skip("nobody may not execute " + PROGRAM)
    done = subprocess.run([*command, "--bed", "netns"], capture_output=True, text=True, timeout=30)
    check(done.returncode == 1 and "root" in done.stderr, done)
    check(done.stderr.count("\n") == 1, done)


# It tries for ten seconds, of which it sleeps nearly all: beside the cases before its own.
def connect_to_nobody():
    start = time.monotonic()
    return run("--connect", "127.0.0.1"), time.monotonic() - start


CONNECTED_TO_NOBODY = concurrent.futures.ThreadPoolExecutor(1).submit(connect_to_nobody)


@case
def nobody_connects_to_nobody():
    done, seconds = CONNECTED_TO_NOBODY.result()
    check(done.returncode == 1 and "--listen" in done.stderr, done)
    check("nobody listens at 127.0.0.1 yet" in done.stderr, done)
    check(seconds < 20, "took too long")


def start_bed(bed, layers):
    need_two_cpus()
    process = subprocess.Popen([PROGRAM, "--bed", bed, "--layer", layers, "--sizes", "8",
                                "--rounds", "1000"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True,
                               # Ours may be ignored, as under nohup.
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
    wait_until(lambda: sum(map(measures, children(process.pid))) == 2, "the bed does not start", process)
    return process, children(process.pid)


def check_death(bed, layers, which):
    process, sides = start_bed(bed, layers)
    os.kill(sides[which], signal.SIGKILL)
    start = time.monotonic()
    _, err = process.communicate(timeout=20)
    check(process.returncode == 1, (process.returncode, err))
    check(time.monotonic() - start < 15, "took too long")
    check("signal 9" in err, err)
    check(not any(map(is_running, sides)), "a side still runs")
    check(namespaces() == [], namespaces())


@case
def memif_a_killed_side_ends_the_run():
    for layer in ("raw", "startx-pio"):
        for which in (0, 1):
            check_death("memif", layer, which)


@case
def netns_a_killed_side_ends_the_run_and_the_bed():
    need_namespaces()
    for which in (0, 1):
        check_death("netns", "startx-pio,tcp", which)


@case
def netns_an_interrupted_run_takes_the_bed_down():
    need_namespaces()
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process, sides = start_bed("netns", "raw,udp")
        process.send_signal(how)
        process.communicate(timeout=20)
        check(process.returncode == 130, process.returncode)
        check(not any(map(is_running, sides)), "a side still runs")
        check(namespaces() == [], namespaces())


@case
def netns_the_bed_goes_even_if_the_program_is_killed():
    need_namespaces()
    process, sides = start_bed("netns", "startx-pio")
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 10
    while namespaces() or any(map(is_running, sides)):
        check(time.monotonic() < deadline, namespaces())
        time.sleep(0.1)


class Hosts:
    """Two emulated hosts on which the two sides are started by hand."""
    def __init__(self, which=""):
        self.name = f"pptest-{os.getpid()}{which}"

    def __enter__(self):
        need_namespaces()
        need_two_cpus()
        subprocess.run([TESTBED, "up", "--name", self.name], check=True, capture_output=True)
        return self

    def __exit__(self, *_):
        subprocess.run([TESTBED, "down", "--name", self.name], check=True, capture_output=True)

    def start(self, host, *arguments, env=None):
        cpus = sorted(os.sched_getaffinity(0))
        cpu = cpus[0 if host == "host0" else -1]
        return subprocess.Popen([TESTBED, "exec", "--name", self.name, host, "--", "taskset", "-c",
                                 str(cpu), PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=env)


PORT = ["--port", "net_af_packet0,iface=p0"]


def listen(hosts, *arguments, env=None):
    server = hosts.start("host1", "--listen", *arguments, env=env)
    while True:  # its last line before it waits
        line = server.stdout.readline()
        check(line, "it does not listen")
        if line.startswith("on the other host:"):
            return server, line.split("--connect ")[1].split()[0]


def check_hosts(hosts, listen_to, layers, more, env=None):
    file = os.path.join(SCRATCH, "hosts.json")
    server, address = listen(hosts, *listen_to, env=env)
    client = hosts.start("host0", "--connect", address, *more, "--layer", ",".join(layers),
                         "--sizes", "8,5000", "--json", file, *TINY, env=env)
    _, err = client.communicate(timeout=90)
    check(client.returncode == 0, err)
    _, err = server.communicate(timeout=20)
    check(server.returncode == 0, err)
    check_json(file, "hosts", layers, [8, 5000])


@case
def hosts_find_each_other_by_mac_address():
    with Hosts() as hosts:
        check_hosts(hosts, PORT, PORT_LAYERS + LONE_LAYERS, PORT)


@case
def hosts_find_each_other_by_ip_address():
    with Hosts() as hosts:
        check_hosts(hosts, [*PORT, "--ip", "10.77.0.2"], ["startx-pio"] + KERNEL_LAYERS, PORT)


@case
def orders_survive_a_lossy_wire():
    with Hosts() as hosts:
        check_hosts(hosts, PORT, ["startx-pio"], PORT,
                    env=dict(os.environ, VIADUCT_FAULTS="loss=10%,dup=5%,seed=5"))


@case
def hosts_say_at_once_why_nobody_answers():
    with Hosts() as hosts:
        own = "02:76:64:00:00:00"
        for address, word in ((own, "own port"), ("02:76:64:00:01:00", "--listen")):
            start = time.monotonic()
            client = hosts.start("host0", "--connect", address, *PORT, "--layer", "startx-pio", "--sizes", "8")
            _, err = client.communicate(timeout=30)
            check(client.returncode == 1 and word in err and err.count("\n") == 1, (client.returncode, err))
            check(time.monotonic() - start < 10, "took too long")
        subprocess.run([TESTBED, "exec", "--name", hosts.name, "host1", "--", "ip", "link", "set", "p0", "down"],
                       check=True)
        server = hosts.start("host1", "--listen", *PORT)
        _, err = server.communicate(timeout=30)
        check(server.returncode == 1 and "p0 is down" in err, (server.returncode, err))


@case
def hosts_notice_that_the_other_one_is_gone():
    # Both at once, since a side is silent for seconds before it is given up.
    with Hosts("a") as one, Hosts("b") as other:
        survivors = [survivor_of(one, "server"), survivor_of(other, "client")]
        for stays in survivors:
            _, err = stays.communicate(timeout=25)
            check(stays.returncode == 1 and err.count("\n") == 1, (stays.returncode, err))


def survivor_of(hosts, victim):
    server, address = listen(hosts, *PORT)
    client = hosts.start("host0", "--connect", address, *PORT, "--layer", "startx-pio", "--sizes", "8",
                         "--rounds", "1000")
    dies, stays = (server, client) if victim == "server" else (client, server)
    wait_until(lambda: measures(server.pid) and measures(client.pid), "they do not start", stays)
    check(dies.poll() is None, "ended too early")
    dies.kill()
    dies.communicate()
    return stays


def main():
    failures = 0
    print(f"1..{len(CASES)}", flush=True)
    for number, function in enumerate(CASES, 1):
        name = function.__name__.replace("_", " ")
        try:
            function()
            print(f"ok {number} - {name}", flush=True)
        except Skip as reason:
            print(f"ok {number} - {name} # SKIP {reason}", flush=True)
        except Exception as error:  # whatever it is, the other cases still run
            failures += 1
            print(f"not ok {number} - {name}", flush=True)
            for line in f"{type(error).__name__}: {error}".splitlines():
                print("# " + line, flush=True)
    shutil.rmtree(SCRATCH)
    return 1 if failures else 0


sys.exit(main())
