#include "libvipl/core/event_thread.hpp"

#include <poll.h>
#include <sys/epoll.h>

#include "libvipl/core/library_thread.hpp"

namespace viaduct::vipl {

EventThread::EventThread(std::vector<Source> sources) : watches_(sources.size()) {
  for (std::size_t i = 0; i < sources.size(); ++i)
    watches_[i] =
        Loop::Watch(loop_, sources[i].fd, EPOLLIN,
                    [this, i, handle = std::move(sources[i].on_readable)](std::uint32_t events) {
                      handle();
                      // Nothing to read, and there never will be: the device is removed.
                      if ((events & EPOLLIN) == 0) watches_[i].end();
                    });
  thread_ = library_thread([this] { run(); });
}

void EventThread::stop() {
  stopping_ = true;
  loop_.wake();
  if (thread_.joinable()) thread_.join();
}

void EventThread::run() {
  while (!stopping_) {
    pollfd ready{loop_.fd(), POLLIN, 0};
    ::poll(&ready, 1, -1);
    loop_.run();
  }
}

}  // namespace viaduct::vipl
