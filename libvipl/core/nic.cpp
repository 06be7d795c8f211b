// Opening and closing a NIC, and the work of its event thread: completion events, the device's
// asynchronous events, and send queues that the program does not look at.
#include "libvipl/core/nic.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <new>
#include <vector>

#include "libvipl/core/config_vars.hpp"
#include "libvipl/core/queues/cq.hpp"
#include "libvipl/core/vi.hpp"

namespace viaduct::vipl {
namespace {

using Table = ObjectTable<Nic, HandleKind::nic>;

// Never destroyed: programs may use the library in their last static destructor.
Table& nic_table() {
  static Table& it = *new Table;
  return it;
}

// How often the event thread polls send queues that the program does not look at. A failed send is
// noticed after twice this time at most.
constexpr auto kSendPollInterval = std::chrono::milliseconds(100);

// How long closing waits for the other sides' tallies: programs close the NIC right after they
// disconnect.
constexpr auto kTallyTimeout = std::chrono::milliseconds(500);

// Registered memory is pinned, so RLIMIT_MEMLOCK limits it.
VIP_ULONG lockable_bytes() {
  const auto pages = static_cast<VIP_ULONG>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const auto page = static_cast<VIP_ULONG>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return pages * page;
  return std::min<VIP_ULONG>(pages * page, limit.rlim_cur);
}

VIP_NIC_ATTRIBUTES attributes_of(const vi::Limits& limits, const std::string& name) {
  VIP_NIC_ATTRIBUTES a{};
  name.copy(a.Name, sizeof a.Name - 1);
  a.HardwareVersion = limits.hardware_version;
  a.ProviderVersion = 1;
  a.NicAddressLen = NicAddress::kBytes;
  a.ThreadSafe = VIP_TRUE;
  a.MaxDiscriminatorLen = Discriminator::kMax;
  a.MaxRegisterBytes = lockable_bytes();
  a.MaxRegisterRegions = limits.regions;
  a.MaxRegisterBlockBytes = limits.region_bytes;
  a.MaxVI = limits.queue_pairs;
  a.MaxDescriptorsPerQueue =
      std::min<VIP_ULONG>(limits.queue_depth, config_vars().number("VIADUCT_VIPL_DESCRIPTORS"));
  // VIPL has one limit for all descriptors. An RDMA read has an address segment besides its data
  // segments, hence the + 1.
  a.MaxSegmentsPerDesc = std::min<VIP_ULONG>(
      {limits.segments, limits.read_segments + 1, config_vars().number("VIADUCT_VIPL_SEGMENTS")});
  a.MaxCQ = limits.completion_queues;
  a.MaxCQEntries = limits.completions;
  a.MaxTransferSize = limits.message_bytes;
  a.NativeMTU = limits.mtu;
  a.MaxPtags = limits.domains;
  a.ReliabilityLevelSupport = VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
  if (limits.unreliable) a.ReliabilityLevelSupport |= VIP_SERVICE_UNRELIABLE;
  if (limits.reads_served != 0 && limits.reads_asked != 0)
    a.RDMAReadSupport = VIP_SERVICE_RELIABLE_DELIVERY | VIP_SERVICE_RELIABLE_RECEPTION;
  return a;
}

}  // namespace

Nic::Nic(const std::string& name, std::unique_ptr<vi::Device> device, const NicAddress& address)
    : host_address_(address),
      address_bytes_(address.bytes()),
      attributes_(attributes_of(device->limits(), name)),
      device_(std::move(device)),
      memory_(*device_),
      manager_(address),
      prints_drops_(config_vars().on("VIADUCT_VIPL_STATS")),
      spin_time_(std::chrono::microseconds(config_vars().number("VIADUCT_VIPL_SPIN"))),
      traffic_class_(
          static_cast<std::uint8_t>(config_vars().number("VIADUCT_VIPL_TRAFFIC_CLASS"))) {
  attributes_.LocalNicAddress = address_bytes_.data();
}

Nic::~Nic() = default;

std::shared_ptr<Nic> Nic::open(const std::string& name, std::unique_ptr<vi::Device> device,
                               const NicAddress& address) {
  std::shared_ptr<Nic> nic(new Nic(name, std::move(device), address));
  const VIP_NIC_HANDLE handle = nic_table().add(nic);
  try {
    nic->start(handle);
  } catch (...) {
    close(handle);
    throw;
  }
  return nic;
}

void Nic::start(VIP_NIC_HANDLE handle) {
  handle_ = handle;
  watch_events(true);
}

void Nic::watch_events(bool threaded) {
  events_.emplace(
      std::vector<EventThread::Source>{
          {device_->completion_fd(), [this] { take_completion_events(); }},
          {device_->async_fd(), [this] { take_async_events(); }},
          {manager_.fd(), [this] { manager_.progress(); }}},
      [this] { return take_unseen_completions(); }, threaded);
}

// A VI, a CQ or a blocked thread would know of the wrong way to wait.
VIP_RETURN Nic::drive_by_program(bool own_port) {
  if (own_) return VIP_INVALID_STATE;
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || !vis_.empty() || !cqs_.empty()) return VIP_INVALID_STATE;
  }
  if (!manager_.is_unused()) return VIP_INVALID_STATE;
  events_.reset();
  try {
    manager_.drive_by(drive_, own_port);
    watch_events(false);
  } catch (...) {
    manager_.drive_by({}, false);
    watch_events(true);
    throw;
  }
  handlers_.run_by_program([this] { wake(); });
  address_bytes_ = manager_.self().bytes();
  attributes_.ThreadSafe = VIP_FALSE;
  own_.emplace(handle_of(handle_), events_->fd(), [this] { return look(); });
  return VIP_SUCCESS;
}

