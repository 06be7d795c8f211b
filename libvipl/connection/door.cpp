#include "libvipl/connection/door.hpp"

#include <sys/epoll.h>

#include <cerrno>
#include <cstdio>
#include <stdexcept>

namespace viaduct::vipl {
namespace {

constexpr unsigned kPlaces = 16;

// A full door is that of a process that is stopped, or of one that hundreds want to see.
constexpr auto kRetry = std::chrono::milliseconds(10);
constexpr auto kPatience = std::chrono::seconds(1);
constexpr std::size_t kMostDelayed = 1024;

// Of what is no visitor: who sends nothing else must not have all our time.
constexpr unsigned kMostAtATime = 16;

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

// FNV-1a (Fowler, Noll, Vo), 64 bits. Equal hashes of different texts cost a detour, no more: who
// is behind a door looks at the request itself.
std::uint64_t hash(const std::string& text) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

std::string text(const Endpoint& endpoint) {
  return endpoint.nic.text() + ":" + hex(endpoint.discriminator.bytes());
}

}  // namespace

// A socket's name has 107 bytes, so the two endpoints of a peer request have to be shortened.
std::string door_name(Model model, const Endpoint& callee, const Endpoint& caller) {
  if (model == Model::client_server) return "viaduct-vipl:wait:" + text(callee);
  return "viaduct-vipl:peer:" + callee.nic.text() + ":" +
         std::to_string(hash(text(callee) + "<" + text(caller)));
}

Door::Door(Loop& loop, const std::string& name, Handler handler) {
  while (!(socket_ = named_socket(at_place(name, place_))))
    if (errno != EADDRINUSE || ++place_ == kPlaces) return;
  watch_ = Loop::Watch(loop, socket_.get(), EPOLLIN,
                       [this, handler = std::move(handler)](std::uint32_t) {
                         if (auto visitor = next()) handler(std::move(*visitor));
                       });
}

std::optional<Visitor> Door::next() {
  for (unsigned i = 0; open() && i < kMostAtATime; ++i) {
    std::optional<Received> received = receive_handed(socket_.get());
    if (!received) return std::nullopt;
    Visitor visitor{received->request, {}, std::move(received->connection)};
    if (visitor.connection && parse(visitor.bytes, visitor.request) == Parsed::well) return visitor;
  }
  return std::nullopt;
}

void Door::close() {
  watch_.end();
  socket_.reset();
}

Usher::Usher(Loop& loop, Farewells& farewells)
    : loop_(loop), farewells_(farewells), sender_(sending_socket()) {
  if (!sender_) throw std::runtime_error(std::string(kNoDescriptors));
}

bool Usher::take_on(Visitor& visitor, unsigned from_place, bool backwards) {
  const Request& r = visitor.request;
  const std::string name = door_name(r.model, r.callee, r.caller);
  std::optional<unsigned> busy;
  for (unsigned i = from_place; i < kPlaces; ++i) {
    const unsigned place = backwards ? kPlaces - 1 - i : i;
    const int connection = visitor.connection.get();
    switch (hand_over(sender_.get(), at_place(name, place), visitor.bytes, connection)) {
      case Handed::over: visitor.connection.reset(); return true;
      case Handed::busy: busy = busy.value_or(place); break;
      case Handed::nobody: break;
    }
  }
  if (!busy || delayed_.size() >= kMostDelayed) return false;
  delayed_.push_back({std::move(visitor), *busy, Clock::now() + kPatience});
  if (delayed_.size() == 1) timer_ = Loop::Timer(loop_, kRetry, [this] { try_again(); });
  return true;
}

void Usher::welcome(Visitor visitor) {
  const bool backwards = visitor.request.silent % 2 == 1;
  if (!take_on(visitor, 0, backwards)) refuse(std::move(visitor));
}

void Usher::take_on_or_refuse(Visitor visitor, unsigned from_place) {
  if (!take_on(visitor, from_place)) refuse(std::move(visitor));
}

void Usher::refuse(Visitor visitor) {
  farewells_.refuse(std::move(visitor.connection), Refusal::no_match);
}

void Usher::try_again() {
  std::list<Delayed> again;
  again.swap(delayed_);
  for (Delayed& d : again) {
    const Clock::time_point until = d.until;
    if (until <= Clock::now()) {
      refuse(std::move(d.visitor));
      continue;
    }
    const std::size_t before = delayed_.size();
    take_on_or_refuse(std::move(d.visitor), d.place);
    if (delayed_.size() > before) delayed_.back().until = until;
  }
}

}  // namespace viaduct::vipl
