// The engine's state as text, for watch.cpp: what a call waits for, and the whole state. Nothing
// here changes the state but age_operations(). The counters are in statistics.cpp.

#include <algorithm>
#include <string>
#include <vector>

#include "drivers/link/types.hpp"
#include "libmpi_lite/transfer/engine.hpp"
#include "libmpi_lite/transfer/parts/composite.hpp"
#include "libmpi_lite/transfer/watch.hpp"

namespace viaduct::mpi {
namespace {

constexpr std::size_t kMaxNamed = 4;    // operations that one line about a wait names
constexpr std::size_t kMaxListed = 64;  // operations, and messages, that a dump lists

std::string number(std::uint64_t n) {
  return std::to_string(n);
}

std::string name_of(const Comm& comm) {
  return comm.name.empty() ? "a communicator of " + std::to_string(comm.size()) : comm.name;
}

bool in_collective(const Operation& operation) {
  return operation.context == operation.comm->collective_context();
}

// "rank 1", "rank 1 (3 in MPI_COMM_WORLD)", "any rank".
std::string rank_text(const Comm& comm, int rank) {
  if (rank == MPI_ANY_SOURCE) return "any rank";
  const int process = comm.peer(rank);
  std::string text = "rank " + std::to_string(rank);
  if (comm.handle != MPI_COMM_WORLD) text += " (" + std::to_string(process) + " in MPI_COMM_WORLD)";
  return text;
}

std::string tag_text(int tag) {
  return tag == MPI_ANY_TAG ? "any tag" : "tag " + std::to_string(tag);
}

// "rank 1, tag 7, MPI_COMM_WORLD". The tag of a collective means nothing to the program's author.
std::string address_text(const Comm& comm, int rank, int tag, bool collective) {
  return rank_text(comm, rank) + ", " + (collective ? "collective" : tag_text(tag)) + ", " +
         name_of(comm);
}

std::string address_text(const Operation& o) {
  return address_text(*o.comm, o.rank, o.tag, in_collective(o));
}

// The states are those drawn in requests.hpp.
std::string stage_of(const ReceiveRequest& r) {
  if (r.total != 0 || r.part != 0)
    return number(static_cast<std::uint64_t>(r.moved)) + " of " +
           number(static_cast<std::uint64_t>(r.total)) + " bytes have come";
  if (r.rtr_sent)
    return r.written_received ? "is being written into" : "has asked to be written into";
  return r.posted ? "no message yet" : "waits for room";
}

std::string stage_of(const SendRequest& s) {
  switch (s.awaits) {
    case SendRequest::Awaits::nothing: return "waits for room";
    case SendRequest::Awaits::match: return "sent; its receive has not been called";
    case SendRequest::Awaits::first_cts: return "announced; its receive has not been called";
    case SendRequest::Awaits::next_cts:
      return number(static_cast<std::uint64_t>(s.moved)) + " of " +
             number(static_cast<std::uint64_t>(s.total)) + " bytes have gone";
  }
  return "";
}

std::string text_of(const Operation& o) {
  const bool sends = o.kind == Request::Kind::send;
  return std::string(sends ? "send to " : "receive from ") + address_text(o) +
         (sends ? ", " : ", at most ") + number(static_cast<std::uint64_t>(o.bytes)) + " bytes: " +
         (sends ? stage_of(static_cast<const SendRequest&>(o))
                : stage_of(static_cast<const ReceiveRequest&>(o)));
}

}  // namespace

// Three places hold operations: the posted receives; pending_, from which those that are posted as
// well (with an RTR) are left out; and the backlog, for sends without an id.
template <class Visit>
void Transfer::for_each_operation(Visit visit) {
  matches_.for_each(
      [&](MatchQueues& queues) { queues.for_each_posted([&](ReceiveRequest& r) { visit(r); }); });
  pending_.for_each([&](Request& r) {
    auto& operation = static_cast<Operation&>(r);
    const bool posted =
        operation.kind == Request::Kind::receive && static_cast<ReceiveRequest&>(operation).posted;
    if (!posted) visit(operation);
  });
  for (const std::unique_ptr<Peer>& p : peers_)
    if (p)
      for (const Outgoing& out : p->outgoing)
        if (out.completes && out.completes->id == 0) visit(*out.completes);
}

void Transfer::age_operations() {
  for_each_operation([](Operation& o) {
    if (o.seconds < UINT8_MAX) ++o.seconds;
  });
}

void Transfer::ask_peers() {
  for (const std::unique_ptr<Peer>& p : peers_)
    if (p && !p->lost) p->through->ask(p->rank);
}

// ---- what is waited for ------------------------------------------------------------------------

// A process that computes does not poll, so how long ago it was seen tells a program that computes
// from one that hangs in MPI.
std::string Transfer::presence_of(int process) const {
  const Peer* const p = process < 0 ? nullptr : peers_[static_cast<std::size_t>(process)].get();
  if (!p || p->lost) return p ? "; that process is lost" : "";
  const auto seen = p->through->last_seen(process);
  if (!seen) return "";
  constexpr std::chrono::seconds kInside{3};  // seen so recently, it is taken to be in the library
  return *seen < kInside ? "; that process is in MPI"
                         : "; that process was last seen in MPI " + link::text(*seen) + " ago";
}

std::string Transfer::text_of(const WaitedFor& what) {
  if (what.event) return what.event;
  if (what.probe) {
    const Envelope& from = *what.probe;
    return "a message from " + address_text(*from.comm, from.rank, from.tag, false) +
           presence_of(from.rank < 0 ? -1 : from.comm->peer(from.rank));
  }
  const Request* const r = what.request;
  const auto with_presence = [this](const Operation& o) {
    return mpi::text_of(o) + presence_of(o.peer);
  };
  if (r && (r->kind == Request::Kind::send || r->kind == Request::Kind::receive))
    return "a " + with_presence(static_cast<const Operation&>(*r));
  if (r && r->kind == Request::Kind::composite) {
    const Request* const part = static_cast<const Composite&>(*r).open_part();
    return part ? text_of(WaitedFor{.request = part}) : "the parts of an operation";
  }
  if (r && r->kind == Request::Kind::generalized) return "the program's own request";
  // For a collective: its messages under way. For one of several requests: any operation that is
  // not a collective's.
  std::vector<std::string> named;
  std::size_t more = 0;
  for_each_operation([&](Operation& o) {
    const bool belongs =
        r ? o.comm.get() == r->communicator() && in_collective(o) : !in_collective(o);
    if (!belongs) return;
    if (named.size() < kMaxNamed)
      named.push_back(with_presence(o));
    else
      ++more;
  });
  std::string text = r ? "a collective operation on " + name_of(*r->communicator()) + ": "
                       : "any of several requests: ";
  for (std::size_t i = 0; i < named.size(); ++i) text += (i ? "; " : "") + named[i];
  if (more != 0) text += "; and " + number(more) + " more";
  return text;
}

// ---- everything --------------------------------------------------------------------------------

std::string Transfer::dump() {
  std::string out;
  std::size_t count = 0;
  for_each_operation([&](Operation& o) {
    if (++count > kMaxListed) return;
    out += "  " + mpi::text_of(o);
    if (o.seconds != 0) out += ", for " + number(o.seconds) + " s or more";
    out += '\n';
  });
  out.insert(0, "operations under way: " + number(count) + '\n');
  std::string messages;
  count = 0;
  matches_.for_each([&](MatchQueues& queues) {
    queues.for_each_message([&](const Unexpected& m) {
      if (++count > kMaxListed) return;
      messages += "  from process " + std::to_string(m.peer) + ", rank " +
                  std::to_string(m.head.source) + " of context " + number(m.head.context) +
                  ", tag " + std::to_string(m.head.tag) + ", " + number(m.length) + " bytes" +
                  (m.head.kind == Kind::request_to_send ? ", announced" : "") +
                  (m.lost >= 0 ? ", lost" : "") + '\n';
    });
  });
  out += "messages without a receive: " + number(count) + '\n' + messages;
  for (const std::unique_ptr<Peer>& p : peers_)
    if (p) out += dump(*p);
  for (const std::unique_ptr<Channel>& channel : channels_)
    for (const std::string& line : lines_of(channel->all_counters()))
      out += std::string(channel->name()) + " " + line + '\n';
  return out;
}

std::string Transfer::dump(const Peer& p) const {
  std::string out = "rank " + std::to_string(p.rank) + " by " + p.through->describe(p.rank) +
                    presence_of(p.rank) + ": " + number(p.sent) + " messages to it, " +
                    number(p.arrived) + " from it, " + number(p.eager_sent - p.eager_consumed) +
                    " eager bytes not taken there, " + number(p.pending_rtrs.size()) +
                    " receives that may be written into";
  if (backlogged(p))
    out += "; waiting for room: " + number(p.outgoing.size()) + " control messages, " +
           number(p.ready.size()) + " transfers, " + number(p.cts_due.size()) + " grants";
  out += '\n';
  const std::string below = p.through->dump(p.rank);
  for (std::size_t at = 0; at < below.size();) {
    const std::size_t end = below.find('\n', at);
    out += "  " + below.substr(at, end + 1 - at);
    at = end + 1;
  }
  return out;
}

}  // namespace viaduct::mpi
