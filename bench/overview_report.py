"""What bench/overview says of its figures: the page, the long table, the plot. Knows nothing of how they
were measured.

Figures are a dictionary as bench/overview writes it: "rounds", "failures" ({who: why}) and "rows", each
with "wire" ("containers" or "hosts"), "layer", "bytes", "round_trip_us" and "MBps" (one value a round)."""
import statistics
import subprocess

KIB = 1 << 10
SIZES = [8, 64, 512, 4 * KIB, 64 * KIB]

# The rows that are compared: the name in the tables, and the layers it is the best of, for each size.
WAYS = {
    "kernel UDP": ["udp"],
    "kernel TCP": ["tcp"],
    "kernel TCP, offload on": ["tcp-offload"],
    "StarT-X": ["startx-pio", "startx-queue", "startx-rdma"],
    "MBCF": ["mbcf-write"],
    "MPI: Viaduct": ["mpi"],
    "MPI: MPICH over TCP": ["mpich"],
    "MPI: Open MPI over TCP": ["openmpi"],
}
BASE = "kernel TCP"
OURS = ["StarT-X", "MBCF", "MPI: Viaduct"]
PEERS = ["MPI: MPICH over TCP", "MPI: Open MPI over TCP"]

WIRES = {
    "containers": "TWO CONTAINERS ON ONE MACHINE: Viaduct over shared memory (memif), the others over a veth pair",
    "hosts": "TWO HOSTS ON AN ORDINARY INTERFACE (veth; Viaduct by af_packet): 1500-byte frames for everybody",
}


class Measure:
    """A column of the page: one figure of a row, at one size. `gain` of two figures is greater than 1 where
    the first one is better."""

    def __init__(self, title, unit, field, size, scale, less_is_better=False):
        self.title, self.unit, self.field, self.size, self.scale = title, unit, field, size, scale
        self.less_is_better = less_is_better

    def better(self, values):
        return min(values) if self.less_is_better else max(values)

    def gain(self, mine, theirs):
        if not mine or not theirs:
            return None
        return theirs / mine if self.less_is_better else mine / theirs


MEASURES = [
    Measure("8-byte round trip", "us", "round_trip_us", 8, 1, less_is_better=True),
    Measure("64 KiB stream", "MB/s", "MBps", 64 * KIB, 1),
    Measure("8-byte messages", "million/s", "MBps", 8, 1 / 8),
]


class Figures:
    def __init__(self, figures):
        self.rounds, self.failures = figures["rounds"], figures["failures"]
        self.rows = {(row["wire"], row["layer"], row["bytes"]): row for row in figures["rows"]}

    def ways(self, wire):
        """Those that were measured on this wire."""
        there = {(at, layer) for at, layer, _ in self.rows}
        return [way for way, layers in WAYS.items() if any((wire, layer) in there for layer in layers)]

    def samples(self, wire, way, measure, size=None):
        """Of the layer that has the best median; none where nothing came through."""
        found = []
        for layer in WAYS[way]:
            row = self.rows.get((wire, layer, size or measure.size), {})
            if values := [value for value in row.get(measure.field, []) if value]:
                found.append((statistics.median(values), values))
        if not found:
            return []
        best = measure.better([median for median, _ in found])
        return next(values for median, values in found if median == best)

    def median(self, wire, way, measure, size=None):
        values = self.samples(wire, way, measure, size)
        return statistics.median(values) * measure.scale if values else None


def number(value):
    """Three digits that count."""
    if value is None:
        return "-"
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


# ---- the page ------------------------------------------------------------------------------------------

def table(figures, wire):
    yield WIRES[wire]
    for way in figures.ways(wire):
        line = f"  {way:<22}"
        for measure in MEASURES:
            mine = figures.median(wire, way, measure)
            ratio = measure.gain(mine, figures.median(wire, BASE, measure))
            line += f"{number(mine):>13}{number(ratio):>9}"
        yield line


def beside_peers(figures, wire):
    """Our MPI and the better of the others, as a sentence."""
    gains = []
    for measure in MEASURES:
        theirs = [value for peer in PEERS if (value := figures.median(wire, peer, measure))]
        gain = theirs and measure.gain(figures.median(wire, "MPI: Viaduct", measure),
                                       measure.better(theirs))
        gains.append(number(gain or None))
    if gains != ["-"] * len(gains):
        yield f"  {'x better other MPI':<22}" + "".join(f"{gain:>22}" for gain in gains)


NOISY = 3  # rounds that differ by more than this say that the machine was busy


def noise(figures):
    """The most by which rounds of a figure on the page differ."""
    spreads = [max(values) / min(values) for wire in WIRES for way in figures.ways(wire)
               for measure in MEASURES if (values := figures.samples(wire, way, measure))]
    return max(spreads, default=1)


def losses(figures):
    """Where something else is better than the best of ours by a tenth or more."""
    for wire, where in (("containers", "between containers"), ("hosts", "between hosts")):
        for measure in MEASURES:
            ours = [value for way in OURS if (value := figures.median(wire, way, measure))]
            others = {way: value for way in figures.ways(wire) if way not in OURS
                      if (value := figures.median(wire, way, measure))}
            if not ours or not others:
                continue
            best = measure.better(others.values())
            ratio = measure.gain(best, measure.better(ours))
            if ratio >= 1.1:
                name = next(way for way, value in others.items() if value == best)
                yield f"{measure.title} {where}: {name} is {number(ratio)} times as good"


