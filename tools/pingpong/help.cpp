// The text of --help: the manual of the program, with the list of layers as they are registered.
#include <cstdio>

#include "tools/pingpong/options.hpp"

namespace viaduct::pingpong {

std::string help_text(std::span<const LayerInfo> layers) {
  std::string out = R"(NAME
    viaduct-pingpong - latency and streaming bandwidth by message size

SYNOPSIS
    viaduct-pingpong --bed netns|memif|ring|verbs [OPTION...]
    viaduct-pingpong --listen [--port DEVARGS] [--ip ADDRESS] [--mtu M]
    viaduct-pingpong --connect MAC --port DEVARGS [OPTION...]
    viaduct-pingpong --connect IP [--port DEVARGS] [OPTION...]

DESCRIPTION
    Measures, for each layer and each message size, the round trip of single messages and the
    bandwidth of a stream in one direction. Rounds are interleaved: in each round every layer is
    measured once at every size, and each round starts with another layer. The tables end with
    ratios to raw, raw-fetch, packet, udp, tcp and verbs, if those are in the run: the ratio of the
    medians, and the least and the most that a single round gave.

    Who waits polls without a break but for one PAUSE instruction. A round trip is timed by the side
    that asks. Bandwidth is what the receiver has got by its own clock, from the first bytes to the
    last, or by the sender's if that took longer; what a layer without reliability loses does not
    count.

LAYERS
)";
  char line[256];
  for (const LayerInfo& layer : layers) {
    std::snprintf(line, sizeof(line), "    %-14s%.*s\n", std::string(layer.name).c_str(),
                  static_cast<int>(layer.summary.size()), layer.summary.data());
    out += line;
  }
  out += R"(
    StarT-X packets carry 8 to 88 bytes. startx-pio and startx-queue send a larger message as several
    packets, one after the other, and it has arrived when all of them have. startx-rdma has rights to
    write handed out ahead of time: 2 for latency, up to 16 for bandwidth.

    mbcf-write: the receiver polls a word of its own memory, a counter in the last 8 (or 4) bytes of
    the message itself if that fits a frame, else a flag that is set when all of it is there;
    mbcf-signal: its handler is called. Streams go round in up to 512 KiB of the receiver's memory (2
    messages at least). mbcf-read and mbcf-atomic: the server only polls; a round trip is one read,
    or one fetch_add of 8 bytes for every 8 bytes begun (of 4 for less than 8). A stream of mbcf-read
    is pulled by the receiver.

    verbs and vipl-send do the same with the same queues: up to 64 packets of at most 1 MiB and 2 MiB
    of memory are under way at once, and who receives says now and then how many receives it has
    posted anew. With vipl-rdma the receiver polls the last word of a packet in its own memory.

    mpi: the two sides are a job of two processes; both have receives posted ahead of time, one for
    latency, 2 to 64 for bandwidth. VIADUCT_CHANNEL, on both sides, says over which driver.

    raw, raw-fetch, packet and udp send a message larger than the MTU as several frames or datagrams and know no
    flow control: of round trips that lose a part, only those that came through are timed; "-" (null
    in JSON) means that none did. Frames of raw and packet have 14 bytes of Ethernet header and 8 of
    their own before the message; the payload of raw is neither written nor read, that of packet is
    copied in and out; udp datagrams have 8 bytes at least. Streaming hands over up to 32 messages
    (raw, packet, udp: frames) at once in every layer but startx-rdma and startx-pio, which take them
    one by one.

    packet is what an af_packet port stands on, without DPDK and without a protocol: frames arrive in
    a mapped ring, single ones are sent by send(), streams from a mapped ring. What it does not reach
    on a wire of the kernel's, no port with this driver can. It needs CAP_NET_RAW.

