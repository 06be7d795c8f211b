"""What bench/vi-connections says of its rows: tables, the published figures beside them, plots. Knows
nothing of how they were measured.

A row is a dictionary as bench/vi-connections writes it: "part", "name", "ranks", and in Table 1
"messages" and "with_collectives"; else "manager", "round", and "failed" with a reason or "results" (what
the ranks have printed), "counters" ({name: one value a rank}) and "peers" (one value a rank)."""
import shutil
import statistics
import subprocess

SHM = "shared memory"
MANAGERS = ["on-demand", "static-peer", "static-client-server"]

# Table 2 of the paper: mean number of VIs of a process, on demand, by ranks.
PAPER_VIS = {"ring": {16: 2, 32: 2}, "barrier": {16: 4, 32: 5}, "bcast": {16: 4, 32: 5},
             "allreduce": {16: 4, 32: 5}, "allgather": {16: 5, 32: 6}, "alltoall": {16: 15, 32: 31},
             "cg": {16: 4.75, 32: 5.78}, "mg": {16: 15, 32: 31}, "is": {16: 15, 32: 31},
             "sp": {16: 8, 36: 9.83}, "bt": {16: 8, 36: 9.83}}
PAPER_UTILISATION = {"ring": {16: .13, 32: .06}, "barrier": {16: .27, 32: .16}, "bcast": {16: .27, 32: .16},
                     "allreduce": {16: .27, 32: .16}, "allgather": {16: .33, 32: .19},
                     "alltoall": {16: 1, 32: 1}, "cg": {16: .32, 32: .19}, "mg": {16: 1, 32: 1},
                     "is": {16: 1, 32: 1}, "sp": {16: .53, 36: .28}, "bt": {16: .53, 36: .28}}

# Table 1. Its first three names are legible in the stored copy of the paper and no number is: these are
# from memory of it, and "<" is its own estimate.
PAPER_DESTINATIONS = {"sppm": {64: "5.5", 1024: "<6"}, "smg2000": {64: "41.88", 1024: "<1023"},
                      "sphot": {64: "0.98", 1024: "<1"}, "sweep3d": {64: "3.5", 1024: "<4"},
                      "samrai": {64: "4.94", 1024: "<10"}, "cg": {64: "6.36", 1024: "<11"}}
COUNTED = ["sppm", "sphot", "sweep3d", "cg", "mg", "is", "sp", "bt"]
NOT_COUNTED = {"smg2000": "its partners on coarse grids depend on the solver's set-up, and no rule is published",
               "samrai": "its mesh is refined adaptively, so partners depend on the data"}
NAMES = {"sppm": "sPPM", "smg2000": "SMG2000", "sphot": "Sphot", "sweep3d": "Sweep3D", "samrai": "SAMRAI",
         "ring": "Ring", "barrier": "Barrier", "bcast": "Bcast", "allreduce": "Allreduce",
         "allgather": "Allgather", "alltoall": "Alltoall"}

IDLE = ["8 bytes", "allreduce"]  # what Figure 2 measures
# Figure 2, on Berkeley VIA with 8 nodes: us of an allreduce of 1 KiB with 7 VIs a process, and with 3.
PAPER_ALLREDUCE = (515, 440)


def title(name):
    return NAMES.get(name, name.upper())


class Figures:
    def __init__(self, rows):
        self.rows = [row for row in rows if "failed" not in row]
        self.failed = [row for row in rows if "failed" in row]

    def select(self, part, **wanted):
        return [row for row in self.rows if row["part"] == part
                and all(row[key] == value for key, value in wanted.items())]

    def has(self, part):
        return any(row["part"] == part for row in self.rows)

    def vis(self, name, ranks):
        """Table 2: VIs that a process has made, or its partners over shared memory; mean over the ranks.
        None: not measured."""
        rows = self.select("table2", name=name, ranks=ranks)
        return statistics.mean(rows[0].get("counters", {}).get("vis_made") or rows[0]["peers"]) if rows else None

    def used(self, name, ranks):
        """How many of them have carried messages."""
        rows = self.select("table2", name=name, ranks=ranks)
        return statistics.mean(rows[0]["peers"]) if rows else None

    def above_paper(self):
        """Rows of Table 2 with more VIs than published (which has two places)."""
        return [(name, ranks) for name, by_ranks in PAPER_VIS.items() for ranks, paper in by_ranks.items()
                if (ours := self.vis(name, ranks)) is not None and ours > paper + 0.005]

    def good(self):
        return not self.failed and not self.above_paper()

    # ---- samples of the figures: one value a round

    def message_us(self, name, manager, size, which):
        """Figure 1; `which` is "with_connection_us" or "connected_us"."""
        return [result[which] for row in self.select("fig1", name=name, manager=manager)
                for result in row["results"] if result["bytes"] == size]

    def sizes(self):
        return sorted({result["bytes"] for row in self.select("fig1") for result in row["results"]})

    def idle_us(self, name, manager, idle):
        """Figure 2: all samples of a round have the same connections, so each gives one median."""
        return [statistics.median(result["us"]) for row in self.select("fig2", name=name, manager=manager)
                for result in row["results"] if result["idle"] == idle]

    def idle_steps(self):
        return sorted({result["idle"] for row in self.select("fig2") for result in row["results"]})

    def init(self, manager, ranks, which):
        """Figure 5: means over the ranks, as in the paper."""
        return [statistics.mean(result[which] for result in row["results"])
                for row in self.select("fig5", manager=manager, ranks=ranks)]

    def init_vis(self, manager, ranks):
        """VIs of a process that calls MPI_Init and MPI_Finalize."""
        return [statistics.mean(row["counters"]["vis_made"])
                for row in self.select("fig5", manager=manager, ranks=ranks) if row.get("counters")]

    def init_ranks(self):
        return sorted({row["ranks"] for row in self.select("fig5")})


