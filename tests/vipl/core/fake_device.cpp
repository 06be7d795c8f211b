#include "tests/vipl/core/fake_device.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace viaduct::vi::fake {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

Lock lock_fabric() {
  return Lock(Fabric::get().mutex);
}

std::byte* pointer(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);
}

}  // namespace

// ---- Fabric ----

Fabric& Fabric::get() {
  static Fabric& fabric = *new Fabric;
  return fabric;
}

Fabric::Fabric() {
  limits.queue_depth = 512;
  limits.segments = limits.read_segments = 32;
  limits.completion_queues = 1000;
  limits.completions = 1024;
  limits.queue_pairs = 1000;
  limits.regions = 10000;
  limits.domains = 100;
  limits.region_bytes = std::uint64_t{1} << 32;
  limits.message_bytes = 1 << 20;
  limits.mtu = 1024;
  limits.reads_asked = limits.reads_served = 16;
  limits.unreliable = true;
}

std::uint32_t Fabric::add(FakeQueuePair& queue_pair) {
  queue_pairs_[++next_number_] = &queue_pair;
  return next_number_;
}

FakeQueuePair* Fabric::find(std::uint32_t number) {
  const auto found = queue_pairs_.find(number);
  return found == queue_pairs_.end() ? nullptr : found->second;
}

void Fabric::release() {
  const Lock lock(mutex);
  held_ = false;
  for (const auto& [number, queue_pair] : queue_pairs_) queue_pair->run();
}

// ---- events ----

EventFd::EventFd() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
EventFd::~EventFd() {
  ::close(fd_);
}
void EventFd::raise() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(fd_, &one, sizeof one);
}
void EventFd::clear() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto n = ::read(fd_, &count, sizeof count);
}

void FakeDevice::completion_event(void* owner) {
  completion_events_.push_back(owner);
  completions_fd_.raise();
}

void FakeDevice::forget(void* owner) {
  std::erase(completion_events_, owner);
}

void* FakeDevice::next_completion_event() {
  const Lock lock = lock_fabric();
  if (completion_events_.empty()) {
    completions_fd_.clear();
    return nullptr;
  }
  void* const owner = completion_events_.front();
  completion_events_.pop_front();
  return owner;
}

void FakeDevice::async_event(const AsyncEvent& event) {
  const Lock lock = lock_fabric();
  async_events_.push_back(event);
  async_fd_.raise();
}

std::optional<AsyncEvent> FakeDevice::next_async_event() {
  const Lock lock = lock_fabric();
  if (async_events_.empty()) {
    async_fd_.clear();
    return std::nullopt;
  }
  const AsyncEvent event = async_events_.front();
  async_events_.pop_front();
  return event;
}

// ---- completion queues ----

FakeCompletionQueue::~FakeCompletionQueue() {
  const Lock lock = lock_fabric();
  device_.forget(owner_);
}

int FakeCompletionQueue::poll(int most, Completion* to) {
  const Lock lock = lock_fabric();
  int n = 0;
  for (; n < most && !done_.empty(); ++n, done_.pop_front()) to[n] = done_.front();
  return n;
}

bool FakeCompletionQueue::arm() {
  const Lock lock = lock_fabric();
  ++Fabric::get().armed;
  armed_ = true;
  return true;
}

bool FakeCompletionQueue::resize(std::size_t capacity) {
  const Lock lock = lock_fabric();
  if (capacity < done_.size() || Fabric::get().refuses()) return false;
  ++Fabric::get().resizes;
  capacity_ = capacity;
  return true;
}

// What does not fit is lost, and the device says so.
void FakeCompletionQueue::push(const Completion& completion) {
  if (done_.size() == capacity_)
    return device_.async_event({AsyncEvent::Kind::completion_queue_error, owner_});
  done_.push_back(completion);
  if (std::exchange(armed_, false)) device_.completion_event(owner_);
}

void FakeCompletionQueue::forget(std::uint32_t queue_pair) {
  std::erase_if(done_, [=](const Completion& it) { return it.queue_pair == queue_pair; });
}

// ---- memory ----

FakeRegion::FakeRegion(FakeDomain& domain, std::uint64_t begin, std::size_t bytes, Rights rights)
    : domain_(domain),
      begin_(begin),
      bytes_(bytes),
      rights_(rights),
      key_(Fabric::get().new_key()) {
  domain_.regions[key_] = this;
}

FakeRegion::~FakeRegion() {
  const Lock lock = lock_fabric();
  domain_.regions.erase(key_);
}

std::unique_ptr<Region> FakeDomain::register_memory(void* address, std::size_t bytes,
                                                    Rights rights) {
  const Lock lock = lock_fabric();
  if (Fabric::get().refuses()) return nullptr;
  return std::make_unique<FakeRegion>(*this, reinterpret_cast<std::uint64_t>(address), bytes,
                                      rights);
}

