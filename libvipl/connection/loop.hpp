// Descriptors to watch and times to wait for, behind one descriptor that somebody else polls.
//
// Not thread-safe: the manager's lock covers it. A handler may end any watch or timer, its own too.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "libvipl/connection/deadline.hpp"
#include "libvipl/connection/descriptor.hpp"

namespace viaduct::vipl {

inline constexpr std::string_view kNoDescriptors =
    "no file descriptors are left for VIPL connections: raise the limit (ulimit -n)";

class Loop {
 public:
  using Handler = std::function<void(std::uint32_t events)>;
  using Alarm = std::function<void()>;

  // A descriptor is watched as long as this lives. It must end before the descriptor is closed:
  // other processes may have the same socket, and the kernel would go on reporting it.
  class Watch {
   public:
    Watch() = default;
    Watch(Loop& loop, int fd, std::uint32_t events, Handler handler);
    Watch(Watch&& other) noexcept { *this = std::move(other); }
    Watch& operator=(Watch&& other) noexcept;
    ~Watch() { end(); }
    void change(std::uint32_t events);
    void end();

   private:
    Loop* loop_ = nullptr;
    int fd_ = -1;
    std::uint64_t id_ = 0;
  };

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
  // Makes fd() readable until run() is next called; the only function that needs no lock.
  void wake() const;
  // Calls the handlers of all that is ready and due. Does not block.
  void run();

 private:
  void run_timers();
  void set_clock();

  Descriptor epoll_, clock_, wake_;
  std::uint64_t next_id_ = 2;  // 0 and 1 are the clock and wake_
  std::unordered_map<std::uint64_t, std::shared_ptr<Handler>> handlers_;
  std::map<std::pair<Clock::time_point, std::uint64_t>, std::shared_ptr<Alarm>> timers_;
  Clock::time_point clock_set_to_ = Clock::time_point::max();
};

}  // namespace viaduct::vipl
