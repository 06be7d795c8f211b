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
              "what carries MPI messages between hosts: mbcf or startx", one_of("mbcf|startx")},
    ConfigVar{"VIADUCT_SHM", "on", "", "shared memory between MPI processes of one node", kOnOff},
    ConfigVar{
        "VIADUCT_CMA", "on", "",
        "long MPI messages within a node are copied from process to process; off: through a ring",
        kOnOff},
    ConfigVar{
        "VIADUCT_WRITE_PROTOCOL", "on", "",
        "MPI receives tell their senders where to write before the message is sent (between nodes)",
        kOnOff},
    ConfigVar{"VIADUCT_STATS", "off", "",
              "MPI_Finalize prints what went which way, and what was dropped or sent again",
              kOnOff},
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
    ConfigVar{"VIADUCT_NODE_RANKS", "0", "ranks",
              "MPI collectives count so many ranks to a node, for trials; 0: those that are on it",
              whole_number(0, std::numeric_limits<int>::max())},
    ConfigVar{"VIADUCT_MBCF_FIFO", "1048576", "bytes", "FIFO that an MPI process receives into",
              whole_number(64u << 10, 1u << 30)},
};

}  // namespace

const ConfigTable& config_vars() {
  static constexpr ConfigTable table(kTable);
  return table;
}

}  // namespace viaduct::mpi
