// Opening, messages, progress and reports of the VI channel.
#include "libmpi_lite/channel/vi/vi_channel.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "drivers/link/config.hpp"
#include "libmpi_lite/core/config_vars.hpp"

namespace viaduct::mpi {
namespace {

// Bytes of a control message beyond the eager data, as in the network channels.
constexpr std::size_t kControlHead = 256;
// Long transfers that may be open at once in each direction: two for each process, within limits.
std::size_t transfers_of(int job_size) {
  return std::clamp<std::size_t>(2 * static_cast<std::size_t>(job_size), 1024, 16384);
}
constexpr std::string_view kPart = "connections";  // of the counters
// How long a process that ends waits until its goodbyes have left.
constexpr std::chrono::milliseconds kGoodbye{100};

ViManager manager_of(std::string_view text) {
  if (text == "static-peer") return ViManager::static_peer;
  if (text == "static-client-server") return ViManager::static_client_server;
  return ViManager::on_demand;
}

// Entry `local_rank` of a list, and again from its beginning.
std::string entry_of(std::string_view list, std::size_t local_rank) {
  const auto entries = static_cast<std::size_t>(std::count(list.begin(), list.end(), ',')) + 1;
  for (std::size_t i = local_rank % entries; i > 0; --i) list.remove_prefix(list.find(',') + 1);
  return std::string(list.substr(0, list.find(',')));
}

}  // namespace

ViConfig vi_config(const Launch& launch) {
  ViConfig config;
  config.nic =
      entry_of(config_vars().text("VIADUCT_VI_NIC"), static_cast<std::size_t>(launch.local_rank()));
  config.job_key = launch.job_key() ^ link::job_key(link::config_vars().text("VIADUCT_JOB"));
  config.manager = manager_of(config_vars().text("VIADUCT_VI_CONNECT"));
  config.eager = config_vars().number("VIADUCT_EAGER_VI");
  config.credits = static_cast<std::uint32_t>(config_vars().number("VIADUCT_VI_CREDITS"));
  config.limit = config_vars().number("VIADUCT_VI_LIMIT");
  config.pinned = config_vars().number("VIADUCT_VI_PINNED");
  if (config.manager != ViManager::on_demand && config.limit != 0 &&
      config.limit + 1 < static_cast<std::size_t>(launch.size()))
    throw base::SetupError(
        "VIADUCT_VI_LIMIT is less than the other processes that a static connection manager "
        "connects to: set VIADUCT_VI_CONNECT=on-demand");
  return config;
}

std::unique_ptr<Channel> open_vi_channel(ChannelSink& sink, Launch& launch) {
  return std::make_unique<ViChannel>(sink, launch, vi_config(launch));
}

ViChannel::ViChannel(ChannelSink& sink, Launch& launch, const ViConfig& config)
    : sink_(sink),
      launch_(launch),
      config_(config),
      limits_{config.eager + kControlHead, config.eager, transfers_of(launch.size()) / 2},
      nic_(config.nic, config.job_key),
      registrations_(nic_, config.pinned, unmapped_.works()),
      slots_(nic_, limits_.control),
      peers_(static_cast<std::size_t>(launch.size())),
      limit_(config.limit),
      receives_(transfers_of(launch.size())),
      sends_(transfers_of(launch.size())) {
  for (std::size_t rank = 0; rank < peers_.size(); ++rank)
    peers_[rank].rank = static_cast<int>(rank);
  for (auto place = static_cast<std::uint32_t>(receives_.size()); place > 0; --place) {
    free_receives_.push_back(place - 1);
    free_sends_.push_back(place - 1);
  }
  ViSlot* const first = slots_.take();
  if (first == nullptr)
    throw base::SetupError("NIC " + nic_.name() + " can register no memory (" +
                           std::to_string(limits_.control) +
                           " bytes a message): raise the limit of locked memory (ulimit -l)");
  slots_.give(*first);
  launch.put("viaduct-vi", nic_.address().text() + "/" + std::to_string(limits_.control));
}

ViChannel::~ViChannel() {
  for (ViPeer& p : peers_)
    if (p.vi != nullptr) destroy_vi(p, false);
}

// ---- sending -----------------------------------------------------------------------------------

bool ViChannel::send_control(int to, Bytes head, Bytes body) {
  ViPeer& p = peer(to);
  if (!may_send(p)) [[unlikely]]
    return cannot_send(p);
  ViSlot* const slot = slots_.take();
  if (slot == nullptr) [[unlikely]]
    return false;
  std::memcpy(slot->data(), head.data(), head.size());
  if (!body.empty()) std::memcpy(slot->data() + head.size(), body.data(), body.size());
  post(p, *slot, ViKind::control, head.size() + body.size());
  return true;
}

bool ViChannel::cannot_send(ViPeer& p) {
  switch (p.state) {
    case State::lost: return true;  // the message vanishes
    case State::connected: counters_.add(ViCounter::credit_waits); return false;
    default: break;
  }
  if (!std::exchange(p.send_waits, true)) counters_.add(ViCounter::sends_waited);
  want(p);
  return p.state == State::lost;
}

void ViChannel::post(ViPeer& p, ViSlot& slot, ViKind kind, std::size_t bytes, std::uint32_t number,
                     std::uint32_t send) {
  VIP_DESCRIPTOR& d = slot.descriptor;
  slot.send = send;
  d.CS.SegCount = 1;
  d.CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
  d.CS.Length = static_cast<VIP_UINT32>(bytes);
  d.DS[0].Local = {.Data = {.Address = slot.data()},
                   .Handle = slot.handle,
                   .Length = static_cast<VIP_UINT32>(bytes)};
  set_immediate(p, slot, kind, number);
  submit(p, slot);
}

void ViChannel::set_immediate(ViPeer& p, ViSlot& slot, ViKind kind, std::uint32_t number) {
  slot.descriptor.CS.ImmediateData = vi_word(kind, std::exchange(p.owed, 0), number);
  if (kind != ViKind::credits) --p.credits;
}

// A post that the library refuses (no entry in the completion queue can be had) ends the
// connection: the message counts as sent.
void ViChannel::submit(ViPeer& p, ViSlot& slot) {
  slot.descriptor.CS.Reserved = 0;
  p.last_used = now_;
  ++p.sent;
  if (VipPostSend(p.vi, &slot.descriptor, slot.handle) != VIP_SUCCESS) [[unlikely]] {
    slots_.give(slot);
    return mark_lost(p, "the device takes no more work");
  }
  ++p.posted;
  ++posted_;
}

bool ViChannel::post_receive(ViPeer& p, ViSlot& slot) {
  VIP_DESCRIPTOR& d = slot.descriptor;
  d.CS.SegCount = 1;
  d.CS.Control = VIP_CONTROL_OP_SENDRECV;
  d.CS.Reserved = 0;
  d.CS.Length = static_cast<VIP_UINT32>(slots_.room());
  d.DS[0].Local = {.Data = {.Address = slot.data()},
                   .Handle = slot.handle,
                   .Length = static_cast<VIP_UINT32>(slots_.room())};
  return VipPostRecv(p.vi, &d, slot.handle) == VIP_SUCCESS;
}

void ViChannel::take_sent(ViPeer& p) {
  VIP_DESCRIPTOR* d = nullptr;
  const VIP_RETURN result = VipSendDone(p.vi, &d);
  if (d == nullptr) return;
  ViSlot& slot = ViSlot::of(d);
  --p.posted;
  --posted_;
  // What was sent before both sides had closed has arrived, even if the device could not say so.
  const bool ok = result == VIP_SUCCESS || (p.close_sent && p.close_received);
  const std::uint32_t send = slot.send;
  slots_.give(slot);
  if (send != ViSlot::kNoSend) part_sent(send, ok);
  if (!ok || p.state == State::closing) [[unlikely]]
    ok ? close_if_done(p) : end_soon(p);
}

// ---- receiving ---------------------------------------------------------------------------------

void ViChannel::take_received(ViPeer& p) {
  VIP_DESCRIPTOR* d = nullptr;
  const VIP_RETURN result = VipRecvDone(p.vi, &d);
  if (d == nullptr) return;
  ViSlot& slot = ViSlot::of(d);
  if (result != VIP_SUCCESS) [[unlikely]] {
    slots_.give(slot);
    return end_soon(p);
  }
  // The sink reads the message in the slot, so the slot is posted again behind that.
  const ViKind kind = kind_of(d->CS.ImmediateData);
  deliver(p, slot);
  if (!post_receive(p, slot)) [[unlikely]] {
    slots_.give(slot);
    return mark_lost(p, "the device takes no more work");
  }
  if (kind != ViKind::credits) return_credit(p, kind);
}

void ViChannel::deliver(ViPeer& p, ViSlot& slot) {
  const VIP_CONTROL_SEGMENT& control = slot.descriptor.CS;
  p.credits += credits_of(control.ImmediateData);
  p.last_used = now_;
  if (kind_of(control.ImmediateData) == ViKind::control) [[likely]]
    return sink_.on_control(p.rank, {slot.data(), control.Length});
  deliver_other(p, slot, kind_of(control.ImmediateData));
}

void ViChannel::deliver_other(ViPeer& p, ViSlot& slot, ViKind kind) {
  const VIP_CONTROL_SEGMENT& control = slot.descriptor.CS;
  switch (kind) {
    case ViKind::credits: return;
    case ViKind::hello: return on_hello(p, number_of(control.ImmediateData));
    case ViKind::written: {
      const std::uint32_t number = number_of(control.ImmediateData);
      if (open_receive_of(p.rank, number) != nullptr) return end_receive(number, true);
      break;
    }
    case ViKind::piece: return take_piece(p, {slot.data(), control.Length});
    case ViKind::close:
      p.close_received = true;
      if (p.state == State::connected) close(p);
      return close_if_done(p);
    case ViKind::goodbye:
      p.left = true;
      if (number_of(control.ImmediateData) != 0) p.end_reason = "it ended without MPI_Finalize";
      return;
    default: break;
  }
  counters_.add(ViCounter::drop_malformed);
}

void ViChannel::return_credit(ViPeer& p, ViKind kind) {
  ++p.owed;
  // A connection that is used gets the full window.
  if (kind != ViKind::hello && ++p.received == kBusy) [[unlikely]]
    for (; p.window < config_.credits; ++p.window, ++p.owed) {
      ViSlot* const slot = slots_.take();
      if (slot == nullptr) break;
      if (!post_receive(p, *slot)) {
        slots_.give(*slot);
        break;
      }
    }
  if (2 * p.owed >= p.window) [[unlikely]]
    send_credits_or_later(p);
}

void ViChannel::send_credits_or_later(ViPeer& p) {
  if (send_credits(p)) return;
  if (std::find(owing_.begin(), owing_.end(), p.rank) == owing_.end()) owing_.push_back(p.rank);
}

// true: sent, or not needed. A peer that has closed sends nothing more.
bool ViChannel::send_credits(ViPeer& p) {
  if (2 * p.owed < p.window || p.close_received ||
      (p.state != State::connected && p.state != State::closing))
    return true;
  if (p.posted == kSends) return false;
  ViSlot* const slot = slots_.take();
  if (slot == nullptr) return false;
  counters_.add(ViCounter::credits_sent);
  post(p, *slot, ViKind::credits, 0);
  return true;
}

// ---- progress ----------------------------------------------------------------------------------

bool ViChannel::poll() {
  ++now_;
  bool any = false;
  VIP_VI_HANDLE vi = nullptr;
  VIP_BOOLEAN receive = VIP_FALSE;
  for (std::size_t taken = 0;
       taken < kBatch && VipCQDone(nic_.completions(), &vi, &receive) == VIP_SUCCESS; ++taken) {
    ViPeer& p = *static_cast<ViPeer*>(VipGetUserData(vi));
    receive != VIP_FALSE ? take_received(p) : take_sent(p);
    any = true;
  }
  if (VipNicProgress(nic_.handle()) == VIP_SUCCESS) [[unlikely]]
    any |= take_connect_events();
  if (work_waits()) [[unlikely]]
    any |= send_waiting();
  if (!ending_.empty()) [[unlikely]]
    end_vis();
  if (!wanted_.empty()) [[unlikely]]
    connect_wanted();
  if (!asking_.empty()) [[unlikely]]
    warn_unanswered();
  if (UnmappedWatch::any()) [[unlikely]]
    forget_unmapped();
  if (!pending_failures_.empty()) [[unlikely]]
    any |= report_failures();
  return any;
}

bool ViChannel::send_waiting() {
  bool any = false;
  std::erase_if(owing_, [&](int rank) {
    const bool sent = send_credits(peer(rank));
    any |= sent;
    return sent;
  });
  for (std::size_t i = 0; i < unsent_.size();) {
    const std::uint32_t place = unsent_[i];
    const std::size_t before = sends_[place].started;
    const bool all = sends_[place].to < 0 || post_parts(place);
    any |= all || sends_[place].started != before;
    all ? void(unsent_.erase(unsent_.begin() + static_cast<std::ptrdiff_t>(i))) : void(++i);
  }
  if (closing_ != 0)
    for (ViPeer& p : peers_)
      if (p.state == State::closing) any |= send_close(p);
  return any;
}

bool ViChannel::busy() const {
  return posted_ != 0 || work_waits() || !pending_failures_.empty() || !ending_.empty() ||
         free_sends_.size() != sends_.size();
}

bool ViChannel::sleep(std::chrono::microseconds most, int bell) {
  if (!pending_failures_.empty() || !ending_.empty()) return false;
  return nic_.sleep(most, bell);
}

// The messages are on their way when the device has completed them; then the process may end.
void ViChannel::say_goodbye(std::uint32_t number) {
  for (ViPeer& p : peers_) {
    if (!may_send(p)) continue;
    if (ViSlot* const slot = slots_.take()) post(p, *slot, ViKind::goodbye, 0, number);
  }
  const auto until = std::chrono::steady_clock::now() + kGoodbye;
  VIP_VI_HANDLE vi = nullptr;
  VIP_BOOLEAN receive = VIP_FALSE;
  while (posted_ != 0 && std::chrono::steady_clock::now() < until) {
    VipNicProgress(nic_.handle());
    if (VipCQDone(nic_.completions(), &vi, &receive) != VIP_SUCCESS || receive != VIP_FALSE)
      continue;
    VIP_DESCRIPTOR* d = nullptr;
    VipSendDone(vi, &d);
    if (d == nullptr) continue;
    slots_.give(ViSlot::of(d));
    --static_cast<ViPeer*>(VipGetUserData(vi))->posted;
    --posted_;
  }
}

// ---- reports -----------------------------------------------------------------------------------

std::string ViChannel::describe(int rank) const {
  const ViPeer& p = peer(rank);
  std::string text = "vi on " + nic_.name() + ", " + nic_.address().text();
  switch (p.state) {
    case State::none: return text + ", not connected";
    case State::lost: return text + ", " + p.end_reason;
    case State::asking:
    case State::greeting: return text + ", connecting";
    case State::connected: break;
    case State::closing: return text + ", closing";
  }
  return text + " -> " + (p.address ? p.address->text() : "?") + ", window " +
         std::to_string(p.window);
}

std::vector<base::NamedCounter> ViChannel::all_counters() const {
  const Registrations::Counts& r = registrations_.counts();
  std::vector<base::NamedCounter> out;
  append(out, kPart, counters_, kViCounterInfo);
  const auto add = [&](std::string_view name, std::string_view meaning, std::uint64_t value,
                       bool level = false) {
    out.push_back({kPart, name, meaning, value, level});
  };
  add("vis_refused", "connection requests without the key of the job",
      nic_.unauthorized_requests());
  add("vis_now", "Virtual Interfaces", open_vis_, true);
  add("pinned_bytes", "registered memory", slots_.pinned() + r.pinned, true);
  add("pinned_peak", "most registered memory at a time", slots_.pinned() + r.peak);
  add("cache_hits", "long transfers whose memory was registered already", r.hits);
  add("cache_misses", "registrations for long transfers", r.misses);
  add("cache_refused", "registrations that the device or the limit did not allow", r.refused);
  add("cache_unmapped", "registrations of memory that was unmapped", r.forgotten);
  return out;
}

std::string ViChannel::dump(int rank) const {
  const ViPeer& p = peer(rank);
  if (p.state == State::none || p.state == State::lost) return {};
  return describe(rank) + ", credits " + std::to_string(p.credits) + ", owed " +
         std::to_string(p.owed) + ", posted " + std::to_string(p.posted) + ", long transfers " +
         std::to_string(p.sending) + '\n';
}

}  // namespace viaduct::mpi
