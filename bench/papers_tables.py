"""The tables and figures of the two papers that bench/papers repeats: what was published, which command
measures it here, and which of its figures stand beside the published ones."""
import os
from dataclasses import dataclass, field

import mpi_peers as mp

BENCH = os.path.dirname(os.path.abspath(__file__))
KIB, MIB = 1 << 10, 1 << 20
CURVE = "8:1M"  # sizes of Fig. 1


@dataclass(frozen=True)
class Command:
    """What measures. `reader`: which of papers_figures.READERS makes figures of its output, {(who, what,
    bytes): [a value for each round]}; "text": it is shown as it is, the program has the published figures
    itself. `each_round`: it measures once, so it is started in every round."""
    arguments: tuple
    reader: str
    each_round: bool = False
    needs: str = ""  # a library of mpi_peers.build(), or a target of the build directory
    env: tuple = ()


@dataclass(frozen=True)
class Row:
    """A line of a table: a figure of ours, beside another of the same run, and both as published (or None).
    Figures are named (who, what, bytes)."""
    title: str
    unit: str
    command: Command
    ours: tuple
    beside: tuple | None = None
    published: tuple = (None, None)
    smaller_is_better: bool = True


@dataclass(frozen=True)
class Table:
    name: str   # PAPER-WHAT, for --only
    title: str
    beside: str  # what `beside` and the second published figure are
    commands: tuple
    rows: tuple = ()
    plot: str = ""  # of papers_figures.PLOTS
    note: str = ""
    long: bool = field(default=False)  # only with --only: takes long, or fetches sources


def bench(name, *arguments):
    return (os.path.join(BENCH, name), *arguments)


