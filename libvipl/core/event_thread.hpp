// EventThread: the thread of an open NIC that waits for events of the device and of the connection
// manager. Owned by Nic. After stop() the program's threads do the same work with look()
// (own_progress.hpp).
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "libvipl/connection/socket/deadline.hpp"
#include "libvipl/connection/socket/loop.hpp"

namespace viaduct::vipl {

class EventThread {
 public:
  // A file descriptor to watch; not owned.
  struct Source {
    int fd = -1;
    // Called again while it is readable; no more once it only reports errors.
    std::function<void()> on_readable;
  };
  // Called on the thread after each round of events, and when the time comes that it returned last.
  // nullopt: only after events.
  using Turn = std::function<Deadline()>;

  // Starts the thread, or, if not `threaded`, is as after stop(). std::runtime_error,
  // std::system_error: no file descriptors or threads are left.
  explicit EventThread(std::vector<Source> sources, Turn turn = {}, bool threaded = true);
  ~EventThread() { stop(); }
  // Ends the thread and waits for it: no handler runs afterwards. May be called twice, but not on
  // the thread itself.
  void stop();
  // Causes a turn soon. Any thread, with any lock held.
  void wake() { loop_.wake(); }

  // ---- after stop(), by one thread at a time ----

  // Readable when look() has work to do, timers included.
  int fd() const { return loop_.fd(); }
  // A round of events and a turn. Never blocks. False: there were no events.
  bool look();

 private:
  void run();
  bool take_turn();

  Loop loop_;
  const Turn turn_;
  std::vector<Loop::Watch> watches_;
  Deadline next_;  // of the turn
  // Makes fd() readable at `alarm_at_`; set by look() only, because the thread has poll()'s
  // timeout.
  Loop::Timer alarm_;
  Deadline alarm_at_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace viaduct::vipl
