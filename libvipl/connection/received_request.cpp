// A received connection request until it is answered: it notes the caller's aliases, and notices
// when the caller gives up. session.cpp answers it; listen_queue.cpp and peer.cpp make it.
#include "libvipl/connection/received_request.hpp"

#include "libvipl/connection/connection_table.hpp"

namespace viaduct::vipl {

bool apply_alias(Aliases& aliases, const Message& message) {
  if (message.key == 0 || message.key == message.name)
    aliases.erase(message.name);
  else
    aliases[message.name] = message.key;
  return aliases.size() <= kMaxAliases;
}

ReceivedRequest::ReceivedRequest(ConnectionTable& table, PendingRequest pending)
    : table_(table.weak_from_this()),
      request_(pending.request),
      caller_{pending.request.caller, pending.request.card},
      stream_(
          Stream::make(table.loop, std::move(pending.connection), Stream::Kind::connected, *this)) {
  stream_->send({.type = MessageType::held});
}

// A caller may only announce aliases before it has an answer. Anything else ends the attempt.
void ReceivedRequest::on_message(Stream& stream, const Message& message) {
  if (message.type == MessageType::alias && apply_alias(aliases_, message)) {
    return stream.send({.type = MessageType::known});
  }
  stream.abort();
  on_end(stream, CloseReason::disconnected);
}

void ReceivedRequest::on_end(Stream&, CloseReason) {
  stream_ = nullptr;
  const CallerClosedHandler handler =
      std::move(caller_closed_handler_);  // the call may destroy this object
  if (handler) handler();
}

}  // namespace viaduct::vipl
