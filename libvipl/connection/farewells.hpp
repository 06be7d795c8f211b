// Connections on which the last has been said: they stay until the other side has closed as well,
// or for a second. Closing at once would take back what is still on its way, if something unread
// has arrived meanwhile.
#pragma once

#include <list>

#include "libvipl/connection/stream.hpp"

namespace viaduct::vipl {

class Farewells final : StreamOwner {
 public:
  explicit Farewells(Loop& loop) : loop_(loop) {}

  void add(std::shared_ptr<Stream> stream);
  void refuse(std::shared_ptr<Stream> stream, Refusal refusal);
  void refuse(Descriptor connection, Refusal refusal);
  void clear() { departing_.clear(); }

 private:
  struct Departing {
    std::shared_ptr<Stream> stream;
    Loop::Timer timer;
  };

  void on_message(Stream&, const Message&) override {}
  void on_end(Stream& stream, Loss) override { remove(stream); }
  void remove(Stream& stream);

  Loop& loop_;
  std::list<Departing> departing_;
};

}  // namespace viaduct::vipl