std::unique_ptr<QueuePair> FakeDomain::create_queue_pair(const QueuePairAttributes& plan) {
  const Lock lock = lock_fabric();
  if (Fabric::get().refuses()) return nullptr;
  Fabric::get().last_plan = plan;
  return std::make_unique<FakeQueuePair>(device_, *this, plan);
}

// ---- queue pairs ----

FakeQueuePair::FakeQueuePair(FakeDevice& device, FakeDomain& domain,
                             const QueuePairAttributes& plan)
    : device_(device), domain_(domain), plan_(plan), number_(Fabric::get().add(*this)) {}

FakeQueuePair::~FakeQueuePair() {
  const Lock lock = lock_fabric();
  Fabric::get().remove(number_);
}

QueuePairAddress FakeQueuePair::address() const {
  return {{}, number_, 1, 1024};
}

bool FakeQueuePair::prepare(Rights rights) {
  const Lock lock = lock_fabric();
  if (state_ != State::reset || Fabric::get().unable_to_prepare) return false;
  rights_ = rights;
  state_ = State::init;
  return true;
}

bool FakeQueuePair::connect(const ConnectAttributes& plan) {
  const Lock lock = lock_fabric();
  if (state_ != State::init) return false;
  remote_ = plan.remote.number;
  state_ = State::ready;
  return true;
}

bool FakeQueuePair::fail() {
  const Lock lock = lock_fabric();
  state_ = State::error;
  flush();
  return true;
}

bool FakeQueuePair::has_failed() {
  const Lock lock = lock_fabric();
  return state_ == State::error;
}

// As the drivers of most devices do it; Soft-RoCE's leaves what has completed.
bool FakeQueuePair::reset() {
  const Lock lock = lock_fabric();
  sends_.clear();
  receives_.clear();
  for (CompletionQueue* const it : {plan_.send_completions, plan_.receive_completions})
    static_cast<FakeCompletionQueue*>(it)->forget(number_);
  state_ = State::reset;
  return true;
}

void FakeQueuePair::flush() {
  while (!sends_.empty()) complete_send(Outcome::flushed);
  for (; !receives_.empty(); receives_.pop_front())
    static_cast<FakeCompletionQueue*>(plan_.receive_completions)
        ->push(completion_of(receives_.front().id, Outcome::flushed));
}

Completion FakeQueuePair::completion_of(std::uint64_t id, Outcome outcome) const {
  Completion completion{};
  completion.id = id;
  completion.outcome = outcome;
  completion.queue_pair = number_;
  return completion;
}

void FakeQueuePair::complete_send(Outcome outcome) {
  const Completion completion = completion_of(sends_.front().work.id, outcome);
  sends_.pop_front();
  static_cast<FakeCompletionQueue*>(plan_.send_completions)->push(completion);
}

int FakeQueuePair::post_send(const SendWork& work) {
  const Lock lock = lock_fabric();
  if (Fabric::get().broken_posts || state_ == State::reset || state_ == State::init ||
      sends_.size() == plan_.sends || work.count > plan_.segments ||
      (work.verb.operation == Operation::rdma_read && work.count > device_.limits().read_segments))
    return ENOMEM;
  sends_.push_back({work, {work.list().begin(), work.list().end()}});
  if (state_ == State::error)
    flush();
  else
    run();
  return 0;
}

int FakeQueuePair::post_receive(const ReceiveWork& work) {
  std::function<void()> before;
  {
    const Lock lock = lock_fabric();
    before.swap(Fabric::get().before_receive);
  }
  if (before) before();
  const Lock lock = lock_fabric();
  if (Fabric::get().broken_posts || state_ == State::reset || receives_.size() == plan_.receives ||
      work.count > plan_.segments)
    return ENOMEM;
  receives_.push_back({work.id, {work.list().begin(), work.list().end()}});
  if (state_ == State::error && !Fabric::get().forgets_late_receives) flush();
  if (FakeQueuePair* const remote = Fabric::get().find(remote_)) remote->run();
  return 0;
}

void FakeQueuePair::run_without_acks() {
  for (Send& send : sends_) {
    if (send.executed) continue;
    if (execute(send) != Outcome::success) return;
    send.executed = true;
  }
}

void FakeQueuePair::run() {
  if (Fabric::get().withholds_acks) return run_without_acks();
  while (state_ == State::ready && !sends_.empty() && !Fabric::get().is_held()) {
    const Outcome outcome = execute(sends_.front());
    // Without reliability nobody tells the sender what became of it.
    const bool local = outcome == Outcome::success || outcome == Outcome::local_protection;
    complete_send(plan_.reliable || local ? outcome : Outcome::success);
    if (outcome != Outcome::success && (plan_.reliable || local)) fail();
  }
}

