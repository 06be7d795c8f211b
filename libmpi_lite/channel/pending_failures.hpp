// What has failed in a channel and the sink has still to be told: failures happen inside calls that
// the sink has made, and it hears of them in the next poll only.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libmpi_lite/channel/channel.hpp"

namespace viaduct::mpi {

// Owned by the channel; its thread. In the order in which they happened.
class PendingFailures {
 public:
  bool empty() const { return all_.empty(); }
  void add_send(Cookie cookie) { all_.push_back({Kind::send, cookie, -1, {}}); }
  void add_receive(Cookie cookie) { all_.push_back({Kind::receive, cookie, -1, {}}); }
  void add_peer(int rank, std::string_view why) {
    all_.push_back({Kind::peer, 0, rank, std::string(why)});
  }

  // `end_peer(rank)` ends what the channel still does for a lost peer, before the sink hears of the
  // loss; false: not yet, the peer stays in the list.
  template <class EndPeer>
  void report(ChannelSink& sink, EndPeer end_peer) {
    // Take the list first: the sink may cause more failures while it is told of these.
    for (Failure& failure : std::exchange(all_, {})) {
      switch (failure.kind) {
        case Kind::send: sink.on_long_sent(failure.cookie, false); break;
        case Kind::receive: sink.on_long_received(failure.cookie, false); break;
        case Kind::peer:
          if (end_peer(failure.rank))
            sink.on_peer_lost(failure.rank, failure.why);
          else
            all_.push_back(std::move(failure));
          break;
      }
    }
  }

 private:
  enum class Kind : std::uint8_t { send, receive, peer };  // which function of the sink
  struct Failure {
    Kind kind;
    Cookie cookie;    // send, receive
    int rank;         // peer
    std::string why;  // peer
  };
  std::vector<Failure> all_;
};

}  // namespace viaduct::mpi
