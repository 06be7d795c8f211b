// The control channel's two carriers: SocketControl, a stream socket, and FrameControl, raw
// Ethernet frames, which may be lost. What they share, numbering, repetition and patience, is in
// Control itself.
#include "tools/pingpong/control.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <thread>
#include <utility>

#include "tools/pingpong/error.hpp"
#include "tools/pingpong/layers/raw_frame.hpp"
#include "tools/pingpong/watch.hpp"

namespace viaduct::pingpong {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRepeat{100};  // after this an unanswered order may be lost
constexpr int kShortWhile = 20;  // ms; also how long a signal may wait to be noticed

void check_interrupted() {
  if (interrupted.load(std::memory_order_relaxed)) throw Interrupted{};
}

// Whether the socket has something to read within so many milliseconds.
bool readable(int fd, int milliseconds) {
  pollfd p{fd, POLLIN, 0};
  const int n = ::poll(&p, 1, milliseconds);
  check_interrupted();
  return n > 0;
}

}  // namespace

Answer Control::call(Order order, std::chrono::milliseconds patience) {
  order.sequence = ++sequence_;
  send(order);
  const auto deadline = Clock::now() + patience;
  auto repeat = Clock::now() + kRepeat;
  for (;;) {
    Answer answer;
    // Answers to earlier orders, late or given twice, have other numbers and are dropped.
    if (receive(answer) && answer.magic == kOrderMagic && answer.sequence == order.sequence) {
      answer.reason[sizeof(answer.reason) - 1] = '\0';
      if (answer.failed) throw Failure(std::string("the other side: ") + answer.reason);
      return answer;
    }
    const auto now = Clock::now();
    if (now > deadline)
      throw Failure(
          "the other side has not answered for " +
          std::to_string(std::chrono::duration_cast<std::chrono::seconds>(patience).count()) +
          " s; is viaduct-pingpong --listen running there, and the address right?");
    if (lossy() && now > repeat) {
      send(order);
      repeat = now + kRepeat;
    }
  }
}

bool Control::next(Order& order, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    if (receive(order) && order.magic == kOrderMagic) {
      order.layer[sizeof(order.layer) - 1] = '\0';
      return true;
    }
    if (Clock::now() > deadline) return false;
  }
}

namespace {

class SocketControl final : public Control {
 public:
  explicit SocketControl(UniqueFd socket) : socket_(std::move(socket)) {}

  void answer(const Answer& answer) override { write_all(&answer, sizeof(answer)); }
  bool lossy() const override { return false; }

 protected:
  void send(const Order& order) override { write_all(&order, sizeof(order)); }
  bool receive(Order& order) override { return read_all(&order, sizeof(order)); }
  bool receive(Answer& answer) override { return read_all(&answer, sizeof(answer)); }

 private:
  // All of it or nothing: the socket is blocking. It does not block in fact, because an order is
  // sent only when the last one has been answered, so the socket's buffer is empty.
  void write_all(const void* from, std::size_t size) {
    // The socket's buffer takes one order or answer at once: there is never a second one under way.
    const ssize_t n = ::send(socket_.get(), from, size, MSG_NOSIGNAL);
    if (n != static_cast<ssize_t>(size)) throw PeerGone("the other side has ended");
  }

  // Collects one message, which may come in parts; parts that came stay in `buffer_` when the time
  // is over.
  bool read_all(void* to, std::size_t size) {
    while (have_ < size) {
      if (!readable(socket_.get(), kShortWhile)) return false;
      const ssize_t n = ::recv(socket_.get(), buffer_ + have_, size - have_, MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        throw PeerGone("the other side has ended");
      if (n > 0) have_ += static_cast<std::size_t>(n);
    }
    std::memcpy(to, buffer_, size);
    have_ = 0;
    return true;
  }

  UniqueFd socket_;
  std::size_t have_ = 0;              // bytes in buffer_
  std::byte buffer_[sizeof(Answer)];  // the larger of the two messages
};

class FrameControl final : public Control {
 public:
  FrameControl(port::Port& port, const link::Address* server) : port_(port) {
    if (server != nullptr) peer_ = *server;
  }

