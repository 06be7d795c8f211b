"""How bench/papers runs a command of papers_tables and reads what it has measured, and its plots."""
import contextlib
import json
import os
import re
import statistics
import subprocess
import tempfile

import mpi_peers as mp

PEERS = ["mpich", "openmpi"]


def merge(into, figures):
    for key, values in figures.items():
        into.setdefault(key, []).extend(values)


# ---- commands that are programs --------------------------------------------------------------------------

def run_with_json(command, options):
    """A sibling's bars may be missed, and it then ends with status 1: what counts here is its figures."""
    with tempfile.TemporaryDirectory() as place:
        file = os.path.join(place, "figures.json")
        try:
            mp.execute([*command.arguments, "--json", file], None, options.limit, isolate=False)
        except mp.RunFailed:
            if not os.path.exists(file):
                raise
        with open(file) as rows:
            return json.load(rows)


def read_samples(command, options):
    """What mpi_peers.finish() writes, in us; a broadcast round in ms, and a round trip for half of one."""
    figures = {}
    for row in run_with_json(command, options):
        what, values = row["test"], row["medians"]
        if what == "bcast-round":
            values = [value / 1e3 for value in values]
        if what == "posted-latency":
            what, values = "posted-round-trip", [2 * value for value in values]
        merge(figures, {(row["who"], what, row["bytes"]): values})
    return figures


def read_pingpong(command, options):
    figures = {}
    for row in run_with_json(command, options):
        if row["round_trip_ns"]:
            merge(figures, {(row["layer"], "one way", row["bytes"]): [row["round_trip_ns"]["median"] / 2e3]})
        if row["bandwidth_MBps"]:
            merge(figures, {(row["layer"], "bandwidth", row["bytes"]): [row["bandwidth_MBps"]["median"]]})
    return figures


LINE_OF_SIZES = re.compile(r"^viaduct: job: (?:between|within) nodes:\s+(\d+)(?:-\d+| and more)?\s+(\d+)\s+(\d+)\s+[\d.]+$")


def sizes_in(text):
    """{least size of a class: (messages, bytes)} of the job's table, as VIADUCT_STATS prints it: between and
    within nodes together."""
    sizes = {}
    for line in text.splitlines():
        if found := LINE_OF_SIZES.match(line):
            least, messages, total = map(int, found.groups())
            before = sizes.get(least, (0, 0))
            sizes[least] = before[0] + messages, before[1] + total
    return sizes


def read_sizes(command, options):
    said = mp.execute(list(command.arguments), dict(command.env), options.limit, isolate=False)
    sizes = sizes_in(said)
    if not sizes:
        raise mp.RunFailed("VIADUCT_STATS printed no table of message sizes", said)
    return {("viaduct", what, least): [pair[i]] for least, pair in sizes.items() for i, what in enumerate(("messages", "bytes"))}


# ---- MPI libraries beside each other, by mpi_bench ---------------------------------------------------------

def libraries(options):
    return ["viaduct", *(peer for peer in PEERS if options.peers and mp.can_build(peer))]


def in_turns(command, options, starts):
    """starts: {who: (command, environment)}. The figures, with the bandwidth of a message there and back, and
    "better": of the peers the one that is better by its median."""
    samples = mp.Samples()
    for _ in range(options.rounds):
        for who, (start, env) in starts.items():
            samples.take(who, lambda s=start, e=env: mp.run(s, ["--pin", *command.arguments], e, options.timeout,
                                                            isolate=not s[0].endswith("viaduct-run")))
    figures = {}
    for (who, (test, size)), values in samples.values.items():
        figures[who, test, size] = values
        figures[who, "bandwidth", size] = [size / value for value in values]
    for what, size in {key[1:] for key in figures}:
        peers = [figures[peer, what, size] for peer in PEERS if (peer, what, size) in figures]
        if peers:
            figures["better", what, size] = (min if what == "latency" else max)(peers, key=statistics.median)
    return figures


