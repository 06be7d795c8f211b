// One TCP connection of the protocol: messages in, messages out, never blocking.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "libvipl/connection/descriptor.hpp"
#include "libvipl/connection/loop.hpp"
#include "libvipl/connection/wire.hpp"

namespace viaduct::vipl {

class Stream;

class StreamOwner {
 public:
  // Of a connecting stream: it is connected, or cannot be (an errno).
  virtual void on_connected(Stream&, int /*error*/) {}
  virtual void on_message(Stream&, const Message& message) = 0;
  // No more messages: the other side has closed, is gone, or sends what makes no sense. The stream
  // is closed.
  virtual void on_end(Stream&, Loss loss) = 0;

 protected:
  ~StreamOwner() = default;
};

// Its owner may let go of it in any of the callbacks.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  enum class Kind { connecting, connected };

  static std::shared_ptr<Stream> make(Loop& loop, Descriptor fd, Kind kind, StreamOwner& owner);
  // Silent: on_end is not called.
  ~Stream() = default;

  void set_owner(StreamOwner& owner) { owner_ = &owner; }
  void send(const Message& message) { send(encode(message).span()); }
  void send(std::span<const std::byte> bytes);
  // No message follows; what is on its way still arrives.
  void finish();
  // At once, without a trace in the kernel.
  void abort();
  bool open() const { return static_cast<bool>(fd_); }

 private:
  Stream(Descriptor fd, Kind kind, StreamOwner& owner)
      : fd_(std::move(fd)), connecting_(kind == Kind::connecting), owner_(&owner) {}

  void on_ready(std::uint32_t events);
  void receive();
  bool take_messages();
  void flush();
  void end(Loss loss);

  Descriptor fd_;
  Loop::Watch watch_;  // ends before fd_ does
  bool connecting_;
  bool finishing_ = false;
  StreamOwner* owner_;
  std::array<std::byte, 1024> in_;
  std::size_t in_size_ = 0;
  std::vector<std::byte> out_;  // what the kernel had no room for
};

}  // namespace viaduct::vipl
