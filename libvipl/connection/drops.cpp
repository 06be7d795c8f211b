// Arithmetic and text of the statistics of dropped messages.
#include "libvipl/connection/drops.hpp"

#include <algorithm>

namespace viaduct::vipl {

void Drops::count(const Tally& mine, const Tally& others) {
  const auto dropped = [](std::uint64_t sent, std::uint64_t received) {
    // The sender may have been told of fewer sends than have arrived, because its queue pair failed
    // before the last ones completed. Then none was dropped.
    return sent - std::min(sent, received);
  };
  sent_ += mine.sent;
  sent_dropped_ += dropped(mine.sent, others.received);
  expected_ += others.sent;
  expected_dropped_ += dropped(others.sent, mine.received);
}

std::string Drops::text() const {
  const auto of = [](std::uint64_t part, std::uint64_t all) {
    return std::to_string(part) + " of " + std::to_string(all);
  };
  return "unreliable VIs: " + of(sent_dropped_, sent_) + " messages sent were dropped, " +
         of(expected_dropped_, expected_) + " sent to here; " + std::to_string(unknown_) +
         " connections ended without the other side's count";
}

}  // namespace viaduct::vipl
