// The end of TCP connections: half-close, the wait for the other side's last message, and the count
// of dropped messages on unreliable connections. session.cpp hands connections over to this.
#include "libvipl/connection/closing_connections.hpp"

#include <algorithm>

namespace viaduct::vipl {
namespace {

// How long a closed connection waits for the other side to close.
constexpr auto kMaxClosingTime = std::chrono::seconds(1);
// Closing connections at a time. Beyond this the oldest is closed at once.
constexpr std::size_t kMaxClosing = 1024;

}  // namespace

void ClosingConnections::add(std::shared_ptr<Stream> stream) {
  stream->set_owner(*this);
  stream->finish();
  if (departing_.size() >= kMaxClosing) remove(departing_.begin());
  Stream* const which = stream.get();
  departing_.push_back({std::move(stream),
                        Loop::Timer(loop_, kMaxClosingTime, [this, which] { remove(*which); }),
                        {}});
}

void ClosingConnections::add(std::shared_ptr<Stream> stream, const Tally& mine) {
  add(std::move(stream));
  departing_.back().mine = mine;
}

// The other side's last message. When both sides disconnect at the same time, their two `ended`
// messages cross, and each is taken for the answer to the other.
void ClosingConnections::on_message(Stream& stream, const Message& message) {
  const Place it = place_of(stream);
  if (message.type != MessageType::ended || it == departing_.end() || !it->mine) return;
  drops_.count(*it->mine, message.tally);
  it->mine.reset();
  stream.abort();
  remove(it);
}

bool ClosingConnections::is_waiting() const {
  return std::ranges::any_of(departing_, [](const Departing& d) { return d.mine.has_value(); });
}

void ClosingConnections::wait(std::unique_lock<std::mutex>& lock, Clock::duration longest) {
  removed_.wait_for(lock, longest, [this] { return !is_waiting(); });
}

void ClosingConnections::refuse(std::shared_ptr<Stream> stream, Refusal refusal) {
  stream->send({.type = MessageType::refused, .code = static_cast<std::uint8_t>(refusal)});
  add(std::move(stream));
}

void ClosingConnections::refuse(Descriptor connection, Refusal refusal) {
  refuse(Stream::make(loop_, std::move(connection), Stream::Kind::connected, *this), refusal);
}

void ClosingConnections::clear() {
  while (!departing_.empty()) remove(departing_.begin());
}

ClosingConnections::Place ClosingConnections::place_of(const Stream& stream) {
  return std::ranges::find_if(departing_,
                              [&](const Departing& d) { return d.stream.get() == &stream; });
}

void ClosingConnections::remove(const Stream& stream) {
  if (const Place it = place_of(stream); it != departing_.end()) remove(it);
}

void ClosingConnections::remove(Place departing) {
  if (departing->mine) drops_.count_unknown();
  departing_.erase(departing);
  removed_.notify_all();
}

}  // namespace viaduct::vipl
