// The report of VIADUCT_STATS=1: what this process has sent, by channel and protocol, the way to
// each peer, and the counters of the layers below. The text for a process that hangs is in
// report.cpp.

#include <cstdio>
#include <string>

#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {

void Transfer::print_counters() const {
  const std::string start = "viaduct: rank " + std::to_string(rank_) + ": ";
  std::string out;
  // The report is one string and one write, so that the lines of several ranks do not mix.
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    for (const std::string& line : channels_[c]->counted())
      out.append(start).append(channels_[c]->name()).append(" ").append(line).append("\n");
    const TransferCounters& t = counters_[c];
    std::uint64_t messages = 0;
    for (const Traffic& sent : t.sent) messages += sent.messages;
    if (messages + t.unexpected + t.rtrs_sent + t.malformed == 0) continue;
    out += start + channels_[c]->name() + ":";
    for (std::size_t p = 0; p < kProtocols; ++p)
      out += std::string(p ? ", " : " ") + kProtocolNames[p] + " " +
             std::to_string(t.sent[p].messages) + " messages " + std::to_string(t.sent[p].bytes) +
             " bytes";
    const auto writes = t.sent[static_cast<std::size_t>(Protocol::write)].messages;
    // The share of messages; the MPI/MBCF paper's Remote Write availability rate is one of bytes.
    char share[32];
    std::snprintf(share, sizeof share, "%.2f", messages ? 100.0 * writes / messages : 0.0);
    out += "; Remote Write share " + std::string(share) + " %; received " +
           std::to_string(t.unexpected) + " unexpected; " + std::to_string(t.rtrs_sent) +
           " receives asked for writes, " + std::to_string(t.rtrs_missed) + " got other messages";
    if (t.malformed != 0)
      out += "; " + std::to_string(t.malformed) + " control messages dropped as malformed";
    out += "\n";
  }
  for (const std::unique_ptr<Peer>& p : peers_) {
    if (!p) continue;
    out += start + "to rank " + std::to_string(p->rank) + " by " + p->through->describe(p->rank);
    if (const std::string counted = p->through->counted(p->rank); !counted.empty())
      out += "; " + counted;
    out += "\n";
  }
  std::fputs(out.c_str(), stderr);
}

}  // namespace viaduct::mpi
