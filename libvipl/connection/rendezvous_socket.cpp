// Routing of connection requests between the processes of one host. socket.cpp has the system
// calls; listen_queue.cpp and peer.cpp own the sockets.
#include "libvipl/connection/rendezvous_socket.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <cstdio>
#include <stdexcept>

namespace viaduct::vipl {
namespace {

// Processes that may listen for the same at a time. Each request without a listener costs that many
// sendmsg() calls.
constexpr unsigned kPlaces = 16;

// A socket is full if its process is stopped, or if hundreds of requests come at once: the kernel
// limits the datagrams in a unix socket's queue. How often, and for how long, to try again.
constexpr auto kRetry = std::chrono::milliseconds(10);
constexpr auto kBusyTimeout = std::chrono::seconds(1);
constexpr std::size_t kMaxDelayed = 1024;

// Datagrams that are no request and are skipped in one call, so that a process that sends nothing
// else does not get all of the event thread's time.
constexpr unsigned kMaxAtATime = 16;

std::string at_place(const std::string& name, unsigned place) {
  return name + ":" + std::to_string(place);
}

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string out;
  for (const std::uint8_t byte : bytes) {
    std::array<char, 3> digits;
    std::snprintf(digits.data(), digits.size(), "%02x", unsigned{byte});
    out += digits.data();
  }
  return out;
}

// FNV-1a (Fowler, Noll, Vo), 64 bits. If two names have the same hash, the request comes to a peer
// that finds it not meant for it and routes it on.
std::uint64_t hash(const std::string& text) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

std::string text(const Endpoint& endpoint) {
  return endpoint.nic.text() + ":" + hex(endpoint.discriminator.bytes());
}

}  // namespace

// Names of unix sockets have at most 107 bytes. Two endpoints as text do not fit, so those of a
// peer request are hashed.
std::string rendezvous_name(Model model, const Endpoint& callee, const Endpoint& caller) {
  if (model == Model::client_server) return "viaduct-vipl:wait:" + text(callee);
  return "viaduct-vipl:peer:" + callee.nic.text() + ":" +
         std::to_string(hash(text(callee) + "<" + text(caller)));
}

std::string listener_name(const NicAddress& nic, const Discriminator& prefix) {
  return "viaduct-vipl:listen:" + nic.text() + ":" + hex(prefix.bytes());
}

RendezvousSocket::RendezvousSocket(Loop& loop, const std::string& name, Handler handler) {
  while (!(socket_ = named_socket(at_place(name, place_))))
    if (errno != EADDRINUSE || ++place_ == kPlaces) return;  // not open
  watch_ = Loop::Watch(loop, socket_.get(), EPOLLIN,
                       [this, handler = std::move(handler)](std::uint32_t) {
                         if (auto pending = next()) handler(std::move(*pending));
                       });
}

std::optional<PendingRequest> RendezvousSocket::next() {
  for (unsigned i = 0; open() && i < kMaxAtATime; ++i) {
    std::optional<Datagram> received = receive_handed(socket_.get());
    if (!received) return std::nullopt;
    PendingRequest pending{received->request, {}, std::move(received->connection)};
    if (pending.connection && parse(pending.bytes, pending.request) == Parsed::valid)
      return pending;
  }
  return std::nullopt;
}

void RendezvousSocket::close() {
  watch_.end();
  socket_.reset();
}

RequestRouter::RequestRouter(Loop& loop, ClosingConnections& closing)
    : loop_(loop), closing_(closing), sender_(sending_socket()) {
  if (!sender_) throw std::runtime_error(std::string(kNoDescriptors));
}

bool RequestRouter::route(PendingRequest& pending, unsigned from_place, bool backwards) {
  const Request& r = pending.request;
  const bool is_peers = r.model == Model::peer_to_peer;
  if (is_peers && from_place == 0 &&
      hand_to_listener(pending, expected_) == HandOverResult::handed_over)
    return true;
  const std::string name = rendezvous_name(r.model, r.callee, r.caller);
  std::optional<unsigned> busy;
  for (unsigned i = from_place; i < kPlaces; ++i) {
    const unsigned place = backwards ? kPlaces - 1 - i : i;
    const int connection = pending.connection.get();
    switch (hand_over(sender_.get(), at_place(name, place), pending.bytes, connection)) {
      // The socket has a reference to the connection of its own now.
      case HandOverResult::handed_over: pending.connection.reset(); return true;
      case HandOverResult::busy: busy = busy.value_or(place); break;
      case HandOverResult::no_receiver: break;
    }
  }
  if (!busy && is_peers) {
    const HandOverResult result = hand_to_listener(pending, ~0u);
    if (result == HandOverResult::handed_over) return true;
    if (result == HandOverResult::busy) busy = 0;
  }
  if (!busy || delayed_.size() >= kMaxDelayed) return false;
  delayed_.push_back({std::move(pending), *busy, Clock::now() + kBusyTimeout});
  if (delayed_.size() == 1) timer_ = Loop::Timer(loop_, kRetry, [this] { try_again(); });
  return true;
}

HandOverResult RequestRouter::hand_to_listener(PendingRequest& pending, std::uint32_t lengths) {
  const Endpoint& callee = pending.request.callee;
  const auto bytes = callee.discriminator.bytes();
  for (std::size_t size = bytes.size() + 1; size-- > 0;) {
    if ((lengths >> size & 1) == 0) continue;
    const Discriminator prefix = *Discriminator::from(bytes.first(size));
    const HandOverResult result =
        hand_over(sender_.get(), at_place(listener_name(callee.nic, prefix), 0), pending.bytes,
                  pending.connection.get());
    if (result == HandOverResult::handed_over) pending.connection.reset();
    if (result != HandOverResult::no_receiver) return result;
  }
  return HandOverResult::no_receiver;
}

void RequestRouter::route_new(PendingRequest pending) {
  if (taker_ && taker_(pending)) return;
  const bool backwards = pending.request.silent % 2 == 1;
  if (!route(pending, 0, backwards)) refuse(std::move(pending));
}

void RequestRouter::route_or_refuse(PendingRequest pending, unsigned from_place) {
  if (!route(pending, from_place)) refuse(std::move(pending));
}

void RequestRouter::refuse(PendingRequest pending) {
  closing_.refuse(std::move(pending.connection), Refusal::no_match);
}

void RequestRouter::try_again() {
  std::list<Delayed> again;
  again.swap(delayed_);
  for (Delayed& d : again) {
    const Clock::time_point until = d.until;
    if (until <= Clock::now()) {
      refuse(std::move(d.pending));
      continue;
    }
    // A request that is delayed once more keeps its time limit.
    const std::size_t before = delayed_.size();
    route_or_refuse(std::move(d.pending), d.place);
    if (delayed_.size() > before) delayed_.back().until = until;
  }
}

}  // namespace viaduct::vipl
