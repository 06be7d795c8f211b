// Connections on which the last has been said: they stay until the other side has closed as well,
// or for a second. Closing at once would take back what is still on its way, if something unread
// has arrived meanwhile.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>

#include "libvipl/connection/drops.hpp"
#include "libvipl/connection/stream.hpp"

namespace viaduct::vipl {

class ClosingConnections final : StreamOwner {
 public:
  ClosingConnections(Loop& loop, Drops& drops) : loop_(loop), drops_(drops) {}

  void add(std::shared_ptr<Stream> stream);
  // Of an unreliable connection, on which we have said that this is what we had: the other side
  // says what it had.
  void add(std::shared_ptr<Stream> stream, const Tally& mine);
  void refuse(std::shared_ptr<Stream> stream, Refusal refusal);
  void refuse(Descriptor connection, Refusal refusal);
  // Until nobody is to say that any more, with the manager's lock.
  void wait(std::unique_lock<std::mutex>& lock, Clock::duration longest);
  void clear();

 private:
  struct Departing {
    std::shared_ptr<Stream> stream;
    Loop::Timer timer;
    std::optional<Tally> mine;  // the other's is awaited
  };
  using Place = std::list<Departing>::iterator;

  void on_message(Stream& stream, const Message& message) override;
  void on_end(Stream& stream, Loss) override { remove(stream); }
  Place place_of(const Stream& stream);
  bool is_waiting() const;
  void remove(const Stream& stream);
  void remove(Place departing);

  Loop& loop_;
  Drops& drops_;
  std::list<Departing> departing_;
  std::condition_variable removed_;
};

}  // namespace viaduct::vipl