# ---- text ------------------------------------------------------------------------------------------------

def number(value):
    """Three digits that count."""
    if value is None:
        return "-"
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def spread(values):
    if not values:
        return "-"
    middle = number(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} [{number(min(values))}..{number(max(values))}]"


def ratios(over, under):
    """Of the values of the same rounds."""
    return [a / b for a, b in zip(over, under)]


def columns(heading, rows):
    """Lines of a table; the first column is left-aligned."""
    cells = [heading, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heading))]
    for row in cells:
        yield "  " + "  ".join(cell.rjust(width) if i else cell.ljust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))).rstrip()


def page_table1(figures):
    yield "TABLE 1: DISTINCT DESTINATIONS OF A PROCESS, MEAN OVER THE RANKS"
    counted = {(row["name"], row["ranks"]): row for row in figures.select("table1")}
    sizes = sorted({ranks for _, ranks in counted})
    heading = [""] + [f"{ranks}: {what}" for ranks in sizes for what in ("messages", "+ collectives", "paper")]
    rows = []
    for name in [*COUNTED, *NOT_COUNTED]:
        cells = [title(name)]
        for ranks in sizes:
            row = counted.get((name, ranks), {})
            cells += [number(row.get("messages")), number(row.get("with_collectives")),
                      PAPER_DESTINATIONS.get(name, {}).get(ranks, "-")]
        rows.append(cells)
    yield from columns(heading, rows)
    yield "  Collectives as the paper estimates them: along binomial trees with root 0."
    yield "  The paper's numbers are second hand: the stored copy of the paper has lost them."
    for name, reason in NOT_COUNTED.items():
        yield f"  {title(name)} could not be counted: {reason}."


def page_table2(figures):
    yield "TABLE 2: VIRTUAL INTERFACES OF A PROCESS, MEAN OVER THE RANKS, AND HOW MANY OF THEM IT USES"
    rows = []
    for name, by_ranks in PAPER_VIS.items():
        for ranks, paper in by_ranks.items():
            vis = figures.vis(name, ranks)
            if vis is None:
                continue
            used = figures.used(name, ranks)
            rows.append([title(name), str(ranks), str(ranks - 1), f"{vis:.2f}", f"{paper:g}",
                         f"{used / (ranks - 1):.2f}", f"{PAPER_UTILISATION[name][ranks]:.2f}",
                         f"{used / vis:.2f}" if vis else "-", "1.00",
                         "ABOVE" if (name, ranks) in figures.above_paper() else ""])
    yield from columns(["", "ranks", "static", "on demand", "paper", "used of static", "paper",
                        "used of on demand", "paper", ""], rows)


def page_fig1(figures):
    yield "FIGURE 1: STATIC (PEER TO PEER) AGAINST ON DEMAND, us a message; latency: a round trip"
    heading = ["", "bytes", "static", "on demand", "ratio with connection", "ratio without", "wanted"]
    rows = []
    for name in ("latency", "bandwidth"):
        for size in figures.sizes():
            static, ours = ([figures.message_us(name, manager, size, which)
                             for which in ("with_connection_us", "connected_us")]
                            for manager in ("static-peer", "on-demand"))
            rows.append([name, str(size), spread(static[0]), spread(ours[0]),
                         spread(ratios(ours[0], static[0])), spread(ratios(ours[1], static[1])), "0.97..1.03"])
    yield from columns(heading, rows)
    yield "  The paper has curves only, \"almost identical\", with a jump where rendezvous begins (5000 bytes there)."


