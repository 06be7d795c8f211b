// The thread of an open NIC that hears what the device and the connections have to say.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "libvipl/connection/deadline.hpp"
#include "libvipl/connection/loop.hpp"

namespace viaduct::vipl {

class EventThread {
 public:
  struct Source {
    int fd = -1;
    std::function<void()> on_readable;  // level triggered, until the descriptor is in error
  };
  // Called after whatever was readable or woke the thread, and again when the time has come that it
  // returned.
  using Turn = std::function<Deadline()>;

  explicit EventThread(std::vector<Source> sources, Turn turn = {});
  ~EventThread() { stop(); }
  // Returns when no handler is running any more. May be called twice.
  void stop();
  // There is to be a turn soon. Any lock may be held.
  void wake() { loop_.wake(); }

 private:
  void run();

  Loop loop_;
  const Turn turn_;
  std::vector<Loop::Watch> watches_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace viaduct::vipl
