// The control port: accepts TCP connections, reads one request from each and takes it to the door
// where it is awaited, in whichever process that is. All processes of a user that have the NIC open
// listen at once (SO_REUSEPORT), so there is no first one that must stay. Whoever connects may be
// anybody: bytes are checked, nobody waits for longer than a second, and only so many at a time.
#pragma once

#include <list>

#include "libvipl/connection/door.hpp"

namespace viaduct::vipl {

class Reception {
 public:
  // std::runtime_error: nobody can listen there, now or later. When somebody else does, that is
  // said on standard error and tried again.
  Reception(Loop& loop, const NicAddress& self, Usher& usher, Farewells& farewells);

  bool listening() const { return static_cast<bool>(listener_); }
  void close();

 private:
  // Has connected and not yet said what he wants.
  struct Stranger {
    Descriptor connection;
    Loop::Watch watch;
    Loop::Timer timer;
    RequestBytes bytes{};
    std::size_t size = 0;
  };
  using Strangers = std::list<Stranger>;

  bool listen();
  void listen_later();
  void accept();
  void receive(Strangers::iterator stranger);
  void understand(Strangers::iterator stranger);

  Loop& loop_;
  const NicAddress self_;
  Usher& usher_;
  Farewells& farewells_;
  Descriptor listener_;
  Loop::Watch watch_;  // ends before listener_ does
  Loop::Timer again_;
  Strangers strangers_;
};

}  // namespace viaduct::vipl
