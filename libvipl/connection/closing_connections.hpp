// ClosingConnections: TCP connections on which this side has sent its last message. Each stays
// until the other side has closed as well, for at most a second.
//
// The last message must not be lost: closing a socket that has unread bytes makes the kernel send a
// reset, which discards what is still on its way to the other side.
//
// Part of a ConnectionTable; all functions need the manager's lock.
#pragma once

#include <condition_variable>
#include <list>
#include <optional>

#include "libvipl/connection/drops.hpp"
#include "libvipl/connection/socket/stream.hpp"

namespace viaduct::vipl {

class ClosingConnections final : StreamOwner {
 public:
  ClosingConnections(Loop& loop, Drops& drops) : loop_(loop), drops_(drops) {}

  // Takes over the stream, whose last message has been sent, and half-closes it.
  void add(std::shared_ptr<Stream> stream);
  // The same for an unreliable connection on which this side has sent `ended` with its tally. The
  // other side's tally is awaited, and then both are counted in `drops`.
  void add(std::shared_ptr<Stream> stream, const Tally& mine);
  // Sends `refused` as the last message.
  void refuse(std::shared_ptr<Stream> stream, Refusal refusal);
  void refuse(UniqueFd connection, Refusal refusal);
  // Whether a tally is awaited.
  bool is_waiting() const;
  // Notified when is_waiting() may have changed.
  std::condition_variable& changed() { return removed_; }
  // Closes all at once.
  void clear();

 private:
  struct Closing {
    std::shared_ptr<Stream> stream;
    Loop::Timer timer;
    std::optional<Tally> mine;  // set while the other side's tally is awaited
  };
  using Iterator = std::list<Closing>::iterator;

  void on_message(Stream& stream, const Message& message) override;
  void on_end(Stream& stream, CloseReason) override { remove(stream); }
  Iterator find(const Stream& stream);
  void remove(const Stream& stream);
  void remove(Iterator connection);

  Loop& loop_;
  Drops& drops_;
  std::list<Closing> closing_;
  std::condition_variable removed_;
};

}  // namespace viaduct::vipl
