// The event loop of the connection manager and of the event thread, on epoll, timerfd and eventfd.
// Watches are found by number, never by pointer: an event for a watch that ended in the same round
// finds nothing.
#include "libvipl/connection/socket/loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <stdexcept>

namespace viaduct::vipl {
namespace {

constexpr std::uint64_t kClockId = 0, kWakeId = 1;

// The kernel refuses for want of memory or of watches (ENOMEM, ENOSPC).
void add(int epoll, int fd, std::uint32_t events, std::uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) throw std::bad_alloc();
}

void drain(int fd) {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto n = ::read(fd, &count, sizeof count);
}

// False: the function ran out of memory. The exception must not leave the event thread. A
// descriptor that is still ready and a timer that is still due are called again.
template <typename Function, typename... Arguments>
bool call(const Function& function, Arguments... arguments) {
  try {
    function(arguments...);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// The shortest time the clock is set to: a time of 0 would disarm it, and an alarm that is out of
// memory would be called again without a pause.
constexpr Clock::duration kMinDelay = std::chrono::microseconds(100);

}  // namespace

Loop::Loop()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      clock_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !clock_ || !wake_) throw std::runtime_error(std::string(kNoDescriptors));
  add(epoll_.get(), clock_.get(), EPOLLIN, kClockId);
  add(epoll_.get(), wake_.get(), EPOLLIN, kWakeId);
}

void Loop::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(wake_.get(), &one, sizeof one);
}

bool Loop::run() {
  std::array<epoll_event, 64> events;
  const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < n; ++i) {
    const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
    if (id == kClockId) {
      drain(clock_.get());
      clock_set_to_ = Clock::time_point::max();
    } else if (id == kWakeId) {
      drain(wake_.get());
    } else if (const auto found = handlers_.find(id); found != handlers_.end()) {
      const std::shared_ptr<Handler> handler = found->second;  // outlives its own watch
      call(*handler, events[static_cast<std::size_t>(i)].events);
    }
  }
  return run_timers() || n > 0;
}

bool Loop::run_timers() {
  const auto now = Clock::now();
  const bool any = !timers_.empty() && timers_.begin()->first.first <= now;
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    // A copy: the alarm may end its own timer.
    const auto [key, alarm] = *timers_.begin();
    // Out of memory: the timer stays, and set_clock() tries again in kMinDelay.
    if (!call(*alarm)) break;
    timers_.erase(key);
  }
  set_clock();
  return any;
}

// Only ever to an earlier time: a clock that fires too early finds nothing due and is set anew,
// which is cheaper than a system call for each timer that ends.
void Loop::set_clock() {
  if (timers_.empty()) return;
  const auto first = timers_.begin()->first.first;
  if (first >= clock_set_to_) return;
  const auto delay = std::max(first - Clock::now(), kMinDelay);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(delay);
  itimerspec setting{};
  setting.it_value.tv_sec = seconds.count();
  setting.it_value.tv_nsec = std::chrono::nanoseconds(delay - seconds).count();
  if (::timerfd_settime(clock_.get(), 0, &setting, nullptr) == 0) clock_set_to_ = first;
}

Loop::Watch::Watch(Loop& loop, int fd, std::uint32_t events, Handler handler)
    : loop_(&loop), fd_(fd), id_(loop.next_id_++) {
  loop.handlers_.emplace(id_, std::make_shared<Handler>(std::move(handler)));
  try {
    add(loop.epoll_.get(), fd, events, id_);
  } catch (...) {
    loop.handlers_.erase(id_);
    throw;
  }
}

Loop::Watch& Loop::Watch::operator=(Watch&& other) noexcept {
  end();
  loop_ = std::exchange(other.loop_, nullptr);
  fd_ = other.fd_;
  id_ = other.id_;
  return *this;
}

void Loop::Watch::change(std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id_;
  ::epoll_ctl(loop_->epoll_.get(), EPOLL_CTL_MOD, fd_, &event);
}

void Loop::Watch::end() {
  if (loop_ == nullptr) return;
  ::epoll_ctl(loop_->epoll_.get(), EPOLL_CTL_DEL, fd_, nullptr);
  loop_->handlers_.erase(id_);
  loop_ = nullptr;
}

Loop::Timer::Timer(Loop& loop, Clock::time_point when, Alarm alarm)
    : loop_(&loop), key_(when, loop.next_id_++) {
  loop.timers_.emplace(key_, std::make_shared<Alarm>(std::move(alarm)));
  loop.set_clock();
}

Loop::Timer& Loop::Timer::operator=(Timer&& other) noexcept {
  end();
  loop_ = std::exchange(other.loop_, nullptr);
  key_ = other.key_;
  return *this;
}

void Loop::Timer::end() {
  if (loop_ != nullptr) loop_->timers_.erase(key_);
  loop_ = nullptr;
}

}  // namespace viaduct::vipl
