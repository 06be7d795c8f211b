// The loop of the NIC's event thread. Nic::start() says what it watches.
#include "libvipl/core/event_thread.hpp"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "libvipl/core/library_thread.hpp"

namespace viaduct::vipl {
namespace {

// For poll(): -1 without a deadline; otherwise rounded up, because waking too early would spin.
int milliseconds_until(Deadline deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

}  // namespace

EventThread::EventThread(std::vector<Source> sources, Turn turn, bool threaded)
    : turn_(std::move(turn)), watches_(sources.size()) {
  for (std::size_t i = 0; i < sources.size(); ++i)
    watches_[i] =
        Loop::Watch(loop_, sources[i].fd, EPOLLIN,
                    [this, i, handle = std::move(sources[i].on_readable)](std::uint32_t events) {
                      handle();
                      // Only an error: the descriptor will never be readable (the device has been
                      // removed). Watching it would keep the thread busy.
                      if ((events & EPOLLIN) == 0) watches_[i].end();
                    });
  if (threaded) thread_ = library_thread([this] { run(); });
}

void EventThread::stop() {
  stopping_ = true;
  loop_.wake();
  if (thread_.joinable()) thread_.join();
}

void EventThread::run() {
  while (!stopping_) {
    pollfd ready{loop_.fd(), POLLIN, 0};
    ::poll(&ready, 1, milliseconds_until(next_));
    take_turn();
  }
}

bool EventThread::take_turn() {
  const bool any = loop_.run();
  if (turn_) next_ = turn_();
  return any;
}

bool EventThread::look() {
  const bool any = take_turn();
  if (next_ == alarm_at_) return any;
  alarm_ = next_ ? Loop::Timer(loop_, *next_, [] {}) : Loop::Timer();
  alarm_at_ = next_;
  return any;
}

}  // namespace viaduct::vipl
