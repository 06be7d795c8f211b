// Loop: an event loop without a thread. It watches file descriptors and timers behind one epoll
// descriptor, fd(), which the event thread polls; run() then calls the handlers.
//
// Not thread-safe: the owner of the loop guards it (in the connection manager, with the manager's
// lock). A handler may end any watch or timer, its own included. Watches and timers must end before
// the loop is destroyed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "libvipl/connection/socket/deadline.hpp"
#include "libvipl/connection/socket/unique_fd.hpp"

namespace viaduct::vipl {

// The sentence for the user when the process has no file descriptor left.
inline constexpr std::string_view kNoDescriptors =
    "no file descriptors are left for VIPL connections: raise the limit (ulimit -n)";

class Loop {
 public:
  // `events`: EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP.
  using Handler = std::function<void(std::uint32_t events)>;
  using Alarm = std::function<void()>;

  // A file descriptor is watched as long as this object lives. The watch must end before the
  // descriptor is closed: if another process has the same socket (fork, SCM_RIGHTS), the kernel
  // keeps it open and would go on reporting it.
  class Watch {
   public:
    Watch() = default;
    // std::bad_alloc: no memory, or the kernel cannot watch another descriptor.
    Watch(Loop& loop, int fd, std::uint32_t events, Handler handler);
    Watch(Watch&& other) noexcept { *this = std::move(other); }
    Watch& operator=(Watch&& other) noexcept;
    ~Watch() { end(); }
    // Watches for these events from now on; 0: for errors only.
    void change(std::uint32_t events);
    void end();

   private:
    Loop* loop_ = nullptr;
    int fd_ = -1;
    std::uint64_t id_ = 0;
  };

  // One alarm. It is called at the end of a run() at or after its time, once, unless the timer ends
  // before.
  class Timer {
   public:
    Timer() = default;
    Timer(Loop& loop, Clock::time_point when, Alarm alarm);
    Timer(Loop& loop, Clock::duration delay, Alarm alarm)
        : Timer(loop, Clock::now() + delay, std::move(alarm)) {}
    Timer(Timer&& other) noexcept { *this = std::move(other); }
    Timer& operator=(Timer&& other) noexcept;
    ~Timer() { end(); }
    void end();

   private:
    Loop* loop_ = nullptr;
    std::pair<Clock::time_point, std::uint64_t> key_;
  };

  Loop();  // std::runtime_error: the system has no descriptors left
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  int fd() const { return epoll_.get(); }
  // Makes fd() readable until the next run(). The only function that any thread may call without
  // the lock.
  void wake() const;
  // Calls the handlers of all descriptors that are ready, and the alarms that are due. Never
  // blocks. False: there was none, of either.
  bool run();

 private:
  bool run_timers();
  void set_clock();

  // clock_ is a timerfd, set to the earliest timer; wake_ an eventfd.
  UniqueFd epoll_, clock_, wake_;
  std::uint64_t next_id_ = 2;  // 0 and 1 are the clock and wake_
  // Shared, so that a handler lives until its call returns, even if it ends its own watch.
  std::unordered_map<std::uint64_t, std::shared_ptr<Handler>> handlers_;
  std::map<std::pair<Clock::time_point, std::uint64_t>, std::shared_ptr<Alarm>> timers_;
  // max(): clock_ is not set.
  Clock::time_point clock_set_to_ = Clock::time_point::max();
};

}  // namespace viaduct::vipl
