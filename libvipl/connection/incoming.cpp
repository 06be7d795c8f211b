// A received connection request until it is answered: it notes the caller's aliases, and notices
// when the caller gives up. session.cpp answers it; listen_queue.cpp and peer.cpp make it.
#include "libvipl/connection/incoming.hpp"

#include "libvipl/connection/connection_table.hpp"

namespace viaduct::vipl {

bool note(Aliases& aliases, const Message& message) {
  if (message.key == 0 || message.key == message.name)
    aliases.erase(message.name);
  else
    aliases[message.name] = message.key;
  return aliases.size() <= kMaxAliases;
}

Incoming::Incoming(ConnectionTable& table, PendingRequest pending)
    : table_(table.weak_from_this()),
      request_(pending.request),
      caller_{pending.request.caller, pending.request.card},
      stream_(
          Stream::make(table.loop, std::move(pending.connection), Stream::Kind::connected, *this)) {
  stream_->send({.type = MessageType::held});
}

// A caller may only announce aliases before it has an answer. Anything else ends the attempt.
void Incoming::on_message(Stream& stream, const Message& message) {
  if (message.type == MessageType::alias && note(aliases_, message)) {
    return stream.send({.type = MessageType::known});
  }
  stream.abort();
  on_end(stream, Loss::disconnected);
}

void Incoming::on_end(Stream&, Loss) {
  stream_ = nullptr;
  const Gone gone = std::move(gone_);  // the call may destroy this object
  if (gone) gone();
}

}  // namespace viaduct::vipl