def page_fig2(figures):
    yield "FIGURE 2: LATENCY AGAINST OPEN, IDLE VIRTUAL INTERFACES AT EACH RANK THAT MEASURES, us"
    heading = ["idle", "8 bytes", "over none", "wanted", "allreduce, 1 KiB, 8 ranks", "over none"]
    small, large = (figures.idle_us(name, "on-demand", 0) for name in IDLE)
    rows = []
    for idle in figures.idle_steps():
        here = [figures.idle_us(name, "on-demand", idle) for name in IDLE]
        rows.append([str(idle), spread(here[0]), spread(ratios(here[0], small)), "<= 1.05", spread(here[1]),
                     spread(ratios(here[1], large))])
    yield from columns(heading, rows)
    static = figures.idle_us("allreduce", "static-peer", 0)
    yield (f"  Allreduce with all 7 static Virtual Interfaces over on demand: {spread(ratios(static, large))}; paper "
           f"(Berkeley VIA): {PAPER_ALLREDUCE[0] / PAPER_ALLREDUCE[1]:.2f} ({PAPER_ALLREDUCE[0]} of "
           f"{PAPER_ALLREDUCE[1]} us, 7 of 3); on cLAN 1.")


def page_fig5(figures):
    yield "FIGURE 5: MPI_Init, MEAN OVER THE RANKS; VIRTUAL INTERFACES WITH THOSE THAT MPI_Finalize MAKES"
    rows = []
    for ranks in figures.init_ranks():
        base = figures.init(SHM, ranks, "init_ms")
        for manager in [*MANAGERS, SHM]:
            wall, cpu, pinned = (figures.init(manager, ranks, which)
                                 for which in ("init_ms", "cpu_ms", "pinned_kib"))
            rows.append([manager, str(ranks), spread(wall), spread(ratios(wall, base)), spread(cpu),
                         spread(pinned), spread(figures.init_vis(manager, ranks))])
    yield from columns(["", "ranks", "ms", f"over {SHM}", "processor ms", "registered KiB", "VIs"], rows)
    yield "  The paper has curves only: on demand is below static peer to peer; client-server goes serially."


PAGES = {"table1": page_table1, "table2": page_table2, "fig1": page_fig1, "fig2": page_fig2,
         "fig5": page_fig5}


def page(figures):
    """The lines of everything that was measured."""
    first = True
    for part, lines in PAGES.items():
        if figures.has(part):
            if not first:
                yield ""
            yield from lines(figures)
            first = False
    if figures.failed:
        yield "\nFAILED"
        for row in figures.failed:
            what = [row["part"], row["name"], *([f"{row['ranks']} ranks", row["manager"]] if "ranks" in row else [])]
            yield f"  {', '.join(what)}: {row['failed']}"
    if above := figures.above_paper():
        yield "\nABOVE THE PAPER IN TABLE 2: " + ", ".join(f"{title(name)} on {ranks}" for name, ranks in above)


# ---- plots -----------------------------------------------------------------------------------------------

# Told apart by colour-blind readers, and by their marks in print.
COLOURS = {"on-demand": "#0072b2", "static-peer": "#d55e00", "static-client-server": "#e69f00",
           SHM: "#999999", "paper": "#666666"}
POINTS = {"on-demand": 7, "static-peer": 5, "static-client-server": 9, SHM: 6}


def start_plot(file, width=1000, height=440):
    quoted = file.replace("'", "''")
    return [f'set terminal svg noenhanced size {width},{height} font "Helvetica,13" background "white"',
            f"set output '{quoted}'", "set grid", 'set format y "%g"']


def block(name, points):
    return [f"${name} << END", *points, "END"]


def lines_plot(lines, series, extra=""):
    """`series`: (title, kind, [(x, y)]). Adds a plot of them to `lines`."""
    plots = []
    for i, (label, kind, points) in enumerate(series):
        lines += block(f"d{i}", [f"{x} {y}" for x, y in points if y] or ["NaN NaN"])
        plots.append(f'$d{i} with linespoints linewidth 2 pointsize 0.7 pointtype {POINTS[kind]} '
                     f'linecolor rgb "{COLOURS[kind]}" title "{label}"')
    lines.append("plot " + ", ".join(plots) + extra)