WHERE
    --bed netns       two emulated hosts (network namespaces joined by a veth pair) made for this
                      run with viaduct-testbed, each side a process; needs root
    --bed memif       two processes joined by shared memory (net_memif); no privileges. No kernel
                      layers.
    --bed ring        two ports in one process, polled alternately by one thread: the cost of the
                      software on one core. No kernel layers, no mpi.
    --bed verbs       two processes, each on an RDMA device of this host (viaduct-vm has two; if there
                      is one, both use it). Only verbs and the layers over VIPL, mpi-vi too.
    --listen          one side on a real host: prints its address, waits for the other side and
                      does as that says
    --connect MAC     the other side; orders travel in raw frames over the port
    --connect IP      the same with orders over TCP, needed for packet, udp and tcp, and for verbs and
                      VIPL on the RDMA devices with these addresses; the other side has been given --ip
    --port DEVARGS    the port as DPDK users write it: 0000:3b:02.1 or net_af_packet0,iface=eth1
    --ip ADDRESS      --listen: IPv4 address of this host to listen at
    --pmd PMD         --bed netns: DPDK's driver, af_packet (default) or af_xdp
    --offload on|off  --bed netns: TCP segmentation offload of the ports (default on: up to 64 KiB of
                      tcp cross in one piece; off: frames of MTU size, as those of all other layers)
    --mtu M           MTU, 576 to 65535 (default: the port's; for netns 1500)

    A bed gives each side a CPU of its own; on real hosts use taskset, both sides spin. Ports of
    af_packet and af_xdp are closed while packet, udp and tcp are measured: the one would get a copy
    of each of their frames, the other would take them all.

WHAT
    --layer L[,L...]  layers, may be repeated (default: raw, startx-pio and, where there is a
                      kernel wire, udp and tcp; on the bed verbs: verbs and vipl-send)
    --sizes S[,S...]  message sizes in bytes from 4 to 64M; A:B means A, 2A, 4A... up to B; K and M
                      are 1024 and 1024^2 (default 8:1M)
    --rounds N        rounds, 1 to 1000 (default 5)
    --time-per-point MS
                      time for the latency of one layer at one size in one round, and again for its
                      bandwidth, 1 to 60000 (default 50); messages of 0.1 s are not counted when a
                      port has just been opened: they touch its memory for the first time
    --messages N      instead of that a fixed number of messages, 100 to 10^9 (latency: at most
                      1048576), so that runs can be compared instruction by instruction, e.g.
                      valgrind --tool=callgrind viaduct-pingpong --bed ring --layer startx-queue
                        --sizes 8 --rounds 1 --measure bandwidth --messages 1000000
    --measure latency|bandwidth|both
                      (default both)
    --checksum on|off CRC32C of the StarT-X, MBCF and MPI layers' frames (default on)

OUTPUT
    --json FILE       the figures as an array of objects: bed, layer, bytes, round_trip_ns {min,
                      median, p99}, bandwidth_MBps {median, max}, messages_per_s. min is the least of
                      all rounds; median, p99 and messages_per_s are medians of the rounds' figures;
                      1 MB = 10^6 bytes.
    --plot FILE       latency and bandwidth over size, FILE ends in .svg or .png; needs gnuplot
    --help            this text

ENVIRONMENT
    VIADUCT_*         what viaduct-info --config prints applies to ports and links

EXAMPLES
    viaduct-pingpong --bed netns --layer raw,startx-pio,udp,tcp --sizes 8:64K --plot latency.svg
    viaduct-pingpong --bed memif --layer raw,mbcf-write --sizes 8 --measure latency
    viaduct-pingpong --bed memif --layer raw --layer startx-rdma --sizes 1M --json rdma.json
    viaduct-vm viaduct-pingpong --bed verbs --layer verbs,vipl-send,mpi-vi --sizes 8,64K
    viaduct-pingpong --listen --port 0000:3b:02.1             (on one host, prints a MAC address)
    viaduct-pingpong --connect 02:00:00:00:00:01 --port 0000:3b:02.1       (on the other)

EXIT STATUS
    0  done
    1  something failed; one sentence on standard error says what helps
    2  wrong usage
    130  interrupted
)";
  return out;
}

}  // namespace viaduct::pingpong
