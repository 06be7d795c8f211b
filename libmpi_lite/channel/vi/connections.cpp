// The connections of the VI channel: how they come and go. The states are drawn at ViPeer.
//
// Without a limit a process connects when it first sends to a process or waits for one by name. A
// receive from any source makes no connection: whoever sends asks for one, and every process
// listens, so the receiver learns of it in its next poll.
//
// With a limit (VIADUCT_VI_LIMIT), the VI that was used least recently is closed when another one
// is needed. Its two processes agree:
//
//       closes                                  the other one
//     closing: no new messages
//        |  ------------- close ------------------->  |
//        |                                         closing: sends what it has begun
//        |  <------------ close --------------------  |
//     both have sent and received `close`: nothing is on its way, and the VI is destroyed
//
// Two processes that close at the same time take each other's `close` for the answer. Who has
// messages for the other meanwhile connects again; they were not accepted before, so their order
// stays.
//
// A place is also held by a request that waits for its answer. So that processes cannot wait for
// each other in a circle, each with all places taken by requests, a request of a process with a
// lower rank goes first: for it a process takes one of its own back. The lowest rank of all that
// wait is then answered.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "drivers/base/setup_error.hpp"
#include "libmpi_lite/channel/vi/vi_channel.hpp"

namespace viaduct::mpi {
namespace {

// How long VIPL looks for the peer before it tells what it found. A peer that computes without
// calling MPI does not answer and is asked again; of one that is gone the result says so.
constexpr VIP_ULONG kAskFor = 5000;  // ms
// A connection has so long for its first message, before it may be closed again.
constexpr std::chrono::milliseconds kFirstUse{20};
// An answer to a request that was taken back meanwhile is a request itself; it is treated as one
// when it has not led to a connection by then.
constexpr std::chrono::milliseconds kAnswerHolds{100};
// If a peer has not answered for so long, the user is told, once for each peer.
constexpr std::chrono::seconds kAnswerTimeout{10};
// Polls between two looks at the clock for that.
constexpr std::uint64_t kPollsOfALook = 1024;

}  // namespace

// ---- asking ------------------------------------------------------------------------------------

void ViChannel::watch(int rank) {
  if (limit_ == 0 && config_.manager == ViManager::on_demand) want(peer(rank));
}

void ViChannel::want(ViPeer& p, bool answers) {
  if (p.state != State::none && p.state != State::closing) return;
  p.answers = answers;
  if (p.state == State::none && !p.wanted && wanted_.empty() && has_room()) return request(p);
  const bool listed = std::exchange(p.wanted, true);
  if (p.state == State::closing) return;  // end_vis() goes on
  if (answers)
    wanted_.push_front(p.rank);
  else if (!listed)
    wanted_.push_back(p.rank);
}

bool ViChannel::resolve(ViPeer& p) {
  if (p.address) return true;
  try {
    const std::string text = launch_.get(p.rank, "viaduct-vi");
    const std::size_t slash = text.find('/');
    p.address = ViAddress::parse(std::string_view(text).substr(0, slash));
    if (!p.address) throw base::SetupError("\"" + text + "\" is not an address");
    if (text.substr(slash + 1) != std::to_string(limits_.control))
      throw base::SetupError("its control messages have up to " + text.substr(slash + 1) +
                             " bytes and ours up to " + std::to_string(limits_.control) +
                             ": set VIADUCT_EAGER_VI to the same value for all ranks");
  } catch (const base::SetupError& error) {
    mark_lost(p, error.what());
    return false;
  }
  return true;
}

bool ViChannel::make_vi(ViPeer& p) {
  VIP_VI_ATTRIBUTES attributes = nic_.vi_attributes();
  if (VipCreateVi(nic_.handle(), &attributes, nic_.completions(), nic_.completions(), &p.vi) !=
      VIP_SUCCESS) {
    p.vi = nullptr;
    return no_room(p), false;
  }
  ++open_vis_;
  counters_.add(ViCounter::vis_made);
  if (open_vis_ > counters_[ViCounter::vis_peak]) counters_.add(ViCounter::vis_peak);
  VipSetUserData(p.vi, &p);
  VipSetViCapacity(p.vi, kSends, config_.credits + kForCredits, 2);
  p.credits = p.window = kFirstWindow;
  p.owed = p.posted = 0;
  p.hello_received = p.close_sent = p.close_received = false;
  for (std::uint32_t i = 0; i < kFirstWindow + kForCredits; ++i) {
    ViSlot* const slot = slots_.take();
    if (slot != nullptr && post_receive(p, *slot)) continue;
    if (slot != nullptr) slots_.give(*slot);
    destroy_vi(p, false);
    return no_room(p), false;
  }
  return true;
}

// Other VIs are closed to make room, as if there were a limit; without others this is the end.
void ViChannel::no_room(ViPeer& p) {
  p.state = State::none;
  if (open_vis_ == 0) return mark_lost(p, vi_reason(VIP_ERROR_RESOURCE));
  limit_ = open_vis_;
  want(p, p.answers);
}

void ViChannel::request(ViPeer& p) {
  p.wanted = false;
  if (!resolve(p) || !make_vi(p)) return;
  p.state = State::asking;
  p.since = std::chrono::steady_clock::now();
  asking_.push_back(p.rank);
  request_again(p);
}

void ViChannel::request_again(ViPeer& p) {
  VIP_ADDRESS_ROOM local = nic_.address().with(nic_.peer(launch_.rank()));
  VIP_ADDRESS_ROOM remote = p.address->with(nic_.peer(p.rank));
  const VIP_RETURN result = VipConnectPeerRequest(p.vi, &local.Address, &remote.Address, kAskFor);
  if (result != VIP_SUCCESS) mark_lost(p, vi_reason(result));
}

// ---- answers and requests of others ------------------------------------------------------------

bool ViChannel::take_connect_events() {
  bool any = false;
  for (VIP_CONNECT_EVENT event; VipConnectEvent(nic_.handle(), &event) == VIP_SUCCESS; any = true)
    event.Code == VIP_EVENT_OUTCOME ? on_outcome(event) : on_peer_asks(event);
  return any;
}

void ViChannel::on_outcome(const VIP_CONNECT_EVENT& event) {
  auto* const found = static_cast<ViPeer*>(VipGetUserData(event.ViHandle));
  if (found == nullptr || found->state != State::asking) return;
  ViPeer& p = *found;
  if (event.Outcome == VIP_SUCCESS) return greet(p);
  if (event.Outcome == VIP_TIMEOUT && !p.answers) return request_again(p);
  destroy_vi(p, false);
  p.state = State::none;
  if (event.Outcome == VIP_ERROR_RESOURCE) return no_room(p);
  // The peer has taken its request back.
  if (p.answers) return;
  mark_lost(p, vi_reason(event.Outcome));
}

// VIPL says connected while the other process may still take its request back, not knowing that it
// was answered. After its hello it does not.
void ViChannel::greet(ViPeer& p) {
  p.state = State::greeting;
  ViSlot* const slot = slots_.take();
  if (slot == nullptr) return mark_lost(p, vi_reason(VIP_ERROR_RESOURCE));
  post(p, *slot, ViKind::hello, 0, kViVersion);
  if (p.hello_received) connected(p);
}

void ViChannel::on_hello(ViPeer& p, std::uint32_t version) {
  if (version != kViVersion) return mark_lost(p, vi_reason(VIP_INVALID_MTU));
  p.hello_received = true;
  if (p.state == State::greeting) connected(p);
}

void ViChannel::connected(ViPeer& p) {
  p.state = State::connected;
  p.since = std::chrono::steady_clock::now();
  p.last_used = now_;
  p.send_waits = p.answers = false;
  p.received = p.sent = 0;
  counters_.add(ViCounter::vis_connected);
}

// The name of the caller is not proof, but only processes of the job know the key in it.
void ViChannel::on_peer_asks(VIP_CONNECT_EVENT& event) {
  const VIP_NET_ADDRESS& remote = event.RemoteAddr.Address;
  ViAddress address;
  const std::uint32_t rank = remote.HostAddressLen == address.bytes.size() &&
                                     remote.DiscriminatorLen == sizeof(ViDiscriminator)
                                 ? vi_rank_of(remote.HostAddress + remote.HostAddressLen)
                                 : ~std::uint32_t{0};
  if (rank >= peers_.size() || static_cast<int>(rank) == launch_.rank() ||
      peers_[rank].state == State::lost) {
    VipPeerRefuse(nic_.handle(), &event.LocalAddr.Address, &event.RemoteAddr.Address);
    return;
  }
  ViPeer& p = peers_[rank];
  std::memcpy(address.bytes.data(), remote.HostAddress, address.bytes.size());
  if (!p.address) p.address = address;
  // An event is out of date if there is a VI by now. One that is being closed is made anew.
  want(p, true);
}

// ---- room --------------------------------------------------------------------------------------

void ViChannel::connect_wanted() {
  while (!wanted_.empty()) {
    ViPeer& p = peer(wanted_.front());
    if (p.state == State::none && p.wanted) {
      if (!has_room()) return make_room(p);
      wanted_.pop_front();
      request(p);
    } else {
      wanted_.pop_front();
    }
  }
}

void ViChannel::make_room(const ViPeer& wanted) {
  if (closing_ != 0 || !ending_.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  ViPeer *oldest = nullptr, *youngest_request = nullptr;
  for (ViPeer& p : peers_) {
    if (p.state == State::asking && (!p.answers || now - p.since > kAnswerHolds) &&
        (youngest_request == nullptr || p.since > youngest_request->since))
      youngest_request = &p;
    if (!may_send(p) || p.posted != 0 || p.sending != 0) continue;
    if (p.received + p.sent == 0 && now - p.since < kFirstUse) continue;
    if (oldest == nullptr || p.last_used < oldest->last_used) oldest = &p;
  }
  if (oldest != nullptr) return close(*oldest);
  if (youngest_request != nullptr && wanted.answers && wanted.rank < launch_.rank())
    withdraw(*youngest_request);
}

void ViChannel::withdraw(ViPeer& p) {
  counters_.add(ViCounter::vis_withdrawn);
  destroy_vi(p, false);
  p.state = State::none;
  want(p);
}

void ViChannel::close(ViPeer& p) {
  p.state = State::closing;
  ++closing_;
  counters_.add(ViCounter::vis_closed);
  send_close(p);
}

// Long transfers that have begun end before.
bool ViChannel::send_close(ViPeer& p) {
  if (p.close_sent || p.sending != 0 || p.credits == 0 || p.posted >= kSends - 1) return false;
  ViSlot* const slot = slots_.take();
  if (slot == nullptr) return false;
  p.close_sent = true;
  post(p, *slot, ViKind::close, 0);
  return true;
}

void ViChannel::close_if_done(ViPeer& p) {
  if (p.close_sent && p.close_received && p.posted == 0) end_soon(p);
}

// ---- ends --------------------------------------------------------------------------------------

void ViChannel::end_soon(ViPeer& p) {
  if (p.vi != nullptr && !std::exchange(p.ending, true)) ending_.push_back(p.rank);
}

// The list may grow meanwhile: the sink sends in reply to what is delivered.
void ViChannel::end_vis() {
  for (std::size_t i = 0; i < ending_.size(); ++i) {
    ViPeer& p = peer(ending_[i]);
    p.ending = false;
    const State before = p.state;
    destroy_vi(p, before != State::lost);
    if (p.state == State::lost) continue;
    // What was delivered last may have been the peer's hello, or its `close`.
    const bool closed = before == State::closing && p.close_sent && p.close_received;
    // Before the peer's hello nothing was sent: it has taken its request back, or has died, which
    // the next request shows.
    const bool begun = before == State::asking || before == State::greeting;
    if (!closed && !begun) {
      mark_lost(p, p.left ? "it ended without MPI_Finalize" : "the connection to it ended");
      continue;
    }
    if (p.state == State::closing) --closing_;
    p.state = State::none;
    if (std::exchange(p.wanted, false) || begun) want(p, closed && p.answers);
  }
  ending_.clear();
}

void ViChannel::destroy_vi(ViPeer& p, bool delivers) {
  VipDisconnect(p.vi);
  // Now all descriptors are complete: what has arrived first, then what is flushed.
  for (VIP_DESCRIPTOR* d = nullptr;;) {
    const VIP_RETURN result = VipRecvDone(p.vi, &d);
    if (d == nullptr) break;
    if (delivers && result == VIP_SUCCESS) deliver(p, ViSlot::of(d));
    slots_.give(ViSlot::of(d));
  }
  for (VIP_DESCRIPTOR* d = nullptr;;) {
    const VIP_RETURN result = VipSendDone(p.vi, &d);
    if (d == nullptr) break;
    const std::uint32_t send = ViSlot::of(d).send;
    slots_.give(ViSlot::of(d));
    --posted_;
    if (delivers && send != ViSlot::kNoSend) part_sent(send, result == VIP_SUCCESS);
  }
  VipDestroyVi(p.vi);
  p.vi = nullptr;
  p.posted = 0;
  --open_vis_;
}

void ViChannel::mark_lost(ViPeer& p, std::string_view why) {
  if (p.state == State::lost) return;
  if (p.state == State::closing) --closing_;
  p.state = State::lost;
  p.wanted = false;
  if (p.end_reason.empty()) p.end_reason = p.left ? "ended" : "lost: " + std::string(why);
  pending_failures_.add_peer(p.rank, why);
  end_soon(p);
}

// The device no longer writes into any buffer for a peer whose VI is gone.
bool ViChannel::report_failures() {
  pending_failures_.report(sink_, [this](int rank) {
    if (peer(rank).vi != nullptr) return false;  // it ends with the next poll
    end_transfers(rank);
    return true;
  });
  return true;
}

void ViChannel::warn_unanswered() {
  if (now_ % kPollsOfALook != 0) return;
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(asking_, [&](int rank) {
    ViPeer& p = peer(rank);
    if ((p.state != State::asking && p.state != State::greeting) || p.warned) return true;
    if (now - p.since < kAnswerTimeout) return false;
    p.warned = true;
    std::fprintf(stderr,
                 "viaduct: rank %d has been connecting to rank %d for %d s (%s); no answer: either "
                 "that process has not called MPI since MPI_Init, or the NICs do not reach each "
                 "other\n",
                 launch_.rank(), rank, static_cast<int>(kAnswerTimeout.count()),
                 describe(rank).c_str());
    return true;
  });
}

}  // namespace viaduct::mpi