def bars_plot(lines, labels, series):
    """`series`: (title, colour, [value]) beside each other for each label."""
    lines += block("bars", [f'"{label}" ' + " ".join("NaN" if v is None else f"{v}" for v in values)
                            for label, values in zip(labels, zip(*(values for _, _, values in series)))])
    lines += ["set style data histogram", "set style histogram cluster gap 1", "set style fill solid 0.9",
              "set boxwidth 0.9", "set xtics rotate by -40"]
    lines.append("plot " + ", ".join(
        f'$bars using {i + 2}:xtic(1) linecolor rgb "{colour}" title "{label}"'
        for i, (label, colour, _) in enumerate(series)))


def plot_table1(figures, file):
    counted = {(row["name"], row["ranks"]): row for row in figures.select("table1")}
    keys = sorted(counted, key=lambda key: (COUNTED.index(key[0]), key[1]))
    paper = [PAPER_DESTINATIONS.get(name, {}).get(ranks) for name, ranks in keys]
    lines = [*start_plot(file), "set logscale y", 'set title "Distinct destinations of a process"',
             "set key left top"]
    bars_plot(lines, [f"{title(name)} {ranks}" for name, ranks in keys],
              [("messages", COLOURS["on-demand"], [counted[key]["messages"] for key in keys]),
               ("with collectives", COLOURS["static-peer"], [counted[key]["with_collectives"] for key in keys]),
               ("paper (second hand; estimates at 1024)", COLOURS["paper"],
                [text and float(text.lstrip("<")) for text in paper])])
    return lines


def plot_table2(figures, file):
    keys = [(name, ranks) for name, by_ranks in PAPER_VIS.items() for ranks in by_ranks
            if figures.vis(name, ranks) is not None]
    lines = [*start_plot(file), 'set title "Virtual Interfaces of a process"', "set key left top"]
    bars_plot(lines, [f"{title(name)} {ranks}" for name, ranks in keys],
              [("on demand", COLOURS["on-demand"], [figures.vis(*key) for key in keys]),
               ("paper, on demand", COLOURS["paper"], [PAPER_VIS[name][ranks] for name, ranks in keys]),
               ("static", COLOURS["static-peer"], [ranks - 1 for _, ranks in keys])])
    return lines


def median(values):
    return statistics.median(values) if values else None


def plot_fig1(figures, file):
    lines = [*start_plot(file), "set logscale xy", 'set xlabel "message size (bytes)"', "set multiplot layout 1,2"]
    for name, heading, place in (("latency", "Half a round trip, us", "left top"),
                                 ("bandwidth", "Stream, MB/s", "right bottom")):
        series = []
        for manager in MANAGERS[:2]:
            points = []
            for size in figures.sizes():
                us = median(figures.message_us(name, manager, size, "with_connection_us"))
                points.append((size, us and (us / 2 if name == "latency" else size / us)))
            series.append((manager, manager, points))
        lines += [f'set title "{heading}: 1000 messages, the connection among them"', f"set key {place}"]
        lines_plot(lines, series)
    return [*lines, "unset multiplot"]


def plot_fig2(figures, file):
    lines = [*start_plot(file), 'set xlabel "open, idle Virtual Interfaces"', "set yrange [0:]",
             "set multiplot layout 1,2", "set key right bottom"]
    for name, heading in zip(IDLE, ("8 bytes, half a round trip, us", "MPI_Allreduce, 1 KiB, 8 ranks, us")):
        lines.append(f'set title "{heading}"')
        lines_plot(lines, [("on-demand", "on-demand", [(idle, median(figures.idle_us(name, "on-demand", idle)))
                                                       for idle in figures.idle_steps()])])
    return [*lines, "unset multiplot"]


def plot_fig5(figures, file):
    lines = [*start_plot(file), 'set xlabel "ranks"', "set logscale x 2", "set multiplot layout 1,2",
             "set key left top", 'set title "MPI_Init, ms"']
    ranks = figures.init_ranks()
    lines_plot(lines, [(manager, manager, [(n, median(figures.init(manager, n, "init_ms"))) for n in ranks])
                       for manager in [*MANAGERS, SHM]])
    lines += ["set yrange [0:]", 'set title "Registered memory of a process, KiB"']
    lines_plot(lines, [(manager, manager, [(n, median(figures.init(manager, n, "pinned_kib"))) for n in ranks])
                       for manager in MANAGERS])
    return [*lines, "unset multiplot"]


PLOTS = {"table1": plot_table1, "table2": plot_table2, "fig1": plot_fig1, "fig2": plot_fig2,
         "fig5": plot_fig5}


def draw(figures, place):
    """Draws what was measured; the files."""
    if not shutil.which("gnuplot"):
        return []
    files = []
    for part, script in PLOTS.items():
        if figures.has(part):
            files.append(f"{place}-{part}.svg")
            subprocess.run(["gnuplot"], input="\n".join([*script(figures, files[-1]), ""]), text=True, check=True)
    return files
