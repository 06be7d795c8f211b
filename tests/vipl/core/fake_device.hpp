// An RDMA device in this process: what the InfiniBand specification says of reliable connections,
// as far as libvipl can see it. Work is done when it is posted, or, while the fabric is held, when
// it is let go.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "drivers/vi_over_verbs/verbs.hpp"

namespace viaduct::vi::fake {

class FakeQueuePair;

// All devices of the process, and what connects them.
class Fabric {
 public:
  static Fabric& get();

  // Sends wait.
  void hold() { held_ = true; }
  void release();
  // From now on that many creations of anything fail; for tests of what runs out.
  std::atomic<int> refusals{0};
  // Not negative: that many still succeed, then all fail.
  std::atomic<int> accepts{-1};
  // Posts fail as long as this is set.
  std::atomic<bool> broken_posts{false};
  // Queue pairs cannot be used again as long as this is set.
  std::atomic<bool> unable_to_prepare{false};
  // How often completion queues were made larger or smaller.
  std::atomic<int> resizes{0};
  // How often they were armed.
  std::atomic<int> armed{0};
  // Whoever sends does not learn that it was delivered.
  std::atomic<bool> withholds_acks{false};
  // Called when a receive is being posted, before anything else happens to it.
  std::function<void()> before_receive;
  // Receives that are posted to a queue pair in the error state stay until it fails again, as with
  // Soft-RoCE.
  std::atomic<bool> forgets_late_receives{false};
  // What the last queue pair and the last completion queue were made for.
  QueuePairAttributes last_plan;
  std::size_t last_completions = 0;
  // What a new device says.
  Limits limits;

  // ---- for the devices ----

  std::recursive_mutex mutex;
  bool refuses() {
    if (accepts >= 0) return accepts == 0 || accepts-- == 0;
    return refusals > 0 && refusals-- > 0;
  }
  bool is_held() const { return held_; }
  std::uint32_t add(FakeQueuePair& queue_pair);
  void remove(std::uint32_t number) { queue_pairs_.erase(number); }
  FakeQueuePair* find(std::uint32_t number);
  std::uint32_t new_key() { return next_key_ += 0x100; }

 private:
  Fabric();

  bool held_ = false;
  std::uint32_t next_number_ = 0x10, next_key_ = 0x1200;
  std::map<std::uint32_t, FakeQueuePair*> queue_pairs_;
};

// File descriptor that is readable while there are events.
class EventFd {
 public:
  EventFd();
  ~EventFd();
  int get() const { return fd_; }
  void raise();
  void clear();

 private:
  int fd_;
};

class FakeDevice;

class FakeCompletionQueue final : public CompletionQueue {
 public:
  FakeCompletionQueue(FakeDevice& device, std::size_t capacity, void* owner)
      : device_(device), capacity_(capacity), owner_(owner) {}
  ~FakeCompletionQueue() override;

  int poll(int most, Completion* to) override;
  bool arm() override;
  std::size_t capacity() const override { return capacity_; }
  bool resize(std::size_t capacity) override;

  void push(const Completion& completion);
  // Those of this queue pair are gone.
  void forget(std::uint32_t queue_pair);

 private:
  FakeDevice& device_;
  std::size_t capacity_;
  void* owner_;
  bool armed_ = false;
  std::deque<Completion> done_;
};

class FakeDomain;

class FakeRegion final : public Region {
 public:
  FakeRegion(FakeDomain& domain, std::uint64_t begin, std::size_t bytes, Rights rights);
  ~FakeRegion() override;
  std::uint32_t local_key() const override { return key_; }
  std::uint32_t remote_key() const override { return rights_.write || rights_.read ? key_ : 0; }
  bool covers(std::uint64_t address, std::uint64_t bytes) const {
    return address >= begin_ && address + bytes <= begin_ + bytes_;
  }
  Rights rights() const { return rights_; }

 private:
  FakeDomain& domain_;
  std::uint64_t begin_;
  std::size_t bytes_;
  Rights rights_;
  std::uint32_t key_;
};

class FakeDomain final : public Domain {
 public:
  explicit FakeDomain(FakeDevice& device) : device_(device) {}
  std::unique_ptr<Region> register_memory(void* address, std::size_t bytes, Rights rights) override;
  std::unique_ptr<QueuePair> create_queue_pair(const QueuePairAttributes& plan) override;

  std::map<std::uint32_t, FakeRegion*> regions;

 private:
  FakeDevice& device_;
};

class FakeQueuePair final : public QueuePair {
 public:
  FakeQueuePair(FakeDevice& device, FakeDomain& domain, const QueuePairAttributes& plan);
  ~FakeQueuePair() override;
  QueuePairAddress address() const override;
  bool prepare(Rights rights) override;
  bool connect(const ConnectAttributes& plan) override;
  bool fail() override;
  bool has_failed() override;
  bool reset() override;
  int post_send(const SendWork& work) override;
  int post_receive(const ReceiveWork& work) override;

  // As many sends as can be executed.
  void run();

 private:
  enum class State { reset, init, ready, error };
  struct Send {
    SendWork work;
    std::vector<Segment> segments;
    bool executed = false;
  };
  struct Receive {
    std::uint64_t id;
    std::vector<Segment> segments;
  };

  void run_without_acks();
  Outcome execute(const Send& send);
  Outcome take_message(const SendWork& work, const std::vector<std::byte>& message);
  Outcome access(const SendWork& work, std::vector<std::byte>& bytes);
  bool gather(const std::vector<Segment>& segments, std::vector<std::byte>& bytes) const;
  bool scatter(const std::vector<Segment>& segments, const std::vector<std::byte>& bytes) const;
  Completion completion_of(std::uint64_t id, Outcome outcome) const;
  void complete_send(Outcome outcome);
  void flush();

  FakeDevice& device_;
  FakeDomain& domain_;
  QueuePairAttributes plan_;
  Rights rights_;
  State state_ = State::reset;
  std::uint32_t number_;
  std::uint32_t remote_ = 0;
  std::deque<Send> sends_;
  std::deque<Receive> receives_;
};

class FakeDevice final : public Device {
 public:
  FakeDevice();
  const Limits& limits() const override { return limits_; }
  std::unique_ptr<Domain> create_domain() override;
  std::unique_ptr<CompletionQueue> create_completion_queue(std::size_t capacity,
                                                           void* owner) override;
  int completion_fd() const override { return completions_fd_.get(); }
  void* next_completion_event() override;
  int async_fd() const override { return async_fd_.get(); }
  std::optional<AsyncEvent> next_async_event() override;

  void completion_event(void* owner);
  void forget(void* owner);
  void async_event(const AsyncEvent& event);

 private:
  Limits limits_;
  EventFd completions_fd_, async_fd_;
  std::deque<void*> completion_events_;
  std::deque<AsyncEvent> async_events_;
};

// Two devices whose control connections go over the loopback interface.
class FakeProvider final : public Provider {
 public:
  static FakeProvider& get();
  std::vector<DeviceInfo> devices() override;
  std::unique_ptr<Device> open(const DeviceInfo& device) override;

  std::array<std::string, 2> names{"fake0", "fake1"};
  FakeDevice* last_opened = nullptr;
};

}  // namespace viaduct::vi::fake
