// The table of MPI's configuration variables. Each row is also the variable's documentation, so its
// text is for users.
#include "libmpi_lite/core/config_vars.hpp"

#include <array>
#include <limits>

namespace viaduct::mpi {
namespace {

using namespace base;

constexpr Accepted kEagerNet = whole_number(0, 1u << 20);  // bounds the drivers' message buffers

constexpr std::array kTable{
    ConfigVar{"VIADUCT_CHANNEL", "mbcf", "",
              "what carries MPI messages between hosts: mbcf, startx or vi",
              one_of("mbcf|startx|vi")},
    ConfigVar{"VIADUCT_SHM", "on", "", "shared memory between MPI processes of one node", kOnOff},
    ConfigVar{
        "VIADUCT_CMA", "on", "",
        "long MPI messages within a node are copied from process to process; off: through a ring",
        kOnOff},
    ConfigVar{
        "VIADUCT_WRITE_PROTOCOL", "auto", "",
        "MPI receives ask senders on other nodes to write into them: sr: all that can; nsr: none, "
        "and mbcf uses no Remote Write; auto: where it pays",
        one_of("sr|nsr|auto")},
    ConfigVar{"VIADUCT_STATS", "off", "",
              "MPI_Finalize prints what went which way, and what was dropped or sent again",
              kOnOff},
    ConfigVar{"VIADUCT_ASYNC_PROGRESS", "off", "",
              "a thread of each MPI process makes progress while the program computes", kOnOff},
    ConfigVar{"VIADUCT_HANG_REPORT_SECONDS", "60", "s",
              "an MPI call that has waited so long says what for, once; 0: never",
              whole_number(0, 1'000'000)},
    ConfigVar{"VIADUCT_DUMP_SIGNAL", "SIGUSR1", "",
              "signal on which an MPI process prints its state, unless the program uses it",
              one_of("SIGUSR1|SIGUSR2|off")},
    ConfigVar{"VIADUCT_EAGER_SHM", "16384", "bytes",
              "MPI messages up to this go through a ring, longer ones are copied by both processes",
              whole_number(0, kMaxEagerShm)},
    ConfigVar{"VIADUCT_EAGER_MBCF", "16384", "bytes",
              "MPI messages up to this go through a FIFO, longer ones by Remote Write", kEagerNet},
    ConfigVar{"VIADUCT_EAGER_STARTX", "1024", "bytes",
              "MPI messages up to this go in packets, longer ones by remote DMA", kEagerNet},
    ConfigVar{
        "VIADUCT_TWO_STAGE", "on", "",
        "MPI collectives work within each node and between nodes; off: over all ranks at once",
        kOnOff},
    ConfigVar{
        "VIADUCT_OVERSUBSCRIBED", "auto", "",
        "MPI collectives take the algorithms with the fewest waits, as each costs a switch to "
        "another process; auto: where processes of the job share CPUs",
        one_of("auto|on|off")},
    ConfigVar{"VIADUCT_NODE_RANKS", "0", "ranks",
              "MPI collectives count so many ranks to a node, for trials; 0: those that are on it",
              whole_number(0, std::numeric_limits<int>::max())},
    ConfigVar{"VIADUCT_EAGER_VI", "8192", "bytes",
              "MPI messages up to this are copied through Virtual Interfaces, longer ones by RDMA",
              kEagerNet},
    ConfigVar{"VIADUCT_VI_NIC", "nic0", "",
              "NICs of MPI over Virtual Interfaces, e.g. nic0,nic1: local rank r uses entry r"},
    ConfigVar{"VIADUCT_VI_CONNECT", "on-demand", "",
              "who connects Virtual Interfaces, and when: with the first message, or in MPI_Init",
              one_of("on-demand|static-peer|static-client-server")},
    ConfigVar{"VIADUCT_VI_LIMIT", "0", "VIs",
              "Virtual Interfaces of an MPI process at a time: the one used least recently is "
              "closed for another; 0: no limit",
              whole_number(0, std::numeric_limits<int>::max())},
    ConfigVar{"VIADUCT_VI_CREDITS", "12", "messages",
              "receives that a Virtual Interface in use has posted; it begins with 4",
              whole_number(4, 250)},
    ConfigVar{"VIADUCT_VI_PINNED", "1073741824", "bytes",
              "most memory of the program that an MPI process keeps registered with its NIC",
              whole_number(0, std::uint64_t{1} << 46)},
    ConfigVar{"VIADUCT_MBCF_FIFO", "1048576", "bytes", "FIFO that an MPI process receives into",
              whole_number(64u << 10, 1u << 30)},
};

}  // namespace

const ConfigTable& config_vars() {
  static constexpr ConfigTable table(kTable);
  return table;
}

}  // namespace viaduct::mpi