Outcome FakeQueuePair::execute(const Send& send) {
  const SendWork& work = send.work;
  std::vector<std::byte> bytes;
  if (!gather(send.segments, bytes)) return Outcome::local_protection;
  FakeQueuePair* const remote = Fabric::get().find(remote_);
  if (remote == nullptr || remote->state_ != State::ready || remote->remote_ != number_)
    return Outcome::unanswered;
  if (!work.is_write() && work.verb.operation != Operation::rdma_read)
    return remote->take_message(work, bytes);
  const Outcome outcome = remote->access(work, bytes);
  if (outcome != Outcome::success) return outcome;
  if (work.verb.operation == Operation::rdma_read) {
    scatter(send.segments, bytes);
    return outcome;
  }
  return work.has_immediate() ? remote->take_message(work, bytes) : outcome;
}

// A send, or the immediate data of a write.
Outcome FakeQueuePair::take_message(const SendWork& work, const std::vector<std::byte>& message) {
  if (receives_.empty()) return Outcome::receiver_not_ready;
  const Receive receive = receives_.front();
  receives_.pop_front();
  Completion completion = completion_of(receive.id, Outcome::success);
  completion.flags = work.has_immediate() ? Completion::kWithImmediate : 0;
  completion.network_immediate = work.network_immediate;
  const bool by_rdma_write = work.is_write();
  if (by_rdma_write) completion.operation = Completion::kByRdmaWrite;
  completion.length = static_cast<std::uint32_t>(message.size());
  std::uint64_t room = 0;
  for (const Segment& segment : receive.segments) room += segment.length;
  Outcome answer = Outcome::success;
  if (!by_rdma_write && message.size() > room) {
    completion.outcome = Outcome::local_length;
    answer = Outcome::remote_invalid_request;
  } else if (!by_rdma_write && !scatter(receive.segments, message)) {
    completion.outcome = Outcome::local_protection;
    answer = Outcome::remote_operation;
  }
  static_cast<FakeCompletionQueue*>(plan_.receive_completions)->push(completion);
  if (answer != Outcome::success) fail();
  return answer;
}

// An RDMA operation's effect on memory here.
Outcome FakeQueuePair::access(const SendWork& work, std::vector<std::byte>& bytes) {
  const bool write = work.is_write();
  Outcome outcome = Outcome::success;
  const auto found = domain_.regions.find(work.remote_key);
  if (write ? !rights_.write : !rights_.read) {
    outcome = Outcome::remote_invalid_request;
  } else if (!bytes.empty() &&
             (found == domain_.regions.end() ||
              !found->second->covers(work.remote_address, bytes.size()) ||
              (write ? !found->second->rights().write : !found->second->rights().read))) {
    outcome = Outcome::remote_access;
  } else if (write) {
    std::copy(bytes.begin(), bytes.end(), pointer(work.remote_address));
  } else {
    std::copy_n(pointer(work.remote_address), bytes.size(), bytes.begin());
  }
  if (outcome != Outcome::success && plan_.reliable) fail();
  return outcome;
}

bool FakeQueuePair::gather(const std::vector<Segment>& segments,
                           std::vector<std::byte>& bytes) const {
  for (const Segment& segment : segments) {
    const auto found = domain_.regions.find(segment.key);
    if (found == domain_.regions.end() || !found->second->covers(segment.address, segment.length))
      return false;
    bytes.insert(bytes.end(), pointer(segment.address), pointer(segment.address) + segment.length);
  }
  return true;
}

bool FakeQueuePair::scatter(const std::vector<Segment>& segments,
                            const std::vector<std::byte>& bytes) const {
  std::size_t at = 0;
  for (const Segment& segment : segments) {
    const auto found = domain_.regions.find(segment.key);
    if (found == domain_.regions.end() || !found->second->covers(segment.address, segment.length))
      return false;
    const std::size_t n = std::min<std::size_t>(segment.length, bytes.size() - at);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), n, pointer(segment.address));
    at += n;
  }
  return true;
}

// ---- devices ----

FakeDevice::FakeDevice() : limits_(Fabric::get().limits) {}

std::unique_ptr<Domain> FakeDevice::create_domain() {
  const Lock lock = lock_fabric();
  if (Fabric::get().refuses()) return nullptr;
  return std::make_unique<FakeDomain>(*this);
}

std::unique_ptr<CompletionQueue> FakeDevice::create_completion_queue(std::size_t capacity,
                                                                     void* owner) {
  const Lock lock = lock_fabric();
  if (Fabric::get().refuses()) return nullptr;
  Fabric::get().last_completions = capacity;
  return std::make_unique<FakeCompletionQueue>(*this, capacity, owner);
}

FakeProvider& FakeProvider::get() {
  static FakeProvider& provider = *new FakeProvider;
  return provider;
}

std::vector<DeviceInfo> FakeProvider::devices() {
  std::vector<DeviceInfo> all(2);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].name = names[i];
    all[i].interface = "eth" + std::to_string(100 + i);
    all[i].ip = {127, 0, 0, static_cast<std::uint8_t>(1 + i)};
    all[i].usable = true;
  }
  return all;
}

std::unique_ptr<Device> FakeProvider::open(const DeviceInfo&) {
  auto device = std::make_unique<FakeDevice>();
  last_opened = device.get();
  return device;
}

}  // namespace viaduct::vi::fake
