// A request that has found whoever waits for it and is not answered yet.
#pragma once

#include <map>
#include <memory>

#include "libvipl/connection/manager.hpp"
#include "libvipl/connection/rendezvous_socket.hpp"
#include "libvipl/connection/stream.hpp"

namespace viaduct::vipl {

// What memory handles (the first) of one side stand for, where they do not stand for themselves.
using Aliases = std::map<std::uint32_t, std::uint32_t>;
// Notes one that arrived. False: these are too many.
bool note(Aliases& aliases, const Message& message);

class Incoming final : public StreamOwner {
 public:
  // Told when the caller has gone.
  using Gone = std::function<void()>;

  Incoming(ConnectionTable& table, PendingRequest pending);

  const Request& request() const { return request_; }
  const Caller& caller() const { return caller_; }
  // nullptr: its NIC is closed.
  std::shared_ptr<ConnectionTable> table() const { return table_.lock(); }
  // The caller still waits for an answer.
  bool waiting() const { return stream_ != nullptr; }
  void set_gone(Gone gone) { gone_ = std::move(gone); }
  const Aliases& aliases() const { return aliases_; }
  // For whoever answers; afterwards nobody waits here any more.
  std::shared_ptr<Stream> take_stream() { return std::exchange(stream_, nullptr); }

 private:
  void on_message(Stream& stream, const Message& message) override;
  void on_end(Stream& stream, Loss loss) override;

  const std::weak_ptr<ConnectionTable> table_;
  const Request request_;
  const Caller caller_;
  std::shared_ptr<Stream> stream_;  // nullptr: answered, or the caller has gone
  Aliases aliases_;
  Gone gone_;
};

}  // namespace viaduct::vipl