VIP_RETURN Nic::progress() {
  if (!own_) return VIP_INVALID_STATE;
  own_->look();
  handlers_.run_due();
  return manager_.has_events() ? VIP_SUCCESS : VIP_NOT_DONE;
}

// The look comes first: what it takes from the device may be an entry of one of the CQs, and an
// event that comes later makes the descriptor readable. What a handler has noted the program may
// have looked for before, so it must not sleep then either.
VIP_RETURN Nic::arm(std::span<const VIP_CQ_HANDLE> cqs) {
  if (!own_) return VIP_INVALID_STATE;
  own_->look();
  const bool called = handlers_.run_due();
  VIP_RETURN result = called || manager_.has_events() ? VIP_NOT_DONE : VIP_SUCCESS;
  for (const VIP_CQ_HANDLE handle : cqs) {
    Cq* const cq = Cq::find(handle);
    const VIP_RETURN armed =
        cq != nullptr ? cq->arm(handle_of(handle), *this) : VIP_INVALID_PARAMETER;
    if (armed != VIP_SUCCESS && armed != VIP_NOT_DONE) return armed;
    if (armed == VIP_NOT_DONE) result = VIP_NOT_DONE;
  }
  own_->hurry();  // after the sleep the program is to look at once
  return result;
}

VIP_RETURN Nic::descriptor(int& fd) const {
  if (!own_) return VIP_INVALID_STATE;
  fd = events_->fd();
  return VIP_SUCCESS;
}

// Out of memory: what was not done is still ready, and is done in the next look.
OwnProgress::Found Nic::look() {
  using Found = OwnProgress::Found;
  try {
    const bool any = events_->look();
    return manager_.is_busy() ? Found::more : any ? Found::work : Found::nothing;
  } catch (const std::bad_alloc&) {
    return Found::more;
  }
}

void Nic::wake() {
  if (events_) events_->wake();
  hurry();
}

std::shared_ptr<Nic> Nic::find(VIP_NIC_HANDLE handle) {
  std::shared_ptr<Nic> nic = nic_table().find(handle);
  return nic != nullptr && nic->is_ours() ? nic : nullptr;
}

bool Nic::close(VIP_NIC_HANDLE handle) {
  if (find(handle) == nullptr) return false;
  const std::shared_ptr<Nic> nic = nic_table().remove(handle);
  if (nic == nullptr) return false;
  nic->end();
  return true;
}

// The order matters. The manager first: no connection calls back any more, and blocked connecting
// functions return. Then the event thread. Then VIs before CQs, which they use. The handlers last,
// because a running handler may be blocked in a function that only returns now.
void Nic::end() {
  manager_.shutdown(prints_drops_ && is_ours() ? kTallyTimeout : std::chrono::nanoseconds(0));
  if (events_) events_->stop();
  // Moved out: reclaim() takes locks of VIs, under which others take mutex_.
  std::unordered_set<Vi*> vis;
  std::unordered_set<Cq*> cqs;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    vis.swap(vis_);
    cqs.swap(cqs_);
  }
  for (Vi* const vi : vis) vi->reclaim(*this);
  for (Cq* const cq : cqs) cq->reclaim(*this);
  handlers_.stop();
  if (prints_drops_ && is_ours())
    std::fprintf(stderr, "vipl: %s: %s\n", attributes_.Name, manager_.drops().c_str());
}

