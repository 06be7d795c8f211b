// Layer tcp: a kernel TCP connection with TCP_NODELAY, both sides spinning on non-blocking calls. A
// stream of bytes: messages are counted by their length. Streaming hands up to 32 messages to the
// kernel in one call. The end of a turn is the end of the connection.
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "tools/pingpong/layers/transport.hpp"
#include "tools/pingpong/socket.hpp"

namespace viaduct::pingpong {

namespace {

class Tcp {
 public:
  static constexpr bool kLossy = false;

  explicit Tcp(const TurnConfig& config) : client_(config.client) {
    if (client_) {
      socket_ = bound_socket(SOCK_STREAM, config.ip, 0);
      server_ = socket_address(config.peer_ip, kTcpPort);
      dial();
    } else {
      listener_ = listening_socket(config.ip, kTcpPort);
    }
    // Received bytes are counted and thrown away.
    in_.resize(256 << 10);
  }

  bool ready() const { return connected_; }
  std::string_view failure() const { return failure_; }

  void begin(const Point& point) {
    size_ = point.bytes;
    out_.assign(size_, std::byte{0x5a});
  }

  void poll() {
    if (!connected_) return client_ ? dial() : accept();
    const ssize_t n = ::recv(fd(), in_.data(), in_.size(), 0);
    if (n > 0)
      bytes_ += static_cast<std::uint64_t>(n);
    else if (n == 0)
      finished_ = true;
    else
      check_errno();
  }

  // Continues where the last call stopped, as the kernel may have taken a part of the message.
  bool try_send() {
    const ssize_t n = ::send(fd(), out_.data() + sent_, size_ - sent_, MSG_NOSIGNAL);
    if (n < 0) {
      check_errno();
      return false;
    }
    sent_ += static_cast<std::size_t>(n);
    if (sent_ < size_) return false;
    sent_ = 0;
    return true;
  }

  std::uint64_t stream(std::uint64_t max_messages) {
    iovec parts[kBurst];
    const std::uint64_t count = std::min<std::uint64_t>(max_messages, kBurst);
    for (std::uint64_t i = 0; i < count; ++i) parts[i] = {out_.data(), size_};
    // The first message may have been sent in part by the last call.
    parts[0] = {out_.data() + sent_, size_ - sent_};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t n = ::sendmsg(fd(), &message, MSG_NOSIGNAL);
    if (n < 0) {
      check_errno();
      return 0;
    }
    const std::size_t total = sent_ + static_cast<std::size_t>(n);
    sent_ = total % size_;
    return total / size_;
  }

  // Closes the sending direction. The server's recv() then returns 0.
  bool try_finish() {
    ::shutdown(fd(), SHUT_WR);
    return true;
  }

  std::uint64_t arrived() const { return bytes_ / size_; }
  std::uint64_t bytes() const { return bytes_; }
  bool finished() const { return finished_; }
  // The server closes its end when it has seen that the client has closed.
  bool drained() const { return finished_; }

 private:
  static constexpr std::uint64_t kBurst = 32;

  int fd() const { return socket_.get(); }

  // One attempt to connect; the state of the connection is in the errno of connect().
  void dial() {
    if (::connect(fd(), reinterpret_cast<const sockaddr*>(&server_), sizeof(server_)) == 0 ||
        errno == EISCONN)
      return connected();
    // Refused: the server has not opened its socket yet. A socket that failed can try again.
    if (errno != EINPROGRESS && errno != EALREADY && errno != ECONNREFUSED && errno != EINTR)
      failure_ = std::strerror(errno);
  }

  void accept() {
    const int accepted = ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted < 0) return check_errno();
    socket_ = UniqueFd(accepted);
    listener_.reset();
    connected();
  }

  void connected() {
    connected_ = true;
    set_option(fd(), IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
  }

  void check_errno() {
    if (errno != EAGAIN && errno != EINTR) failure_ = std::strerror(errno);
  }

  const bool client_;
  UniqueFd socket_, listener_;
  sockaddr_in server_{};
  bool connected_ = false, finished_ = false;  // finished_: the other side has closed its end
  std::size_t size_ = 1, sent_ = 0;            // sent_: bytes of the current message
  std::uint64_t bytes_ = 0;
  std::string failure_;
  std::vector<std::byte> in_, out_;
};

const RegisterLayer<Tcp> register_tcp{
    110,
    {"tcp", "a kernel TCP connection over the same wire, TCP_NODELAY, both sides spinning",
     Over::kernel}};

}  // namespace

}  // namespace viaduct::pingpong
