// ReceivedRequest: a connection request that has reached its listener (VipConnectWait) or its peer
// and is not yet answered. A VIP_CONN_HANDLE stands for one of these. The constructor tells the
// caller `held`, so that it goes on waiting.
//
// Shared by the program's handle, the ConnectionTable (`unanswered`), and a Session (`crossing_`).
// Needs the manager's lock, except for what never changes: request(), caller(), table().
#pragma once

#include <map>
#include <memory>

#include "libvipl/connection/manager.hpp"
#include "libvipl/connection/rendezvous_socket.hpp"
#include "libvipl/connection/socket/stream.hpp"

namespace viaduct::vipl {

// The memory handles (first) of one side that stand for another remote key (second). A handle that
// is not in it is itself the remote key.
using Aliases = std::map<std::uint32_t, std::uint32_t>;
// Notes an `alias` message that arrived. False: these are more aliases than the protocol allows.
bool apply_alias(Aliases& aliases, const Message& message);

class ReceivedRequest final : public StreamOwner {
 public:
  // Called when the caller closes the connection before it has an answer.
  using CallerClosedHandler = std::function<void()>;

  // Takes over the TCP connection of `pending` and sends `held` on it.
  ReceivedRequest(ConnectionTable& table, PendingRequest pending);

  const Request& request() const { return request_; }
  const Caller& caller() const { return caller_; }
  // nullptr: the NIC is closed, and the request can no longer be answered.
  std::shared_ptr<ConnectionTable> table() const { return table_.lock(); }
  // Whether the caller still waits for an answer.
  bool waiting() const { return stream_ != nullptr; }
  void on_caller_closed(CallerClosedHandler handler) {
    caller_closed_handler_ = std::move(handler);
  }
  // The aliases that the caller has announced so far.
  const Aliases& aliases() const { return aliases_; }
  // The connection, for the code that answers. Afterwards waiting() is false.
  std::shared_ptr<Stream> take_stream() { return std::exchange(stream_, nullptr); }

 private:
  void on_message(Stream& stream, const Message& message) override;
  void on_end(Stream& stream, CloseReason reason) override;

  const std::weak_ptr<ConnectionTable> table_;
  const Request request_;
  const Caller caller_;
  std::shared_ptr<Stream> stream_;  // nullptr: answered, or the caller has gone
  Aliases aliases_;
  CallerClosedHandler caller_closed_handler_;
};

}  // namespace viaduct::vipl
