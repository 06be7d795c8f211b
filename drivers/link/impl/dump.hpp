// Link: what a person asks of a link whose messages do not arrive: the counters of one peer, when
// the peer was last heard, a keepalive on demand, and the whole state as text. Nothing here is on
// the data path; dump() allocates.
#pragma once

#include "drivers/link/link.hpp"

namespace viaduct::link {

template <PacketDevice D>
const Counters& Link<D>::counters(PeerId id) const {
  // A slot's counters belong to the latest incarnation in that slot, up or ended.
  static const Counters kNone;
  const std::size_t slot = id.value & 0xffff;
  return slot < generations_.size() && generations_[slot] == id.value >> 16 ? peer_counters_[slot]
                                                                            : kNone;
}

template <PacketDevice D>
std::optional<Time> Link<D>::last_heard(PeerId id) const {
  const Peer* p = find(id);
  return p && p->up() ? std::optional(p->last_heard) : std::nullopt;
}

template <PacketDevice D>
void Link<D>::ask(PeerId id, Time now) {
  const CallTime call(*this, now);
  Peer* p = find(id);
  if (p && p->up()) probe(p);
}

template <PacketDevice D>
std::string Link<D>::dump(PeerId id, Time now) const {
  const Peer* p = find(id);
  if (!p) return "no connection\n";
  const auto to_go = [now](Time at) {
    if (at == Time::max()) return std::string("never");
    return at > now ? std::string("in ").append(text(at - now))
                    : std::string("due since ").append(text(now - at));
  };
  std::string out = p->address.text() + ": " + text(p->state) + ", MTU " + std::to_string(p->mtu) +
                    ", round trip " + text(p->rtt.smoothed());
  if (p->last_heard != Time{}) out.append(", heard of ").append(text(now - p->last_heard) + " ago");
  if (p->unanswered_probes != 0)
    out.append(", ").append(std::to_string(p->unanswered_probes)).append(" probes unanswered");
  out += p->timer_position == base::kNotQueued ? std::string(", no timer")
                                               : std::string(", timer ").append(to_go(p->timer_at));
  if (p->ack_hook.linked) out.append(", acknowledgement ").append(to_go(p->ack_at));
  if (p->pending_hook.linked) out += ", in line to send";
  if (p->stalled_hook.linked) out += ", in line for a busy sink";
  if (p->credit_waiter_hook.linked) out += ", in line for credit";
  out += '\n';
  for (const Flow& flow : p->flows) {
    const Send& s = flow.send;
    const Receive& r = flow.receive;
    out.append("  ").append(kLaneNames[index_of(flow.lane)]).append(" lane: sends: ");
    out += std::to_string(s.backlog()) + " waiting, " + std::to_string(s.in_flight().size()) +
           " in flight, next " + std::to_string(s.next_sequence()) + ", credit " +
           std::to_string(s.credit());
    if (Frame* oldest = s.in_flight().front()) {
      const auto& meta = D::meta(oldest).tx;
      out += "; oldest is " + std::to_string(meta.sequence) + ", sent " +
             std::to_string(meta.transmissions) + " times, again " +
             to_go(meta.sent_at + timeout(flow));
    } else if (p->up() && s.blocked()) {
      out += s.probing() ? std::string("; probed for credit ")
                               .append(text(now - s.last_probe_or_timeout()) + " ago, again ")
                               .append(to_go(s.last_probe_or_timeout() + timeout(flow)))
                         : "; waits for credit";
    }
    out += "; receives: next " + std::to_string(r.expected()) + ", window " +
           std::to_string(r.window()) + " (" + std::to_string(r.base_window()) + " for good), " +
           std::to_string(r.held().size()) + " held";
    if (r.stalled) out += ", a sink is busy";
    if (r.wants_credit) out += ", wants credit";
    out += '\n';
  }
  if (const std::string unusual = text(counters(id), kCounterInfo); !unusual.empty())
    out += "  counted: " + unusual + '\n';
  return out;
}

template <PacketDevice D>
std::string Link<D>::dump(Time now) const {
  std::string out = device_.address().text() + ": " + std::to_string(frames_sending_) +
                    " frames to send or in flight, " + std::to_string(tx_burst_size_) +
                    " at the device, " + std::to_string(frames_held()) +
                    " held in all; credit lent";
  for (const CreditPool& pool : credit_)
    out.append(" ").append(std::to_string(pool.granted) + "/" + std::to_string(pool.capacity));
  out += "\n  counted: " + text(counters_, kCounterInfo) + '\n';
  for (const auto& p : peers_)
    if (p) out += dump(p->id, now);
  return out;
}

}  // namespace viaduct::link
