// A NIC that the test drives, and what it is told of connections.
#pragma once

#include <algorithm>

#include "tests/vipl/connection/bed.hpp"

namespace viaduct::vipl::test {

class OwnNic {
 public:
  explicit OwnNic(const NicAddress& address, bool own_port = false) : manager(address) {
    manager.drive_by([this](Deadline) { manager.progress(); }, own_port);
  }
  VIP_RETURN listen(const std::string& prefix, const std::string& key = "") {
    return manager.peer_listen(disc(prefix),
                               {reinterpret_cast<const std::uint8_t*>(key.data()), key.size()});
  }
  // The events of a while. The outcomes of VIs have no handle here.
  std::vector<ConnectEvent> events;
  void turn() {
    manager.progress();
    for (ConnectEvent event; manager.next_event(event) == VIP_SUCCESS;) events.push_back(event);
  }
  bool turn_until(const std::function<bool()>& condition) {
    const auto end = Clock::now() + kLong;
    while (!condition() && Clock::now() < end) turn();
    return condition();
  }
  std::size_t asked() const {
    return static_cast<std::size_t>(
        std::count_if(events.begin(), events.end(), [](auto& e) { return !e.is_outcome; }));
  }

  Manager manager;
};

}  // namespace viaduct::vipl::test
