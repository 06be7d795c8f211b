// How a request finds whoever waits for it among all processes of the host that share a NIC
// address. What is waited for is the name of an abstract unix datagram socket, and whichever
// process accepted the TCP connection sends it there. Nothing ever has to be cleaned up: names, and
// connections on their way, go with the processes that had them.
//
// Several may wait for the same: the name ends in a number, the door's place, and requests try the
// places in order.
#pragma once

#include <functional>
#include <list>

#include "libvipl/connection/farewells.hpp"
#include "libvipl/connection/loop.hpp"
#include "libvipl/connection/socket.hpp"
#include "libvipl/connection/wire.hpp"

namespace viaduct::vipl {

// A request and the connection it came on.
struct Visitor {
  RequestBytes bytes{};
  Request request;  // the bytes, taken apart
  Descriptor connection;
};

// The name without the place: of a program that waits, or of a peer that has asked for this caller
// itself.
std::string door_name(Model model, const Endpoint& callee, const Endpoint& caller);

class Door {
 public:
  using Handler = std::function<void(Visitor visitor)>;

  // Not open if all places are taken or there are no descriptors left.
  Door(Loop& loop, const std::string& name, Handler handler);
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  bool open() const { return static_cast<bool>(socket_); }
  unsigned place() const { return place_; }
  void close();
  // Someone who has come and for whom the handler was not called yet; nullopt: nobody.
  std::optional<Visitor> next();

 private:
  Descriptor socket_;
  Loop::Watch watch_;  // ends before socket_ does
  unsigned place_ = 0;
};

// Takes requests to doors, and sends away those that nobody waits for.
class Usher {
 public:
  Usher(Loop& loop, Farewells& farewells);  // std::runtime_error: no descriptors left

  // A visitor who comes from outside. The door of a stopped process takes him and does nothing: so
  // who has had no answer begins at the other end every second time.
  void welcome(Visitor visitor);
  // From this place on. False: there is no door, and the visitor is still here.
  bool take_on(Visitor& visitor, unsigned from_place, bool backwards = false);
  void take_on_or_refuse(Visitor visitor, unsigned from_place);
  void clear() { delayed_.clear(); }

 private:
  struct Delayed {
    Visitor visitor;
    unsigned place;
    Clock::time_point until;
  };

  void refuse(Visitor visitor);
  void try_again();

  Loop& loop_;
  Farewells& farewells_;
  Descriptor sender_;
  std::list<Delayed> delayed_;  // the door's socket was full
  Loop::Timer timer_;
};

}  // namespace viaduct::vipl