def read_in_memory(command, options):
    starts = {who: mp.on_this_machine(who, mp.build(who, options.build), 2, False) for who in libraries(options)}
    return in_turns(command, options, starts)


def read_between_hosts(command, options):
    run = [os.path.join(mp.TOOLS, "viaduct-run"), "-n", "2", "--hosts", "2", "--mtu", "9000", "--channel", "startx"]
    starts = {"viaduct": ([*run, mp.build("viaduct", options.build)], {})}
    with contextlib.ExitStack() as stack:
        peers = libraries(options)[1:]
        if peers:
            bed = stack.enter_context(mp.Bed(9000, False))
            starts |= {peer: (getattr(bed, peer)(2, mp.build(peer, options.build)), {}) for peer in peers}
        return in_turns(command, options, starts)


READERS = {"samples": read_samples, "pingpong": read_pingpong, "sizes": read_sizes,
           "mpi_in_memory": read_in_memory, "mpi_between_hosts": read_between_hosts}


def measure(command, options):
    """The figures of a command; of one that is shown as it is, its text."""
    if command.needs:
        if command.needs in mp.OURS:
            mp.build(command.needs, options.build)
        else:
            mp.execute(["ninja", "-C", options.build, command.needs], None, options.limit, isolate=False)
    if command.reader == "text":
        return mp.execute(list(command.arguments), dict(command.env), options.limit, isolate=False)
    figures = {}
    for _ in range(options.rounds if command.each_round else 1):
        merge(figures, READERS[command.reader](command, options))
    return figures


# ---- plots ---------------------------------------------------------------------------------------------

COLOURS = {"viaduct": "#0b6e4f", "mpich": "#c1440e", "openmpi": "#3a5fcd"}


def head(file, size):
    return [f'set terminal svg noenhanced size {size} font "Helvetica,13" background "white"',
            f"set output '{file}'", "set grid"]


def curves(file, figures):
    """Fig. 1: bandwidth of messages there and back by size, within a host and between two."""
    lines = [*head(file, "1100,420"), "set logscale xy", 'set format y "%g"', 'set xlabel "message size (bytes)"',
             'set ylabel "MB/s"', "set key right bottom", "set multiplot layout 1,2"]
    for title, of in zip(("(a) within a host", "(b) between two hosts"), figures):
        plots = []
        for who in ("viaduct", *PEERS):
            points = sorted((size, statistics.median(values)) for (w, what, size), values in of.items()
                            if w == who and what == "bandwidth" and size)
            if points:
                lines += [f"${who} << END", *(f"{size} {value}" for size, value in points), "END"]
                plots.append(f'${who} with linespoints linewidth 2 linecolor rgb "{COLOURS[who]}" title "{who}"')
        if plots:
            lines += [f'set title "{title}"', "plot " + ", ".join(plots)]
    return [*lines, "unset multiplot"]


def sizes(file, figures):
    """Fig. 3: shares of messages, and of bytes, by size."""
    of = figures[0]
    least = sorted({size for _, _, size in of})
    lines = [*head(file, "900,420"), "set style data histograms", "set style fill solid 0.8", "set yrange [0:100]",
             'set ylabel "%"', 'set xlabel "message size (bytes, from)"', "set xtics rotate by -40", "$data << END"]
    for size in least:
        lines.append(" ".join([f'"{size}"', *(f"{share(of, what, size):.3f}" for what in ("messages", "bytes"))]))
    return [*lines, "END", 'plot $data using 2:xtic(1) title "of the messages", "" using 3 title "of the bytes"']


def share(figures, what, size):
    total = sum(statistics.median(values) for (_, w, _), values in figures.items() if w == what)
    return 100 * statistics.median(figures["viaduct", what, size]) / total if total else 0


PLOTS = {"curves": curves, "sizes": sizes}


def plot(name, file, figures):
    script = "\n".join([*PLOTS[name](file, figures), ""])
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
