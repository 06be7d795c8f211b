// Stream: one TCP connection of the connection protocol. It turns bytes into messages and messages
// into bytes, and never blocks.
//
// A stream is owned by the object that leads the exchange (a Session, a ReceivedRequest,
// ClosingConnections), and changes its owner when the exchange passes on. All functions and
// callbacks need the manager's lock. Callbacks come from Loop::run(), that is, on the NIC's event
// thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "libvipl/connection/socket/loop.hpp"
#include "libvipl/connection/socket/unique_fd.hpp"
#include "libvipl/connection/wire.hpp"

namespace viaduct::vipl {

class Stream;

// Gets the events of a stream. The owner must outlive the stream or be replaced by set_owner().
class StreamOwner {
 public:
  // For Kind::connecting only, once: error 0, or the errno of a connect() that failed.
  virtual void on_connected(Stream&, int /*error*/) {}
  // Once for each complete message, in the order of the bytes.
  virtual void on_message(Stream&, const Message& message) = 0;
  // The last callback: the other side has closed the connection, is gone, or sent what is no
  // message. The stream is closed already. Not called after abort() or when the stream is
  // destroyed.
  virtual void on_end(Stream&, CloseReason reason) = 0;

 protected:
  ~StreamOwner() = default;
};

// The owner may drop its reference to the stream in any callback.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // Whether connect() is still under way, or the connection is established.
  enum class Kind { connecting, connected };

  // Takes over the socket `fd`, which must be non-blocking. std::bad_alloc: no memory, or the
  // kernel cannot watch another descriptor.
  static std::shared_ptr<Stream> make(Loop& loop, UniqueFd fd, Kind kind, StreamOwner& owner);
  // Closes the socket without calling on_end().
  ~Stream() = default;

  // Later callbacks go to this owner.
  void set_owner(StreamOwner& owner) { owner_ = &owner; }
  // Queues the message and sends as much as the kernel takes. On a closed stream nothing happens. A
  // connection that fails is reported later, by on_end(), never from inside send().
  void send(const Message& message) { send(encode(message).span()); }
  void send(std::span<const std::byte> bytes);
  // Half-closes the connection (FIN) behind what has been sent. Messages still arrive.
  void finish();
  // Resets the connection (RST) at once and closes the socket. Nothing stays in the kernel (no
  // TIME_WAIT).
  void abort();
  bool open() const { return static_cast<bool>(fd_); }

 private:
  Stream(UniqueFd fd, Kind kind, StreamOwner& owner)
      : fd_(std::move(fd)), connecting_(kind == Kind::connecting), owner_(&owner) {}

  void on_ready(std::uint32_t events);
  // Reads once and passes on the messages.
  void receive();
  // False: the bytes are no message.
  bool take_messages();
  void flush();
  void end(CloseReason reason);

  UniqueFd fd_;
  Loop::Watch watch_;       // ends before fd_ does
  bool connecting_;         // connect() is under way
  bool finishing_ = false;  // finish() was called: FIN follows what is in out_
  StreamOwner* owner_;
  std::array<std::byte, 1024> in_;  // received, and not yet a whole message
  std::size_t in_size_ = 0;
  std::vector<std::byte> out_;  // to be sent; the kernel had no room yet
};

}  // namespace viaduct::vipl
