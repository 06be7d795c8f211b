// Frames and ports for the tests of Port.
#pragma once

#include <sched.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "drivers/port/eal.hpp"
#include "drivers/port/port.hpp"

namespace viaduct::link {

static_assert(PacketDevice<port::Port>);

// Our own EtherType, so that what the kernel sends on an interface is told apart; then a number,
// then the same byte to the end.
constexpr std::size_t kNumberAt = 14;

inline rte_mbuf* numbered_frame(port::Port& port, std::uint32_t number, std::size_t size = 64) {
  rte_mbuf* const frame = port.allocate();
  if (frame == nullptr) return nullptr;
  std::byte* const bytes = port::Port::bytes(frame);
  std::memset(bytes, 0xff, 6);
  std::memcpy(bytes + 6, port.address().bytes.data(), 6);
  std::memcpy(bytes + 12, "\x88\xb5", 2);
  std::memset(bytes + kNumberAt, static_cast<int>(number & 0xff), size - kNumberAt);
  std::memcpy(bytes + kNumberAt, &number, sizeof number);
  port::Port::set_length(frame, size);
  return frame;
}

inline bool ours(rte_mbuf* frame) {
  return port::Port::length(frame) >= kNumberAt + 4 &&
         std::memcmp(port::Port::bytes(frame) + 12, "\x88\xb5", 2) == 0;
}

inline std::uint32_t number_of(rte_mbuf* frame) {
  std::uint32_t number;
  std::memcpy(&number, port::Port::bytes(frame) + kNumberAt, sizeof number);
  return number;
}

inline bool intact(rte_mbuf* frame, std::size_t size) {
  if (port::Port::length(frame) < size) return false;
  for (std::size_t at = kNumberAt + 4; at < size; ++at)
    if (port::Port::bytes(frame)[at] != static_cast<std::byte>(number_of(frame) & 0xff))
      return false;
  return true;
}

inline bool send(port::Port& port, rte_mbuf* frame) {
  if (frame == nullptr) return false;
  if (port.transmit(&frame, 1) == 1) return true;
  port::Port::release(frame);
  return false;
}

// Sends numbers and waits for each to come back; how many did.
inline int ping(port::Port& port, int count, std::size_t size = 64,
                Duration patience = std::chrono::seconds(20)) {
  const Time until = port::now() + patience;
  for (int done = 0; done < count;) {
    send(port, numbered_frame(port, static_cast<std::uint32_t>(done), size));
    const Time again = port::now() + std::chrono::milliseconds(20);
    while (true) {
      rte_mbuf* burst[8];
      bool back = false;
      const auto got = port.receive(burst, 8);
      for (int i = 0; i < got; ++i) {
        back = back || (ours(burst[i]) && number_of(burst[i]) == static_cast<std::uint32_t>(done) &&
                        intact(burst[i], size));
        port::Port::release(burst[i]);
      }
      if (back) {
        ++done;
        break;
      }
      if (got == 0) sched_yield();  // both ends may have to share a processor
      if (port::now() > until) return done;
      if (port::now() > again) break;
    }
  }
  return count;
}

// One round of a process that sends back what it gets.
inline void echo_once(port::Port& port) {
  rte_mbuf* burst[32];
  const auto got = port.receive(burst, 32);
  if (got == 0) sched_yield();
  for (int i = 0; i < got; ++i)
    if (!ours(burst[i]) || port.transmit(&burst[i], 1) != 1) port::Port::release(burst[i]);
}

// One round of a process whose answers take their time: whoever waits for one sleeps by then.
inline void echo_slowly(port::Port& port) {
  rte_mbuf* burst[8];
  const auto got = port.receive(burst, 8);
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  for (int i = 0; i < got; ++i)
    if (!ours(burst[i]) || port.transmit(&burst[i], 1) != 1) port::Port::release(burst[i]);
}

// Sends numbers and sleeps until each comes back. How often nothing woke it.
inline int overslept(port::Port& port, int count, Duration most) {
  int in_vain = 0;
  for (int i = 0; i < count; ++i) {
    send(port, numbered_frame(port, static_cast<std::uint32_t>(i)));
    for (bool back = false; !back;) {
      const Time before = port::now();
      if (!port.sleep(most, -1)) return count;
      if (port::now() - before >= most) {
        ++in_vain;
        send(port, numbered_frame(port, static_cast<std::uint32_t>(i)));
      }
      rte_mbuf* burst[8];
      for (auto got = port.receive(burst, 8); got != 0; port::Port::release(burst[--got]))
        back = back || ours(burst[got - 1]);
    }
  }
  return in_vain;
}

inline std::string refusal(const port::PortConfig& config) {
  try {
    port::Port::open(config);
  } catch (const base::SetupError& error) {
    return error.what();
  }
  return "(opened)";
}

}  // namespace viaduct::link