bool Nic::add(Vi& vi) {
  const std::lock_guard lock(mutex_);
  return !ended_ && vis_.insert(&vi).second;
}
void Nic::remove(Vi& vi) {
  const std::lock_guard lock(mutex_);
  vis_.erase(&vi);
}
bool Nic::add(Cq& cq) {
  const std::lock_guard lock(mutex_);
  return !ended_ && cqs_.insert(&cq).second;
}
void Nic::remove(Cq& cq) {
  const std::lock_guard lock(mutex_);
  cqs_.erase(&cq);
}

void Nic::take_completion_events() {
  while (void* const owner = device_->next_completion_event())
    static_cast<Completions*>(owner)->on_event();
}

void Nic::take_async_events() {
  while (const auto event = device_->next_async_event()) {
    switch (event->kind) {
      // The owner is a Vi in a slot that is never freed. It may be another VI by now, which
      // on_device_event() finds out.
      case vi::AsyncEvent::Kind::queue_pair_error:
      case vi::AsyncEvent::Kind::remote_access:
        static_cast<Vi*>(event->owner)->on_device_event(event->kind);
        break;
      case vi::AsyncEvent::Kind::completion_queue_error:
        report_device_error(VIP_RESOURCE_CQ);
        end_connections(static_cast<const Completions*>(event->owner));
        break;
      case vi::AsyncEvent::Kind::device_error:
        report_device_error(VIP_RESOURCE_NIC);
        end_connections(nullptr);
        break;
      case vi::AsyncEvent::Kind::other: break;
    }
  }
}

void Nic::poll_sends_periodically() {
  if (!some_connected_.exchange(true)) wake();
}

void Nic::poll_sends_now() {
  poll_now_ = true;
  wake();
}

// Only the completion of a send says why a connection broke. The other side is to hear of it, and
// VipQueryVi is to show it, even if the program waits for something else or for nothing.
Deadline Nic::take_unseen_completions() {
  if (!some_connected_) return std::nullopt;
  const Clock::time_point now = Clock::now();
  if (!poll_now_.exchange(false) && now < next_poll_) return next_poll_;
  next_poll_ = now + kSendPollInterval;
  some_connected_ = false;  // before looking: a VI that is connected meanwhile sets it again
  bool any = false;
  try {
    for (Vi* const vi : vis_with_sends(any)) vi->take_unseen_completions(*this);
    // No memory for the list: the next look is soon.
  } catch (const std::bad_alloc&) {
  }
  if (!any) return std::nullopt;
  some_connected_ = true;
  return next_poll_;
}

std::vector<Vi*> Nic::vis_with_sends(bool& any_connected) {
  std::vector<Vi*> found;
  const std::lock_guard lock(mutex_);
  for (Vi* const vi : vis_) {
    if (!vi->may_fail_unseen()) continue;
    any_connected = true;
    if (vi->has_unseen_sends() || vi->may_need_recovery()) found.push_back(vi);
  }
  return found;
}

// Of the VIs that complete in `broken`; nullptr: of all.
void Nic::end_connections(const Completions* broken) {
  for (Vi* const vi : vis()) vi->device_failed(*this, broken);
}

bool Nic::uses(VIP_MEM_HANDLE memory) {
  const std::vector<Vi*> all = vis();
  return std::any_of(all.begin(), all.end(), [&](Vi* vi) { return vi->uses(*this, memory); });
}

// A copy, because the callers take locks of VIs. A VI in it may be destroyed, or belong to another
// NIC, by the time it is looked at; each function asks.
std::vector<Vi*> Nic::vis() {
  const std::lock_guard lock(mutex_);
  return {vis_.begin(), vis_.end()};
}

void Nic::report_device_error(VIP_RESOURCE_CODE resource) {
  Calls error{ErrorCall{.NicHandle = handle_,
                        .ViHandle = nullptr,
                        .CQHandle = nullptr,
                        .DescriptorPtr = nullptr,
                        .OpCode = 0,
                        .ResourceCode = resource,
                        .ErrorCode = VIP_ERROR_CATASTROPHIC}};
  handlers_.run_first(error);
}

}  // namespace viaduct::vipl
