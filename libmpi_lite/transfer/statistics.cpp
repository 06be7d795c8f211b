// The report of VIADUCT_STATS=1: what this process and the whole job have sent, by channel,
// protocol and size, the way to each peer, and the counters of the layers below. Rates and the
// share of Remote Write are counted as in MPI/MBCF (EuroPVM/MPI 1999, section 3.3, Table 2): all
// data or messages of all processes by the time of execution, and bytes by bytes. The text for a
// process that hangs is in report.cpp.

#include <cstdio>
#include <string>

#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {
namespace {

template <class... Values>
std::string format(const char* as, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, as, values...);
  return text;
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// "12 messages (9.5/s), 0.400 MB (0.317 MB/s), by Remote Write 97.15 % of the bytes and ..."
std::string summary_of(const SentTraffic& sent, double seconds) {
  const Traffic all = sent.all(), written = sent.of(Protocol::write);
  const double messages = static_cast<double>(all.messages);
  const double megabytes = static_cast<double>(all.bytes) / 1e6;
  return format("%.0f messages (%.1f/s), %.3f MB (%.3f MB/s), by Remote Write ", messages,
                messages / seconds, megabytes, megabytes / seconds) +
         format("%.2f %% of the bytes and %.2f %% of the messages",
                percent(written.bytes, all.bytes), percent(written.messages, all.messages));
}

// A line for each size of which there were messages.
std::string table_of(const SentTraffic& sent, const std::string& start) {
  std::string out = start + format("%23s %12s %16s %14s\n", "bytes of a message", "messages",
                                   "bytes in all", "remote write %");
  for (std::size_t c = 0; c < kSizeClasses; ++c) {
    Traffic all;
    for (const TrafficBySize& protocol : sent.by) all += protocol[c];
    if (all.messages == 0) continue;
    const Traffic& written = sent.by[static_cast<std::size_t>(Protocol::write)][c];
    const auto least = c == 0 ? 0ull : 1ull << (c - 1);
    const bool last = c + 1 == kSizeClasses;
    const std::string sizes = format("%llu", least) + (last    ? " and more"
                                                       : c < 2 ? ""
                                                               : format("-%llu", 2 * least - 1));
    // Empty messages have no bytes, so theirs is a share of messages.
    const double share =
        c == 0 ? percent(written.messages, all.messages) : percent(written.bytes, all.bytes);
    out += start + format("%23s %12llu %16llu %14.2f\n", sizes.c_str(),
                          static_cast<unsigned long long>(all.messages),
                          static_cast<unsigned long long>(all.bytes), share);
  }
  return out;
}

}  // namespace

std::vector<std::string> lines_of(const std::vector<base::NamedCounter>& counters) {
  std::vector<std::string> lines;
  std::string_view part;
  for (const base::NamedCounter& c : counters) {
    if (c.value == 0) continue;
    if (lines.empty() || part != c.part)
      lines.push_back(std::string(part = c.part) + ": ");
    else
      lines.back() += ", ";
    lines.back().append(c.name).append(" ").append(std::to_string(c.value));
  }
  return lines;
}

double Transfer::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - opened_).count();
}

void Transfer::print_counters() const {
  const std::string start = "viaduct: rank " + std::to_string(rank_) + ": ";
  std::string out;
  // The report is one string and one write, so that the lines of several ranks do not mix.
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    const std::string name = channels_[c]->name();
    for (const std::string& line : lines_of(channels_[c]->all_counters()))
      out.append(start).append(name).append(" ").append(line).append("\n");
    const TransferCounters& t = counters_[c];
    if (t.sent.all().messages + t.unexpected + t.rtrs_sent + t.malformed == 0) continue;
    out += start + name + ":";
    for (std::size_t p = 0; p < kProtocols; ++p) {
      const Traffic sent = t.sent.of(static_cast<Protocol>(p));
      out += std::string(p ? ", " : " ") + kProtocolNames[p] + " " + std::to_string(sent.messages) +
             " messages " + std::to_string(sent.bytes) + " bytes";
    }
    out += "; received " + std::to_string(t.unexpected) + " unexpected; " +
           std::to_string(t.rtrs_sent) + " receives asked for writes, " +
           std::to_string(t.rtrs_missed) + " got other messages";
    if (t.malformed != 0)
      out += "; " + std::to_string(t.malformed) + " control messages dropped as malformed";
    const std::string of_channel = start + name + ": ";
    out.append("\n").append(of_channel).append("sent ").append(summary_of(t.sent, seconds()));
    out.append("\n").append(table_of(t.sent, of_channel));
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

std::vector<ChannelCounters> Transfer::all_counters() const {
  constexpr std::string_view kPart = "transfer";
  std::vector<ChannelCounters> all;
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    const TransferCounters& t = counters_[c];
    all.push_back({channels_[c]->name(), channels_[c]->all_counters()});
    const auto add = [&](const base::CounterInfo& info, std::uint64_t value) {
      all.back().counters.push_back({kPart, info.name, info.meaning, value});
    };
    for (std::size_t p = 0; p < kProtocols; ++p) {
      const Traffic sent = t.sent.of(static_cast<Protocol>(p));
      add(kProtocolCounterInfo[p][0], sent.messages);
      add(kProtocolCounterInfo[p][1], sent.bytes);
    }
    add({"unexpected", "messages that arrived before their receives"}, t.unexpected);
    add({"rtrs_sent", "receives that have asked their senders to write into them"}, t.rtrs_sent);
    add({"rtrs_missed", "of those, receives that got another message"}, t.rtrs_missed);
    add({"malformed", "control messages that no correct sender could have sent"}, t.malformed);
  }
  return all;
}

SentTotals Transfer::totals() const {
  SentTotals totals;
  for (std::size_t c = 0; c < channels_.size(); ++c)
    (channels_[c]->between_nodes() ? totals.between : totals.within) += counters_[c].sent;
  for (const std::unique_ptr<Peer>& p : peers_) totals.peers += p && p->through->between_nodes();
  return totals;
}

void Transfer::print_job(const SentTotals& job) const {
  const std::string start = "viaduct: job: ";
  std::string out =
      start + format("%llu ranks, %.3f s, on average %.2f peers on other nodes\n",
                     static_cast<unsigned long long>(job.processes), seconds(),
                     static_cast<double>(job.peers) / static_cast<double>(job.processes));
  for (const auto& [name, sent] :
       {std::pair{"between nodes", &job.between}, std::pair{"within nodes", &job.within}}) {
    if (sent->all().messages == 0) continue;
    const std::string part = start + name + ": ";
    out += part + summary_of(*sent, seconds()) + "\n" + table_of(*sent, part);
  }
  std::fputs(out.c_str(), stderr);
}

}  // namespace viaduct::mpi