def tables(options):
    """All tables. `options`: build, rounds, seconds, quick."""
    time = ("--seconds", str(options.seconds))
    rounds = ("--rounds", str(options.rounds), "--build", options.build)
    run = os.path.join(mp.TOOLS, "viaduct-run")
    pingpong = os.path.join(options.build, mp.OURS["pingpong"])

    # ---- 000: MPI-StarT, SC98 ------------------------------------------------------------------------
    point = str(max(1, round(options.seconds * 1000)))
    pio = Command((pingpong, "--bed", "netns", "--layer", "startx-pio,udp", "--sizes", "8,56", "--rounds", "1",
                   "--time-per-point", point), "pingpong", True, "pingpong")
    pio_rows = []
    for size, latency, rate in ((8, 5.5, 26.6), (56, 5.6, 160)):
        packet = f"packet of {size + 8} bytes"
        pio_rows += [Row(f"{packet}, one way", "us", pio, ("startx-pio", "one way", size), ("udp", "one way", size),
                         (latency, None)),
                     Row(f"{packet}, sent and received", "MB/s", pio, ("startx-pio", "bandwidth", size),
                         ("udp", "bandwidth", size), (rate, None), False)]
    curve = ("--test", "latency", "--sizes", "8:64K" if options.quick else CURVE, *time)
    memory = Command(curve, "mpi_in_memory")
    hosts = Command(curve, "mpi_between_hosts")
    last = 64 * KIB if options.quick else MIB
    fig1 = []
    for where, command, latency, peak in (("one host", memory, 18, 150), ("two hosts", hosts, 32, 56)):
        fig1 += [Row(f"{where}, 8 bytes, one way", "us", command, ("viaduct", "latency", 8),
                     ("better", "latency", 8), (latency, None)),
                 Row(f"{where}, {last // KIB} KiB there and back", "MB/s", command, ("viaduct", "bandwidth", last),
                     ("better", "bandwidth", last), (peak, None), False)]
    matmul = os.path.join(options.build, "tests/mpi/programs/matmul")
    sizes = Command((run, "-n", "8", "--hosts", "2", "--mtu", "9000", "--channel", "startx", matmul,
                     "256" if options.quick else "1024"), "sizes", True, "tests/mpi/programs/matmul",
                    (("VIADUCT_STATS", "on"),))
    broadcast_rows = []
    for each, optimized, original in ((1, 0.148, 0.147), (2, 0.466, 0.781), (4, 1.158, 2.420), (8, 3.591, 6.934)):
        if options.quick and each > 2:
            continue
        command = Command((*bench("bcast-two-stage", "--channel", "startx", "--on-each", str(each)), *rounds, *time),
                          "samples")
        broadcast_rows.append(Row(f"P={each}+{each}", "ms", command, ("on", "bcast-round", MIB),
                                  ("on", "binomial-round", MIB), (1e3 * optimized, 1e3 * original)))

    # ---- 001: MPI/MBCF, EuroPVM/MPI 1999 -------------------------------------------------------------
    mpich = ("--mpich",) if options.peers and mp.can_build("mpich") else ()
    wire = Command((*bench("write-protocol", "--wire", "af_packet", *mpich), *rounds, *time), "samples")
    exchange = Command((*bench("write-protocol", "--wire", "alltoall"), *rounds, *time), "samples")
    basic = []
    for other, beside, published in (("nsr", "NSR", (112, 4.92, 10.34)), ("mpich", "MPICH/TCP", (968, 1.27, 5.59))):
        if other == "mpich" and not mpich:
            continue
        basic += [
            Row(f"SR beside {beside}: round trip, 0 bytes", "us", wire, ("sr", "posted-round-trip", 0),
                (other, "posted-round-trip", 0), (71, published[0])),
            Row(f"SR beside {beside}: 256 bytes", "MB/s", wire, ("sr", "posted-stream", 256),
                (other, "posted-stream", 256), (4.72, published[1]), False),
            Row(f"SR beside {beside}: 16 KiB", "MB/s", wire, ("sr", "posted-stream", 16 * KIB),
                (other, "posted-stream", 16 * KIB), (10.15, published[2]), False)]
    published_is = 1.97, 2.83
    exchange_rows = [
        Row("all-to-all of 64 KiB, SR beside NSR", "us", exchange, ("sr", "alltoall", 64 * KIB),
            ("nsr", "alltoall", 64 * KIB), tuple(1e6 * seconds for seconds in published_is)),
        Row("bytes by Remote Write", "%", exchange, ("sr", "share", 64 * KIB), None, (97.15, None), False)]

    return [
        Table("000-table1", "MPI-StarT, Table 1: StarT-X packets by programmed I/O, two hosts", "kernel UDP", (pio,),
              tuple(pio_rows), note="the paper's bandwidth is that of sending; receiving had 5.3 and 18.3 MB/s"),
        Table("000-fig1", "MPI-StarT, Fig. 1: MPI between two processes", "better of MPICH and Open MPI",
              (memory, hosts), tuple(fig1), "curves"),
        Table("000-fig3", "MPI-StarT, Fig. 3: messages of a matrix product by size, 4+4 processes", "", (sizes,),
              plot="sizes", note="the paper shows pie charts without figures: most messages are short, and most bytes are in\n"
              "long ones. The product is that of libmpi_lite/examples/matmul.c, which broadcasts one matrix at once"),
        Table("000-table3", "MPI-StarT, Table 3: a round of broadcasts of 1 MiB, two-stage", "binomial tree",
              tuple(row.command for row in broadcast_rows), tuple(broadcast_rows),
              note="binomial tree: that of MPICH, as in the paper, by MPI_Send and MPI_Recv"),
        Table("000-tables4-5", "MPI-StarT, Tables 4 and 5: matrix product, singular values", "",
              (Command((*bench("mpi-start-tables"), "--rounds", str(options.rounds), "--build", options.build),
                       "text"),), long=True),
        Table("001-mbcf", "MBCF: write, FIFO and signal beside TCP", "",
              (Command((*bench("mbcf-table"), "--pingpong", pingpong, "--rounds", str(options.rounds),
                        "--time-per-point", point), "text", False, "pingpong"),)),
        Table("001-table1", "MPI/MBCF, Table 1: SR, NSR and MPICH, receives posted first", "as each line says", (wire,),
              tuple(basic)),
        Table("001-table2", "MPI/MBCF, Table 2, IS: what its time is spent in, on 4 hosts", "NSR", (exchange,),
              tuple(exchange_rows), note="published: the whole of IS, 16 processes, in microseconds"),
    ]
