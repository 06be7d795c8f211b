// Engine: construction, what this task registers (FIFOs, signals, withdrawal), and the delivery of
// signals. The rest of the template is in impl/; the two instances, for DPDK ports and for
// simulated ports, are made here.
#include "drivers/mbcf/engine.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "drivers/mbcf/impl/completions.hpp"
#include "drivers/mbcf/impl/fifo_credit.hpp"
#include "drivers/mbcf/impl/initiator.hpp"
#include "drivers/mbcf/impl/segmentation.hpp"
#include "drivers/mbcf/impl/target.hpp"
#include "drivers/port/port.hpp"
#include "drivers/sim/sim_network.hpp"

namespace viaduct::mbcf {

const char* text(Status status) {
  switch (status) {
    case Status::ok: return "done";
    case Status::no_room: return "no room now";
    case Status::peer_down: return "the peer has ended";
    case Status::no_key: return "no such key";
    case Status::withdrawn: return "withdrawn by its owner";
    case Status::no_right: return "the segment does not allow it";
    case Status::out_of_range: return "outside the segment";
    case Status::misaligned: return "a word that is not aligned";
    case Status::wrong_kind: return "the key names something else";
    case Status::no_credit: return "no credit for the entry";
    case Status::too_long: return "too long";
  }
  return "unknown";
}

namespace {

// Refusals of short silent requests that are kept until the user takes them. A power of two.
constexpr std::size_t kFailures = 256;

// Throws SetupError for impossible table sizes, before any table is made; KeyTable checks its own.
const EngineConfig& checked(const EngineConfig& config) {
  const auto demand = [](const char* name, std::size_t value, std::size_t max) {
    if (value < 1 || value > max)
      throw base::SetupError("MBCF cannot work with " + std::string(name) + " = " +
                             std::to_string(value) + ": choose 1 to " + std::to_string(max));
  };
  demand("max_requests", config.max_requests, kMaxRequests);
  demand("max_writers", config.max_writers, kMaxWriters);
  return config;
}

}  // namespace

template <link::PacketDevice D>
Engine<D>::Engine(Link& link, const EngineConfig& config)
    : link_(link),
      silent_(link.config().max_peers),
      keys_(checked(config).max_keys),
      requests_(config.max_requests),
      failures_(kFailures),
      peers_(link.config().max_peers),
      max_writers_(config.max_writers),
      events_(link.config().max_peers) {
  // Room for all there can be: the data path must not allocate.
  active_.reserve(link.config().max_peers);
  pending_updates_.reserve(config.max_keys);
  raised_.reserve(config.max_keys);
  link_.attach(link::Protocol::mbcf, this);
}

template <link::PacketDevice D>
Engine<D>::~Engine() {
  link_.attach(link::Protocol::mbcf, nullptr);
}

template <link::PacketDevice D>
Fifo* Engine<D>::create_fifo(std::size_t bytes) {
  if (keys_.full()) return nullptr;
  auto fifo = std::make_unique<Fifo>(bytes, link_.config().max_peers, pending_updates_);
  Fifo* made = fifo.get();
  fifos_.reserve(fifos_.size() + 1);  // nothing may throw once the FIFO has its key
  keys_.add(std::move(fifo));
  fifos_.push_back(made);
  return made;
}

template <link::PacketDevice D>
Key Engine<D>::create_signal(SignalHandler handler) {
  auto signal = std::make_unique<Signal>();
  signal->handler = std::move(handler);
  return keys_.add(std::move(signal));
}

template <link::PacketDevice D>
Key Engine<D>::create_signal_fd(int& fd) {
  if (keys_.full()) return {};
  auto signal = std::make_unique<Signal>();
  signal->fd = base::UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (const int error = errno; !signal->fd)
    throw base::SetupError(std::string("no file descriptor for a signal: ") + std::strerror(error) +
                               "; raise the limit (ulimit -n)",
                           error);
  fd = signal->fd.get();
  return keys_.add(std::move(signal));
}

template <link::PacketDevice D>
bool Engine<D>::withdraw(Key key) {
  if (keys_.remove_segment(key)) [[likely]]
    return true;
  std::unique_ptr<Fifo> fifo;
  std::unique_ptr<Signal> signal;
  Fifo* named = nullptr;
  // Allocates before remove(): lack of memory must not make the FIFO's writers wait for ever.
  if (keys_.fifo(key, named) == Status::ok)
    orphaned_writers_.reserve(orphaned_writers_.size() + named->max_waiting());
  if (!keys_.remove(key, fifo, signal)) return false;
  if (fifo) {
    std::erase(fifos_, fifo.get());
    std::erase(pending_updates_, fifo.get());
    fifo->each_waiting([&](link::PeerId peer, std::uint32_t name) {
      orphaned_writers_.push_back({peer, name});
    });
  }
  // poll() fills and empties raised_, so the caller may be this signal's own handler, and raised_
  // may point to the signal: deliver_signals() destroys it when all handlers have run.
  if (signal && !raised_.empty()) {
    signal->withdrawn = true;
    retired_.push_back(std::move(signal));
  }
  return true;
}

// Counts a signal that has arrived. Its handler runs at the end of the poll and not here, in the
// middle of a message: a handler may withdraw the keys that the message is using.
template <link::PacketDevice D>
void Engine<D>::raise(Signal& signal) {
  if (signal.pending++ == 0) raised_.push_back(&signal);
  counters_.add(Counter::signals_received);
}

// Runs the handlers, and adds to the eventfds, of all signals that were raised in this poll. A
// handler may withdraw signals, but nothing is raised meanwhile, as only Link::poll delivers.
template <link::PacketDevice D>
void Engine<D>::deliver_signals() {
  for (Signal* signal : raised_) {
    if (signal->withdrawn) continue;
    const std::uint64_t count = std::exchange(signal->pending, 0);
    if (signal->handler) {
      signal->handler(count);
    } else if (signal->fd) {
      // Cannot block nor fail: a counter of 64 bits does not fill up.
      [[maybe_unused]] const auto written = ::write(signal->fd.get(), &count, sizeof count);
    }
  }
  raised_.clear();
  retired_.clear();
}

template class Engine<port::Port>;
template class Engine<sim::SimPort>;

}  // namespace viaduct::mbcf