  void answer(const Answer& answer) override { transmit(PacketKind::answer, answer); }
  bool lossy() const override { return true; }

 protected:
  void send(const Order& order) override { transmit(PacketKind::order, order); }
  bool receive(Order& order) override { return poll(PacketKind::order, order); }
  bool receive(Answer& answer) override { return poll(PacketKind::answer, answer); }

 private:
  template <class T>
  void transmit(PacketKind kind, const T& body) {
    port::Port::Frame* frame = port_.allocate();
    if (frame == nullptr) return;  // as good as lost; the order is repeated
    const RawHead head = raw_head(port_.address(), peer_, kind, 0);
    std::memcpy(port::Port::bytes(frame), &head, sizeof(head));
    std::memcpy(port::Port::bytes(frame) + sizeof(head), &body, sizeof(body));
    port::Port::set_length(frame, sizeof(head) + sizeof(body));
    if (port_.transmit(&frame, 1) == 0) port::Port::release(frame);
  }

  // Spins for a millisecond, then naps: a server may have to wait for its client for hours.
  template <class T>
  bool poll(PacketKind kind, T& body) {
    for (const auto start = Clock::now(); Clock::now() - start < std::chrono::milliseconds{1};)
      if (receive_one(kind, body)) return true;
    check_interrupted();
    std::this_thread::sleep_for(std::chrono::microseconds{200});
    return false;
  }

  template <class T>
  bool receive_one(PacketKind kind, T& body) {
    port::Port::Frame* frame;
    if (port_.receive(&frame, 1) == 0) return false;
    const bool ok = accept(frame, kind, body);
    port::Port::release(frame);
    return ok;
  }

  // Takes the frame if it is of the wanted kind. A server takes orders from anyone and answers
  // their sender; a client takes answers from its server only.
  template <class T>
  bool accept(port::Port::Frame* frame, PacketKind kind, T& body) {
    RawHead head;
    if (port::Port::length(frame) < sizeof(head) + sizeof(body)) return false;
    std::memcpy(&head, port::Port::bytes(frame), sizeof(head));
    if (head.ether_type != kRawEtherType || head.packet.kind != kind) return false;
    link::Address from;
    std::memcpy(from.bytes.data(), head.from, sizeof(head.from));
    if (kind == PacketKind::answer && from != peer_) return false;
    peer_ = from;
    std::memcpy(&body, port::Port::bytes(frame) + sizeof(head), sizeof(body));
    return true;
  }

  port::Port& port_;
  link::Address peer_;  // client: the server; server: the sender of the last order
};

}  // namespace

std::unique_ptr<Control> socket_control(UniqueFd socket) {
  return std::make_unique<SocketControl>(std::move(socket));
}

std::unique_ptr<Control> frame_control(port::Port& port, const link::Address* server) {
  return std::make_unique<FrameControl>(port, server);
}

UniqueFd wait_for_client(const UniqueFd& listener) {
  for (;;) {
    if (!readable(listener.get(), 200)) continue;
    UniqueFd out(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (out) return out;
  }
}

UniqueFd connect_to_server(const std::string& ip) {
  const sockaddr_in address = socket_address(ip, kControlPort);
  const auto deadline = Clock::now() + std::chrono::seconds{10};
  for (bool told = false;;) {
    UniqueFd out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!out) throw system_failure("cannot open a socket");
    // connect() obeys SO_SNDTIMEO on Linux: 2 s for a host that does not answer at all.
    timeval limit{2, 0};
    ::setsockopt(out.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (::connect(out.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
      return out;
    check_interrupted();
    if (!std::exchange(told, true))
      std::cerr << "viaduct-pingpong: nobody listens at " << ip << " yet (" << std::strerror(errno)
                << "); trying for 10 s" << std::endl;
    if (Clock::now() > deadline)
      throw system_failure("cannot connect to " + ip + " port " + std::to_string(kControlPort),
                           "start viaduct-pingpong --listen --ip " + ip + " there first");
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
  }
}

}  // namespace viaduct::pingpong
