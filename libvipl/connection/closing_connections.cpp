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
  if (closing_.size() >= kMaxClosing) remove(closing_.begin());
  Stream* const which = stream.get();
  closing_.push_back({std::move(stream),
                      Loop::Timer(loop_, kMaxClosingTime, [this, which] { remove(*which); }),
                      {}});
}

void ClosingConnections::add(std::shared_ptr<Stream> stream, const Tally& mine) {
  add(std::move(stream));
  closing_.back().mine = mine;
}

// The other side's last message. When both sides disconnect at the same time, their two `ended`
// messages cross, and each is taken for the answer to the other.
void ClosingConnections::on_message(Stream& stream, const Message& message) {
  const Iterator it = find(stream);
  if (message.type != MessageType::ended || it == closing_.end() || !it->mine) return;
  drops_.count(*it->mine, message.tally);
  it->mine.reset();
  stream.abort();
  remove(it);
}

bool ClosingConnections::is_waiting() const {
  return std::ranges::any_of(closing_, [](const Closing& d) { return d.mine.has_value(); });
}

void ClosingConnections::refuse(std::shared_ptr<Stream> stream, Refusal refusal) {
  stream->send({.type = MessageType::refused, .code = static_cast<std::uint8_t>(refusal)});
  add(std::move(stream));
}

void ClosingConnections::refuse(UniqueFd connection, Refusal refusal) {
  refuse(Stream::make(loop_, std::move(connection), Stream::Kind::connected, *this), refusal);
}

void ClosingConnections::clear() {
  while (!closing_.empty()) remove(closing_.begin());
}

ClosingConnections::Iterator ClosingConnections::find(const Stream& stream) {
  return std::ranges::find_if(closing_,
                              [&](const Closing& d) { return d.stream.get() == &stream; });
}

void ClosingConnections::remove(const Stream& stream) {
  if (const Iterator it = find(stream); it != closing_.end()) remove(it);
}

void ClosingConnections::remove(Iterator connection) {
  if (connection->mine) drops_.count_unknown();
  closing_.erase(connection);
  removed_.notify_all();
}

}  // namespace viaduct::vipl
