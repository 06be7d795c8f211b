// The life of a VI: making, attributes, the state machine, and what failures of the device or of
// the other side come to. work_queue.cpp has the descriptors; manager.cpp calls the state changes.
#include "libvipl/core/vi.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "libvipl/core/nic.hpp"
#include "libvipl/core/queues/cq.hpp"

namespace viaduct::vipl {
namespace {

// Never destroyed: programs may use the library in their last static destructor.
Vi::Table& vi_table() {
  static Vi::Table& it = *new Vi::Table;
  return it;
}

VIP_RETURN check(const Nic& nic, const VIP_VI_ATTRIBUTES& wanted) {
  const VIP_NIC_ATTRIBUTES& has = nic.attributes();
  const VIP_RELIABILITY_LEVEL level = wanted.ReliabilityLevel;
  if (!std::has_single_bit(level) || (level & has.ReliabilityLevelSupport) == 0)
    return VIP_INVALID_RELIABILITY_LEVEL;
  if (wanted.MaxTransferSize == 0 || wanted.MaxTransferSize > has.MaxTransferSize)
    return VIP_INVALID_MTU;
  if (wanted.EnableRdmaRead != VIP_FALSE && (level & has.RDMAReadSupport) == 0)
    return VIP_INVALID_RDMAREAD;
  return VIP_SUCCESS;
}

vi::Rights rights_of(const VIP_VI_ATTRIBUTES& attributes) {
  return {attributes.EnableRdmaWrite != VIP_FALSE, attributes.EnableRdmaRead != VIP_FALSE};
}

// Attaches a CQ to a VI that is being made, and detaches it unless release() is called.
class Attachment {
 public:
  Attachment(VIP_CQ_HANDLE handle, const Nic& nic, const WorkQueue& queue)
      : handle_(handle_of(handle)),
        cq_(handle != nullptr ? Cq::find(handle) : nullptr),
        queue_(queue) {
    ok_ = handle == nullptr || (cq_ != nullptr && cq_->attach(handle_, nic));
    if (!ok_) cq_ = nullptr;
  }
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;
  ~Attachment() {
    if (cq_ == nullptr) return;
    const std::lock_guard lock(cq_->completions().mutex());
    if (cq_->is(handle_)) cq_->detach(queue_, 0);  // else the NIC was closed, and the CQ with it
  }
  bool ok() const { return ok_; }
  Cq* get() const { return cq_; }
  Cq* release() { return std::exchange(cq_, nullptr); }

 private:
  const Handle handle_;
  Cq* cq_;
  const WorkQueue& queue_;
  bool ok_ = false;
};

}  // namespace

// All locks of a VI, in the order that vi.hpp gives. The queues may share one Completions.
class Vi::AllLocks {
 public:
  explicit AllLocks(Vi& vi)
      : state_(vi.state_mutex_), send_(vi.send_.post_mutex()), receive_(vi.receive_.post_mutex()) {
    Completions* first = &vi.send_.completions();
    Completions* second = &vi.receive_.completions();
    if (std::less<>()(second, first)) std::swap(first, second);
    first_ = std::unique_lock(first->mutex());
    if (second != first) second_ = std::unique_lock(second->mutex());
  }