CAUSE = """\
    With segmentation offload the kernel takes 64 KiB in one piece and nothing here splits it. A port sends
    frames; through af_packet the processor copies each one, and each passes the kernel's network stack."""
NOT_BETTER = """\
  - Progress is by polling: a waiting driver keeps a core busy (MPI sleeps), a computing one serves nobody.
  - One Ethernet segment of machines that trust each other: no routing, encryption or congestion control.
  - Where there are RDMA NICs, UCX and libfabric use their engines; here the processor copies every byte."""
NEXT = """\
NEXT  your own NIC          build/tools/viaduct-info  (what is there, what is missing, what mends it)
      your MPI program      ninja -C build; build/libmpi_lite/mpicc x.c -o x; tools/viaduct-run --hosts 2 ./x
      your VIPL program     docs/vipl.md; without an RDMA NIC: tools/install-packages vm; bench/compare-verbs"""


def page(figures, saved):
    """The lines of the story; `saved` says where plot and figures are."""
    yield (" " * 24 + "".join(f"{measure.title:>22}" for measure in MEASURES))
    yield (" " * 24 + "".join(f"{measure.unit:>13}{'x TCP':>9}" for measure in MEASURES))
    for wire in WIRES:
        yield from table(figures, wire)
        yield from beside_peers(figures, wire)
    yield (f"Medians of {figures.rounds} rounds of all programs in turn. x TCP: how many times as good as "
           "kernel TCP above it.")
    if (most := noise(figures)) > NOISY:
        yield (f"ROUNDS DIFFER BY UP TO {number(most)} TIMES: processors are shared or differ in distance; figures "
               "mean little.")
    for who, why in figures.failures.items():
        yield f"{who}: {why}"
    yield ""
    yield "WHERE VIADUCT IS NOT THE BETTER CHOICE"
    lost = list(losses(figures))
    yield from (f"  - {line}" for line in lost)
    if any("stream between hosts" in line for line in lost):
        yield from CAUSE.splitlines()
    yield from NOT_BETTER.splitlines()
    yield saved
    yield from NEXT.splitlines()


def long_table(figures):
    """Everything that was measured, with the least and the most of the rounds."""
    def spread(values):
        if not values:
            return "-"
        return f"{number(statistics.median(values))} [{number(min(values))}..{number(max(values))}]"

    for wire, title in WIRES.items():
        yield from ("", title)
        yield f"  {'bytes':>8}  {'layer':<13}{'round trip, us':>28}{'stream, MB/s':>30}"
        for size in SIZES:
            for layer in [layer for layers in WAYS.values() for layer in layers]:
                if row := figures.rows.get((wire, layer, size)):
                    cells = [spread([v for v in row[field] if v]) for field in ("round_trip_us", "MBps")]
                    yield f"  {size:>8}  {layer:<13}{cells[0]:>28}{cells[1]:>30}"


# ---- the plot ------------------------------------------------------------------------------------------

# Told apart by colour-blind readers, and by their marks in print.
COLOURS = ["#999999", "#000000", "#666666", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00"]


def plot_script(figures, file):
    """For gnuplot: above the containers, below the hosts; to the left the round trip, to the right the
    stream."""
    lines = ['set terminal svg noenhanced size 1100,820 font "Helvetica,13" background "white"',
             f"set output '{file}'", "set logscale xy", "set grid", 'set format y "%g"',
             'set xlabel "message size (bytes)"', "set key left top",
             'set xtics ("8" 8, "64" 64, "512" 512, "4K" 4096, "64K" 65536, "1M" 1048576)',
             "unset mytics", "set xrange [6:1400000]", "set multiplot layout 2,2"]
    for wire, where in (("containers", "two containers, memif"),
                        ("hosts", "two hosts, af_packet, 1500-byte frames")):
        for measure, title, key in ((MEASURES[0], "Round trip, us", "left top"),
                                    (MEASURES[1], "Stream, MB/s", "right bottom")):
            ways = figures.ways(wire)
            for number_, way in enumerate(ways):
                points = [f"{size} {figures.median(wire, way, measure, size) or 'NaN'}" for size in SIZES]
                lines += [f"$d{number_} << END", *points, "END"]
            plots = ", ".join(
                f'$d{n} with linespoints linewidth 2 pointsize 0.6 pointtype {4 + list(WAYS).index(way)} '
                f'linecolor rgb "{COLOURS[list(WAYS).index(way)]}" title "{way}"'
                for n, way in enumerate(ways))
            lines += [f'set title "{title}: {where}"', f"set key {key} font \",11\"", f"plot {plots}"]
    return "\n".join([*lines, "unset multiplot", ""])


def plot(figures, file):
    subprocess.run(["gnuplot"], input=plot_script(figures, file.replace("'", "''")), text=True, check=True)
