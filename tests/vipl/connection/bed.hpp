// NICs without a device: a connection manager with the thread that drives it, and Virtual
// Interfaces that only note what happens to them. Addresses are loopback ones, different for each
// test, so that tests run side by side.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "libvipl/connection/manager.hpp"

namespace viaduct::vipl::test {

using namespace std::chrono_literals;

inline constexpr std::uint16_t kPort = 17750;
// Longer than anything takes on a busy machine; nothing ends because of it unless it is broken.
inline constexpr auto kLong = 60s;

// 127.x.y.n: x and y are this test's own.
inline NicAddress nic(std::uint8_t n, std::uint16_t port = kPort) {
  static const unsigned base = static_cast<unsigned>(::getpid());
  return {{127, static_cast<std::uint8_t>(1 + base % 250),
           static_cast<std::uint8_t>(base / 250 % 250), n},
          port};
}

inline Discriminator disc(const std::string& text) {
  return *Discriminator::from({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

// g++ 12 wrongly warns (-Wrestrict) of "text" + std::to_string(n) when it optimizes.
inline std::string numbered(const char* text, std::size_t n) {
  return std::string(text).append(std::to_string(n));
}

inline Deadline in(Clock::duration delay) {
  return Clock::now() + delay;
}

// A VI as far as connections go. It checks that the manager keeps to the contract of
// ConnectionUser.
class FakeVi final : public ConnectionUser {
  template <typename Function>
  auto locked(Function function) const {
    const std::lock_guard lock(mutex_);
    return function();
  }

 public:
  enum class State { idle, pending, connected, error };
  // Called in these functions: "card", "establish", "abandoned" (on_attempt_failed()),
  // "delivered", "lost" (on_connection_lost()).
  using Hook = std::function<void(const std::string& where)>;

  FakeVi() : FakeVi(Hook{}) {}
  explicit FakeVi(Hook hook) : hook_(std::move(hook)) {
    static std::atomic<std::uint32_t> numbers{1};
    mine.queue_pair.number = numbers++ & 0xffffff;
    mine.max_transfer_size = 32768;
    mine.reliability = VIP_SERVICE_RELIABLE_DELIVERY;
    mine.rdma_write = true;
    mine.reads_served = 4;
    mine.queue_pair.mtu = 1024;
  }

  EndpointInfo card() override {
    const std::lock_guard lock(mutex_);
    call("card");
    expect(state_ != State::connected && state_ != State::error, "card() of a connected VI");
    state_ = State::pending;
    aliases_.clear();
    mine.queue_pair.psn = (mine.queue_pair.psn + 1) & 0xffffff;
    changed_.notify_all();
    return mine;
  }
  bool establish(const EndpointInfo& remote) override {
    const std::lock_guard lock(mutex_);
    call("establish");
    expect(state_ == State::pending, "establish() of a VI that is not pending");
    if (device_refuses) return false;
    state_ = State::connected;
    remote_ = remote;
    changed_.notify_all();
    return true;
  }
  void on_attempt_failed(bool tries_again) override {
    const std::lock_guard lock(mutex_);
    call("abandoned");
    expect(state_ != State::error, "abandoned() after lost()");
    state_ = tries_again ? State::pending : State::idle;
    ++abandoned_;
    changed_.notify_all();
  }
  Tally tally() override { return mine_so_far; }
  void delivered(const Tally& other) override {
    const std::lock_guard lock(mutex_);
    call("delivered");
    expect(state_ == State::connected, "delivered() of a VI that is not connected");
    delivered_ = other;
  }
  void on_connection_lost(CloseReason reason) override {
    const std::lock_guard lock(mutex_);
    call("lost");
    expect(state_ == State::connected, "lost() of a VI that is not connected");
    state_ = State::error;
    close_reason_ = reason;
    changed_.notify_all();
  }
  void alias(std::uint32_t name, std::uint32_t key) override {
    const std::lock_guard lock(mutex_);
    expect(state_ == State::connected, "alias() of a VI that is not connected");
    if (key == 0)
      aliases_.erase(name);
    else
      aliases_[name] = key;
  }

  // What VipDisconnect does to a VI.
  void reset() {
    const std::lock_guard lock(mutex_);
    state_ = State::idle;
    close_reason_.reset();
    delivered_.reset();
  }

  State state() const {
    return locked([&] { return state_; });
  }
  EndpointInfo remote() const {
    return locked([&] { return remote_; });
  }
  std::optional<CloseReason> close_reason() const {
    return locked([&] { return close_reason_; });
  }
  // What the other side has said.
  std::optional<Tally> delivered() const {
    return locked([&] { return delivered_; });
  }
  unsigned times_abandoned() const {
    return locked([&] { return abandoned_; });
  }
  std::map<std::uint32_t, std::uint32_t> aliases() const {
    return locked([&] { return aliases_; });
  }
  std::string complaint() const {
    return locked([&] { return complaint_; });
  }

  // False: it did not come to that.
  bool wait_for(State state, Clock::duration longest = kLong) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, longest, [&] { return state_ == state; });
  }

  EndpointInfo mine;
  std::atomic<bool> device_refuses{false};
  Tally mine_so_far;

 private:
  void call(const char* where) {
    if (hook_) hook_(where);
  }
  void expect(bool holds, const char* complaint) {
    if (!holds && complaint_.empty()) complaint_ = complaint;
  }

  const Hook hook_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  State state_ = State::idle;
  EndpointInfo remote_;
  std::optional<CloseReason> close_reason_;
  std::optional<Tally> delivered_;
  unsigned abandoned_ = 0;
  std::map<std::uint32_t, std::uint32_t> aliases_;
  std::string complaint_;
};

// VIs of a test that live as long as its NICs: declared before them.
class Vis {
 public:
  ~Vis() {
    for (const FakeVi& vi : all_) EXPECT_EQ(vi.complaint(), "");
  }
  FakeVi& add() { return all_.emplace_back(); }
  std::vector<FakeVi*> add(std::size_t count) {
    std::vector<FakeVi*> out;
    while (out.size() < count) out.push_back(&add());
    return out;
  }

 private:
  std::deque<FakeVi> all_;
};

// An open NIC.
class Nic {
 public:
  explicit Nic(const NicAddress& address)
      : manager(address), stop_(::eventfd(0, EFD_CLOEXEC)), thread_([this] { run(); }) {}
  ~Nic() {
    manager.shutdown();
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(stop_, &one, sizeof one);
    thread_.join();
    ::close(stop_);
  }

  VIP_RETURN request(FakeVi& vi, const Endpoint& remote, Clock::duration longest = kLong,
                     const std::string& local = "client") {
    EndpointInfo card;
    return manager.request(vi, disc(local), remote, in(longest), card);
  }
  // Waits, then accepts.
  VIP_RETURN serve(FakeVi& vi, const std::string& local, Clock::duration longest = kLong) {
    std::shared_ptr<ReceivedRequest> incoming;
    const VIP_RETURN waited = manager.wait(disc(local), in(longest), incoming);
    return waited == VIP_SUCCESS ? Manager::accept(incoming, vi) : waited;
  }
  void disconnect(FakeVi& vi) {
    manager.disconnect(vi, [&] {
      vi.reset();
      return VIP_SUCCESS;
    });
  }
  Endpoint at(const std::string& discriminator) const {
    return {manager.self(), disc(discriminator)};
  }

  Manager manager;

 private:
  void run() {
    for (;;) {
      pollfd ready[] = {{stop_, POLLIN, 0}, {manager.fd(), POLLIN, 0}};
      ::poll(ready, 2, -1);
      if (ready[0].revents != 0) return;
      manager.progress();
    }
  }

  const int stop_;
  std::thread thread_;
};

// Until a program waits there. (A request that comes too early gets NO_MATCH at once.)
inline VIP_RETURN request_until_matched(Nic& nic, FakeVi& vi, const Endpoint& remote) {
  const auto end = Clock::now() + kLong;
  for (;;) {
    const VIP_RETURN result = nic.request(vi, remote);
    if (result != VIP_NO_MATCH || Clock::now() > end) return result;
  }
}

inline void connect(Nic& client_nic, FakeVi& client, Nic& server_nic, FakeVi& server,
                    const std::string& discriminator = "server") {
  auto served =
      std::async(std::launch::async, [&] { return server_nic.serve(server, discriminator); });
  EXPECT_EQ(request_until_matched(client_nic, client, server_nic.at(discriminator)), VIP_SUCCESS);
  EXPECT_EQ(served.get(), VIP_SUCCESS);
}

// A request that a program has taken and not answered yet.
struct HeldRequest {
  std::shared_ptr<ReceivedRequest> incoming;
  std::future<VIP_RETURN> outcome;  // what the client gets in the end
};
inline HeldRequest hold_request(Nic& client_nic, FakeVi& client, Nic& server_nic,
                                const std::string& discriminator = "server") {
  HeldRequest held;
  held.outcome =
      std::async(std::launch::async, [&client_nic, &client, remote = server_nic.at(discriminator)] {
        return request_until_matched(client_nic, client, remote);
      });
  if (server_nic.manager.wait(disc(discriminator), in(kLong), held.incoming) != VIP_SUCCESS)
    throw std::runtime_error("the request did not come");
  return held;
}

// Two NICs, and a VI for each.
struct TwoNics : testing::Test {
  explicit TwoNics(std::uint8_t first = 1)
      : a(nic(first)), b(nic(static_cast<std::uint8_t>(first + 1))) {}

  Vis vis;
  FakeVi &client = vis.add(), &server = vis.add();
  Nic a, b;
};

inline std::size_t open_descriptors() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++n;
  return n;
}

// What it was before, once the stragglers are gone.
inline bool descriptors_fall_to(std::size_t before) {
  for (int i = 0; i < 500 && open_descriptors() > before; ++i) std::this_thread::sleep_for(20ms);
  return open_descriptors() <= before;
}

}  // namespace viaduct::vipl::test