 private:
  std::unique_lock<std::mutex> state_;
  std::unique_lock<Mutex> send_, receive_, first_, second_;
};

// ---- made and destroyed ----

VIP_RETURN Vi::create(const std::shared_ptr<Nic>& nic, const VIP_VI_ATTRIBUTES& attributes,
                      VIP_CQ_HANDLE send_cq, VIP_CQ_HANDLE receive_cq, VIP_VI_HANDLE& made) {
  if (const VIP_RETURN wrong = check(*nic, attributes); wrong != VIP_SUCCESS) return wrong;
  const TagUse tag = nic->memory().use_tag(attributes.Ptag);
  if (tag == nullptr) return VIP_INVALID_PTAG;
  Vi* const vi = vi_table().take();
  if (vi == nullptr) return VIP_ERROR_RESOURCE;
  Attachment send(send_cq, *nic, vi->send_);
  Attachment receive(receive_cq, *nic, vi->receive_);
  const VIP_RETURN result = !send.ok() || !receive.ok()
                                ? VIP_INVALID_PARAMETER
                                : vi->open(nic, attributes, tag, send.get(), receive.get(), made);
  if (result != VIP_SUCCESS) {
    vi_table().give_back(*vi);
    return result;
  }
  send.release();
  receive.release();
  return VIP_SUCCESS;
}

// The VI is added to its NIC before it is attached to the CQs: a NIC that closes reclaims the VIs
// that it knows of, and then the CQs.
VIP_RETURN Vi::open(const std::shared_ptr<Nic>& nic, const VIP_VI_ATTRIBUTES& attributes,
                    TagUse tag, Cq* send_cq, Cq* receive_cq, VIP_VI_HANDLE& made) {
  {
    const std::lock_guard lock(state_mutex_);
    send_.choose(send_cq);
    receive_.choose(receive_cq);
  }
  const AllLocks locks(*this);
  nic_ = nic.get();
  const VIP_NIC_ATTRIBUTES& most = nic->attributes();
  bool opened = false;
  try {
    take_capacity({.sends = most.MaxDescriptorsPerQueue,
                   .receives = most.MaxDescriptorsPerQueue,
                   .segments = most.MaxSegmentsPerDesc});
    take_attributes(attributes, std::move(tag));
    opened = nic->add(*this);
  } catch (const std::bad_alloc&) {
  }
  if (!opened) {
    nic->remove(*this);
    close();
    return VIP_ERROR_RESOURCE;
  }
  send_.attach(send_cq);
  receive_.attach(receive_cq);
  state_ = VIP_STATE_IDLE;
  user_data = nullptr;
  Table::show(*this);
  made = program_handle();
  return VIP_SUCCESS;
}

void Vi::take_attributes(const VIP_VI_ATTRIBUTES& attributes, TagUse tag) {
  attributes_ = attributes;
  tag_ = std::move(tag);
  update_rules();
}

// May throw std::bad_alloc; then nothing has changed, because the storage of both is made first.
void Vi::take_capacity(const Capacity& capacity) {
  const auto segments = static_cast<std::uint32_t>(capacity.segments);
  WorkQueue::Storage sends(static_cast<std::uint32_t>(capacity.sends), segments);
  WorkQueue::Storage receives(static_cast<std::uint32_t>(capacity.receives), segments);
  capacity_ = capacity;
  send_.open(std::move(sends), nic_->wait_policy());
  receive_.open(std::move(receives), nic_->wait_policy());
}

void Vi::update_rules() {
  PostRules rules;
  rules.regions = &nic_->memory().regions();
  rules.domain = tag_->domain.get();
  rules.remote_keys = &remote_keys_;
  rules.max_segments = static_cast<std::uint32_t>(capacity_.segments);
  rules.max_transfer_size = attributes_.MaxTransferSize;
  rules.rdma_read = (nic_->attributes().RDMAReadSupport & attributes_.ReliabilityLevel) != 0;
  send_.use(rules);
  receive_.use(rules);
}

bool Vi::make_queue_pair() {
  const bool has_completions =
      send_.open_completions(nic_->device()) && receive_.open_completions(nic_->device());
  if (!has_completions) {
    drop_queue_pair();
    return false;
  }
  vi::QueuePairAttributes plan;
  plan.send_completions = &send_.completions().queue();
  plan.receive_completions = &receive_.completions().queue();
  plan.sends = static_cast<std::uint32_t>(capacity_.sends);
  plan.receives = static_cast<std::uint32_t>(capacity_.receives);
  plan.segments = static_cast<std::uint32_t>(capacity_.segments);
  plan.reliable = is_reliable();
  plan.owner = this;
  queue_pair_ = tag_->domain->create_queue_pair(plan);
  if (queue_pair_ != nullptr && queue_pair_->prepare(rights_of(attributes_))) {
    receive_.post_again();
    return true;
  }
  drop_queue_pair();
  return false;
}

// As make_queue_pair() leaves it, but without receives. False: it cannot be reset.
bool Vi::renew_queue_pair() {
  return queue_pair_ != nullptr && queue_pair_->reset() &&
         queue_pair_->prepare(rights_of(attributes_));
}

void Vi::drop_queue_pair() {
  if (queue_pair_ != nullptr) {
    queue_pair_->reset();
    drain();
  }
  queue_pair_.reset();
  send_.close_completions();
  receive_.close_completions();
}

// With all locks held. Afterwards the device knows nothing of this VI.
void Vi::close() {
  const VIP_VI_HANDLE name = program_handle();
  Table::hide(*this);
  state_ = VIP_STATE_IDLE;  // what went wrong matters no more
  cause_known_ = true;
  send_.forget();
  receive_.forget();
  handlers().forget_queue(name);
  if (queue_pair_ != nullptr) drop_queue_pair();
  send_.close();
  receive_.close();
  remote_keys_.clear();
  tag_.reset();
  nic_ = nullptr;
}

VIP_RETURN Vi::destroy(VIP_VI_HANDLE handle) {
  Vi* const vi = find(handle);
  const std::shared_ptr<Nic> nic = vi != nullptr ? vi->nic(handle) : nullptr;
  if (nic == nullptr) return VIP_INVALID_PARAMETER;
  // An Idle VI may still have a session, of an attempt that failed and whose outcome the program
  // has not asked for.
  const VIP_RETURN result = nic->manager().disconnect(*vi, [&] { return vi->end(handle); });
  if (result == VIP_SUCCESS) vi_table().give_back(*vi);
  return result;
}

VIP_RETURN Vi::end(VIP_VI_HANDLE handle) {
  const AllLocks locks(*this);
  if (!is(handle_of(handle))) return VIP_INVALID_PARAMETER;
  if (state_ != VIP_STATE_IDLE) return VIP_INVALID_STATE;
  nic_->remove(*this);
  close();
  return VIP_SUCCESS;
}

void Vi::reclaim(const Nic& nic) {
  {
    const AllLocks locks(*this);
    if (nic_ != &nic) return;
    close();
  }
  vi_table().give_back(*this);
}

// ---- attributes ----

bool Vi::is_of_this_process(Handle handle) const {
  return is(handle) && nic_->is_ours();
}

std::shared_ptr<Nic> Vi::nic(VIP_VI_HANDLE handle) {
  const std::lock_guard lock(state_mutex_);
  if (!is_of_this_process(handle_of(handle))) return nullptr;
  return nic_->weak_from_this().lock();
}

Handlers& Vi::handlers() {
  return nic_->handlers();
}

VIP_NIC_HANDLE Vi::nic_handle() const {
  return nic_->handle();
}

VIP_RETURN Vi::query(VIP_VI_HANDLE handle, Answer& answer) {
  const std::lock_guard lock(state_mutex_);
  if (!is_of_this_process(handle_of(handle))) return VIP_INVALID_PARAMETER;
  answer = {state_, attributes_, send_.is_empty(), receive_.is_empty()};
  return VIP_SUCCESS;
}

VIP_RETURN Vi::set_attributes(VIP_VI_HANDLE handle, const VIP_VI_ATTRIBUTES& attributes) {
  const AllLocks locks(*this);
  if (!is_of_this_process(handle_of(handle))) return VIP_INVALID_PARAMETER;
  if (state_ != VIP_STATE_IDLE) return VIP_INVALID_STATE;
  if (const VIP_RETURN wrong = check(*nic_, attributes); wrong != VIP_SUCCESS) return wrong;
  TagUse tag = nic_->memory().use_tag(attributes.Ptag);
  if (tag == nullptr) return VIP_INVALID_PTAG;
  drop_queue_pair();  // the next one is made in the domain of the tag
  take_attributes(attributes, std::move(tag));
  return VIP_SUCCESS;
}

VIP_RETURN Vi::set_capacity(VIP_VI_HANDLE handle, const Capacity& capacity) {
  const AllLocks locks(*this);
  if (!is_of_this_process(handle_of(handle))) return VIP_INVALID_PARAMETER;
  if (capacity.sends == 0 || capacity.receives == 0 || capacity.segments == 0)
    return VIP_INVALID_PARAMETER;
  if (state_ != VIP_STATE_IDLE || !send_.is_empty() || !receive_.is_empty())
    return VIP_INVALID_STATE;
  const VIP_NIC_ATTRIBUTES& most = nic_->attributes();
  if (std::max(capacity.sends, capacity.receives) > most.MaxDescriptorsPerQueue ||
      capacity.segments > most.MaxSegmentsPerDesc)
    return VIP_ERROR_RESOURCE;
  drop_queue_pair();  // the next one has this size
  take_capacity(capacity);
  update_rules();
  return VIP_SUCCESS;
}

// ---- states ----

VIP_RETURN Vi::begin_pending(VIP_VI_HANDLE handle, bool put_off) {
  const AllLocks locks(*this);
  if (!is(handle_of(handle))) return VIP_INVALID_PARAMETER;
  if (state_ != VIP_STATE_IDLE) return VIP_INVALID_STATE;
  if (!put_off && queue_pair_ == nullptr && !make_queue_pair()) return VIP_ERROR_RESOURCE;
  state_ = VIP_STATE_CONNECT_PENDING;
  return VIP_SUCCESS;
}

VIP_RETURN Vi::back_to_idle(VIP_VI_HANDLE handle) {
  const AllLocks locks(*this);
  if (!is(handle_of(handle))) return VIP_INVALID_PARAMETER;
  to_idle(false);
  return VIP_SUCCESS;
}

// Entries of the program's CQ stay where they are.
void Vi::drain() {
  Completions& sends = send_.completions();
  Completions& receives = receive_.completions();
  sends.drain();
  if (&receives != &sends) receives.drain();
}

// At the end of a connection all that the device has completed is taken before the queue pair is
// reset, because resetting makes most devices forget it; and what went wrong is told to the other
// side.
void Vi::to_idle(bool keep_receives) {
  if (!keep_receives) {
    connected_to_error();
    drain();
  }
  state_ = VIP_STATE_IDLE;
  cause_known_ = true;  // the cause of a failure matters no more
  const bool renewed = keep_receives && renew_queue_pair();
  drain();
  if (!renewed) drop_queue_pair();
  send_.flush();
  if (!keep_receives) receive_.flush();
  remote_keys_.clear();
  if (renewed) receive_.post_again();
}

// By compare-and-swap, because a thread that only has a Completions mutex may do the same at the
// same time. False: the VI was not connected.
bool Vi::connected_to_error() {
  VIP_VI_STATE connected = VIP_STATE_CONNECTED;
  if (!state_.compare_exchange_strong(connected, VIP_STATE_ERROR)) return false;
  queue_pair_->fail();
  return true;
}

// The reason may be in the completion of a send, in a queue that the program does not look at.
void Vi::on_flushed() {
  if (survives_errors()) return;
  if (connected_to_error()) nic_->poll_sends_now();
}

void Vi::on_cause_reported() {
  cause_known_ = true;
  connected_to_error();
}

// The state may be Error already: a flushed descriptor of one queue can be seen before the failed
// one of the other. In any other state the connection has ended otherwise.
void Vi::on_failed(CloseReason reason) {
  connected_to_error();
  if (state_ != VIP_STATE_ERROR || !first_to_know()) return;
  if (reason == CloseReason::host_silent) report(VIP_ERROR_CONN_LOST);
  nic_->manager().fail(*this, reason);
}

void Vi::fail_again(Handle vi) {
  const std::lock_guard lock(state_mutex_);
  if (is(vi) && state_ == VIP_STATE_ERROR && queue_pair_ != nullptr) queue_pair_->fail();
}

void Vi::report(VIP_ERROR_CODE code) {
  if (!is_reliable()) return;
  error_.front() = ErrorCall{.NicHandle = nic_->handle(),
                             .ViHandle = program_handle(),
                             .CQHandle = nullptr,
                             .DescriptorPtr = nullptr,
                             .OpCode = 0,
                             .ResourceCode = VIP_RESOURCE_VI,
                             .ErrorCode = code};
  handlers().run_first(error_);
}

// ---- ConnectionUser ----

bool Vi::make_ready() {
  const AllLocks locks(*this);
  return queue_pair_ != nullptr || make_queue_pair();
}

EndpointInfo Vi::card() {
  const std::lock_guard lock(state_mutex_);
  EndpointInfo card;
  // Without a queue pair (the device may have had none left for another attempt) establish() fails.
  if (queue_pair_ != nullptr) card.queue_pair = queue_pair_->address();
  psn_ = card.queue_pair.psn;
  card.max_transfer_size = attributes_.MaxTransferSize;
  card.reliability = attributes_.ReliabilityLevel;
  card.has_qos = attributes_.QoS != nullptr;
  card.rdma_write = attributes_.EnableRdmaWrite != VIP_FALSE;
  card.rdma_read = attributes_.EnableRdmaRead != VIP_FALSE;
  card.reads_served = nic_->device().limits().reads_served;
  return card;
}

// Room for the asynchronous error, so that reporting it cannot fail. False: no memory.
bool Vi::make_error() {
  try {
    error_.resize(1);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool Vi::establish(const EndpointInfo& remote) {
  const AllLocks locks(*this);
  if (state_ != VIP_STATE_CONNECT_PENDING || queue_pair_ == nullptr) return false;
  if (!make_error()) return false;
  const vi::Limits& limits = nic_->device().limits();
  plan_ = {.remote = remote.queue_pair,
           .psn = psn_,
           .reads_asked = std::min(limits.reads_asked, remote.reads_served),
           .reads_served = limits.reads_served,
           .traffic_class = nic_->traffic_class()};
  if (!queue_pair_->connect(plan_)) return false;
  needs_recovery_ = false;
  may_need_recovery_ = !is_reliable();
  send_.begin_connection();
  receive_.begin_connection();
  cause_known_ = false;
  state_ = VIP_STATE_CONNECTED;
  nic_->poll_sends_periodically();
  return true;
}

void Vi::on_attempt_failed(bool tries_again) {
  const AllLocks locks(*this);
  to_idle(true);
  if (!tries_again) return;
  if (queue_pair_ == nullptr) make_queue_pair();
  state_ = VIP_STATE_CONNECT_PENDING;
}

// Once the queue pair has failed or has been reset, it receives nothing more, so the count is
// final.
Tally Vi::tally() {
  const AllLocks locks(*this);
  // In another state the queue pair has been reset, and nothing more has come.
  if (state_ == VIP_STATE_CONNECTED || state_ == VIP_STATE_ERROR) drain();
  return {.received = receive_.succeeded(), .sent = send_.messages()};
}

void Vi::delivered(const Tally& other) {
  const AllLocks locks(*this);
  if (state_ != VIP_STATE_CONNECTED && state_ != VIP_STATE_ERROR) return;
  // On an unreliable VI the count may include messages behind ones that were lost.
  if (is_reliable()) send_.delivered(other.received);
}

void Vi::on_connection_lost(CloseReason reason) {
  const std::lock_guard lock(state_mutex_);
  connected_to_error();
  if (!first_to_know()) return;
  switch (reason) {
    case CloseReason::receive_queue_empty: return report(VIP_ERROR_RECVQ_EMPTY);
    case CloseReason::rdma_write_protection: return report(VIP_ERROR_RDMAW_PROT);
    case CloseReason::rdma_read_protection: return report(VIP_ERROR_RDMAR_PROT);
    case CloseReason::message_too_long: return;  // the receive descriptor that it met has the error
    case CloseReason::disconnected:
    case CloseReason::host_silent:
    case CloseReason::transport: break;
  }
  report(VIP_ERROR_CONN_LOST);
}

// ---- the device ----

void Vi::take_unseen_completions(const Nic& nic) {
  if (may_need_recovery_) return recover(nic);
  const std::lock_guard lock(state_mutex_);
  if (nic_ != &nic) return;
  Completions& completions = send_.completions();
  const std::lock_guard completing(completions.mutex());
  if (send_.has_outstanding()) completions.drain();
}

// An unreliable connection of the device (UC) fails too, e.g. when a receive is too small.
// Resetting the queue pair loses what was under way in both directions, which an unreliable
// connection may. Its sends complete; its receives are posted again. The other side's device finds
// its place again with the next message (InfiniBand specification, 9.8.3).
void Vi::recover(const Nic& nic) {
  const AllLocks locks(*this);
  if (nic_ != &nic || !survives_errors()) return;
  drain();
  if (!needs_recovery_.exchange(false)) return;
  const bool recovered = renew_queue_pair() && queue_pair_->connect(plan_);
  drain();
  if (!recovered) {
    connected_to_error();
    return;
  }
  needs_recovery_ = false;
  send_.flush();
  receive_.post_again();
}

void Vi::request_recovery() {
  if (!needs_recovery_.exchange(true)) nic_->poll_sends_now();
}

// The event may be late: of an earlier connection, or of another VI in the same slot. Then the
// queue pair has not failed.
void Vi::on_device_event(vi::AsyncEvent::Kind kind) {
  const std::lock_guard lock(state_mutex_);
  if (queue_pair_ == nullptr || !queue_pair_->has_failed()) return;
  if (survives_errors()) return request_recovery();
  connected_to_error();
  // What the other side did wrong, its own device tells it, and its library tells this side
  // (`ended`).
  if (kind == vi::AsyncEvent::Kind::remote_access || !first_to_know()) return;
  report(VIP_ERROR_CONN_LOST);
  nic_->manager().fail(*this, CloseReason::transport);
}

// In the state Error nothing is given to the device. So a completion that it may still deliver
// cannot be of a descriptor that is posted from now on: see the check in WorkQueue::complete().
void Vi::device_failed(const Nic& nic, const Completions* broken) {
  const AllLocks locks(*this);
  if (nic_ != &nic || (state_ != VIP_STATE_CONNECTED && state_ != VIP_STATE_ERROR)) return;
  if (broken != nullptr && broken != &send_.completions() && broken != &receive_.completions())
    return;
  drain();
  connected_to_error();
  send_.flush();
  receive_.flush();
  if (!first_to_know()) return;
  report(VIP_ERROR_CONN_LOST);
  nic_->manager().fail(*this, CloseReason::transport);
}

// In the state Error the device fails all that it still has, without touching memory.
bool Vi::uses(const Nic& nic, VIP_MEM_HANDLE memory) {
  const AllLocks locks(*this);
  const auto in_use = [&] { return send_.uses(memory) || receive_.uses(memory); };
  if (nic_ != &nic || !in_use()) return false;
  drain();  // the device may be done with it
  return state_ != VIP_STATE_ERROR && in_use();
}

void Vi::alias(std::uint32_t name, std::uint32_t key) {
  const std::lock_guard lock(send_.post_mutex());
  remote_keys_.set(name, key);
}

}  // namespace viaduct::vipl
