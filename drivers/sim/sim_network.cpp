// SimPort (frame pool, receive ring) and SimNetwork (what the wire does to a frame, and the queue
// of arrivals). Every random decision comes from one FaultInjector, in a fixed order, so that a
// seed gives the same run anywhere.

#include "drivers/sim/sim_network.hpp"

#include <cstring>

#include "drivers/link/wire_format.hpp"

namespace viaduct::sim {

// Makes frames when they are first needed; freed frames are used again.
SimFrame* SimPort::allocate() {
  SimFrame* f;
  if (!free_.empty()) {
    f = free_.back();
    free_.pop_back();
  } else {
    if (frames_.size() == config_.pool) return nullptr;
    frames_.push_back(std::make_unique<SimFrame>());
    f = frames_.back().get();
    f->owner = this;
    f->bytes.resize(link::kEthernetHeader + config_.mtu);
  }
  f->references = 1;
  f->length = 0;
  most_in_use_ = std::max(most_in_use_, frames_in_use());
  return f;
}

void SimPort::release(Frame* f) {
  if (--f->references == 0) f->owner->free_.push_back(f);
}

// Takes as many frames as SimPortConfig::transmit_burst allows; the others stay with the caller, as
// on a device whose transmit ring is full. The contents are copied to the wire, so the frame is
// free as soon as the caller drops its reference.
std::uint16_t SimPort::transmit(Frame** burst, std::uint16_t count) {
  const auto taken =
      static_cast<std::uint16_t>(std::min<std::size_t>(count, config_.transmit_burst));
  for (std::uint16_t i = 0; i < taken; ++i) {
    Frame* f = burst[i];
    net_->send(*this, std::vector(f->bytes.begin(), f->bytes.begin() + f->length));
    release(f);
  }
  return taken;
}

std::uint16_t SimPort::receive(Frame** burst, std::uint16_t count) {
  const auto n = static_cast<std::uint16_t>(std::min<std::size_t>(count, ring_.size()));
  std::copy_n(ring_.begin(), n, burst);
  ring_.erase(ring_.begin(), ring_.begin() + n);
  return n;
}

// A frame has come to this port: into the receive ring, or lost as on a NIC.
void SimPort::arrive(std::vector<std::byte> bytes) {
  if (bytes.size() > link::kEthernetHeader + config_.mtu) return;  // a NIC drops giants
  SimFrame* f = ring_.size() < config_.receive_ring ? allocate() : nullptr;
  if (!f) {
    ++overruns_;
    return;
  }
  std::copy(bytes.begin(), bytes.end(), f->bytes.begin());
  f->length = static_cast<std::uint32_t>(bytes.size());
  ring_.push_back(f);
}

SimNetwork::SimNetwork(const SimConfig& config) : config_(config), injector_(config.faults) {}

SimPort& SimNetwork::add_port(const SimPortConfig& config) {
  auto port = std::make_unique<SimPort>();
  port->net_ = this;
  port->index_ = static_cast<std::uint32_t>(ports_.size());
  port->config_ = config;
  const auto number = port->index_ + 1;
  port->address_.bytes = {2,
                          0,
                          static_cast<std::uint8_t>(number >> 24),
                          static_cast<std::uint8_t>(number >> 16),
                          static_cast<std::uint8_t>(number >> 8),
                          static_cast<std::uint8_t>(number)};
  ports_.push_back(std::move(port));
  return *ports_.back();
}

// A frame leaves `from`: finds the destination by its MAC address. Frames to an address that no
// port has vanish.
void SimNetwork::send(SimPort& from, std::vector<std::byte> bytes) {
  if (hook && !hook(from.index_, bytes)) return;
  if (bytes.size() < link::kEthernetHeader) return;
  if (config_.path_mtu != 0 && bytes.size() > link::kEthernetHeader + config_.path_mtu) return;
  link::Address to;
  std::memcpy(to.bytes.data(), bytes.data(), 6);
  for (const auto& port : ports_) {
    if (port->address_ != to) continue;
    if (partitions_.contains(pair(from, *port))) {
      ++partitioned_;
      return;
    }
    return schedule_arrival(from, port->index_, std::move(bytes));
  }
}

// Decides the fate and the time of arrival of a frame, and queues its arrival. A lost frame has
// used the sender's wire all the same.
void SimNetwork::schedule_arrival(SimPort& from, std::uint32_t to, std::vector<std::byte> bytes) {
  const base::Fate fate = injector_.next();
  base::Time leaves = std::max(now_, from.wire_free_);
  if (config_.bytes_per_ns > 0) {
    const double wire_bytes = static_cast<double>(bytes.size()) + 24;  // preamble, CRC, gap
    leaves += base::Duration{static_cast<std::int64_t>(wire_bytes / config_.bytes_per_ns)};
  }
  if (config_.jitter > base::Duration{0})
    leaves += base::Duration{static_cast<std::int64_t>(
        injector_.random()() % static_cast<std::uint64_t>(config_.jitter.count()))};
  // Jitter delays the wire, too, so later frames of this port cannot overtake.
  from.wire_free_ = leaves;
  if (fate.lose) return;
  if (fate.truncate) bytes.resize(injector_.truncated(bytes.size()));
  if (fate.corrupt) injector_.corrupt(bytes);
  base::Time at = leaves + config_.latency;
  // The duplicate is never late: with `reorder` the copy arrives before the original.
  if (fate.duplicate) events_.push({at, sent_++, to, bytes});
  if (fate.reorder)
    at += base::Duration{static_cast<std::int64_t>(
        1 + injector_.random()() % static_cast<std::uint64_t>(config_.reorder_delay.count()))};
  events_.push({at, sent_++, to, std::move(bytes)});
}

// Delivers every arrival of one instant, so that a program which polls after step() sees all of
// them.
bool SimNetwork::step(base::Time until) {
  if (events_.empty() || events_.top().at > until) {
    now_ = std::max(now_, until);
    return false;
  }
  now_ = std::max(now_, events_.top().at);
  do {
    const Event& event = events_.top();
    ports_[event.to]->arrive(event.bytes);
    events_.pop();
  } while (!events_.empty() && events_.top().at <= now_);
  return true;
}

}  // namespace viaduct::sim
