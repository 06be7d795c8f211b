// The thread of an open NIC that hears what the device and the connections have to say.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "libvipl/connection/loop.hpp"

namespace viaduct::vipl {

class EventThread {
 public:
  struct Source {
    int fd = -1;
    std::function<void()> on_readable;  // level triggered, until the descriptor is in error
  };

  explicit EventThread(std::vector<Source> sources);
  ~EventThread() { stop(); }
  // Returns when no handler is running any more. May be called twice.
  void stop();

 private:
  void run();

  Loop loop_;
  std::vector<Loop::Watch> watches_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace viaduct::vipl
