// Layer udp: kernel UDP sockets, both sides spinning on non-blocking calls. Unreliable. A message
// larger than the MTU is sent as several datagrams that fit, so that the kernel does not fragment.
// Streaming uses sendmmsg() and recvmmsg(), 32 datagrams a call.
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "tools/pingpong/layers/datagram.hpp"
#include "tools/pingpong/layers/transport.hpp"
#include "tools/pingpong/socket.hpp"

namespace viaduct::pingpong {

namespace {

// 20 bytes of IPv4 header without options, 8 of UDP.
constexpr std::size_t kIpAndUdpHeaders = 28;
constexpr int kSocketBuffer = 4 << 20;

class Udp : public UnreliableMessages {
 public:
  explicit Udp(const TurnConfig& config)
      : UnreliableMessages(config.client), socket_(bound_socket(SOCK_DGRAM, config.ip, kUdpPort)) {
    const sockaddr_in peer = socket_address(config.peer_ip, kUdpPort);
    if (::connect(fd(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)) != 0)
      throw system_failure("no route to " + config.peer_ip);
    // The kernel caps these at net.core.{r,w}mem_max silently. Larger buffers lose fewer datagrams.
    set_option(fd(), SOL_SOCKET, SO_RCVBUF, kSocketBuffer, "SO_RCVBUF");
    set_option(fd(), SOL_SOCKET, SO_SNDBUF, kSocketBuffer, "SO_SNDBUF");
    int mtu = 0;
    socklen_t length = sizeof(mtu);
    if (::getsockopt(fd(), IPPROTO_IP, IP_MTU, &mtu, &length) != 0)
      throw system_failure("cannot learn the MTU to " + config.peer_ip);
    max_payload_ =
        std::min<std::size_t>(static_cast<std::size_t>(mtu) - kIpAndUdpHeaders, kMaxPayload);
    head_ = {PacketKind::data, config.turn, 0, 0};
    buffers_.resize(2 * kBurst * kMaxPayload);
  }

  std::string_view failure() const { return failure_; }

  void begin(const Point& point) {
    begin_messages(point.bytes, max_payload_);
    streaming_ = point.measure == Measure::bandwidth;
    for (std::size_t i = 0; i < kBurst; ++i) {
      const auto set = [&](mmsghdr& message, iovec& vec, std::byte* buffer, std::size_t size) {
        vec = {buffer, size};
        message = {};
        message.msg_hdr.msg_iov = &vec;
        message.msg_hdr.msg_iovlen = 1;
      };
      set(out_[i], out_vec_[i], out_buffer(i), 0);
      set(in_[i], in_vec_[i], in_buffer(i), kMaxPayload);
    }
  }

  void poll() {
    if (!streaming_) {
      const ssize_t n = ::recv(fd(), in_buffer(0), kMaxPayload, 0);
      if (n >= 0)
        take_datagram(in_buffer(0), static_cast<std::size_t>(n));
      else
        check_errno();
      return;
    }
    const int n = ::recvmmsg(fd(), in_, kBurst, 0, nullptr);
    if (n < 0) return check_errno();
    for (int i = 0; i < n; ++i)
      take_datagram(in_buffer(static_cast<std::size_t>(i)), in_[i].msg_len);
  }

  bool try_send() {
    number_message();
    while (next_ < split_.packets) {
      write_head(out_buffer(0), PacketKind::data, split_.size(next_));
      if (::send(fd(), out_buffer(0), datagram_bytes(split_.size(next_)), MSG_NOSIGNAL) < 0) {
        check_errno();
        return false;
      }
      ++next_;
    }
    next_ = 0;
    return true;
  }

  // Builds up to 32 datagrams and hands them over. The kernel may take fewer: `next_` advances only
  // by those that it took, and the others are built again by the next call.
  std::uint64_t stream(std::uint64_t max_messages) {
    std::uint64_t begun = 0, completed = 0;
    std::uint32_t count = 0, packet = next_;
    for (; count < kBurst && begun < max_messages; ++count) {
      const std::uint16_t size = split_.size(packet);
      write_head(out_buffer(count), PacketKind::data, size);
      out_vec_[count].iov_len = datagram_bytes(size);
      if (++packet == split_.packets) {
        packet = 0;
        ++begun;
      }
    }
    const int sent = ::sendmmsg(fd(), out_, count, MSG_NOSIGNAL);
    if (sent < 0) check_errno();
    for (int i = 0; i < sent; ++i)
      if (advance()) ++completed;
    return completed;
  }

  bool try_finish() {
    write_head(out_buffer(0), PacketKind::finish, 0);
    if (::send(fd(), out_buffer(0), sizeof(PacketHead), MSG_NOSIGNAL) >= 0) return true;
    check_errno();
    return false;
  }

 private:
  static constexpr std::size_t kBurst = 32;
  static constexpr std::size_t kMaxPayload = 9216;

  int fd() const { return socket_.get(); }
  std::byte* out_buffer(std::size_t i) { return buffers_.data() + i * kMaxPayload; }
  std::byte* in_buffer(std::size_t i) { return out_buffer(kBurst + i); }

  // The header lies within the payload, so that a message of N bytes is a datagram of N bytes.
  // Messages that are smaller than the header are sent as long as the header.
  static std::size_t datagram_bytes(std::size_t payload) {
    return std::max(payload, sizeof(PacketHead));
  }
  void write_head(std::byte* to, PacketKind kind, std::uint16_t length) {
    head_.kind = kind;
    head_.length = length;
    head_.message = message_;
    std::memcpy(to, &head_, sizeof(head_));
  }

  void take_datagram(const std::byte* from, std::size_t size) {
    PacketHead head;
    if (size < sizeof(head)) return;
    std::memcpy(&head, from, sizeof(head));
    if (head.turn == head_.turn) take(head, size);
  }

  // No error: nothing is there, there is no room, or the other side's socket is not open yet or no
  // longer.
  void check_errno() {
    if (errno != EAGAIN && errno != ENOBUFS && errno != ECONNREFUSED && errno != EINTR)
      failure_ = std::strerror(errno);
  }

  UniqueFd socket_;
  PacketHead head_{};
  std::size_t max_payload_ = 0;  // payload of a datagram
  bool streaming_ = false;
  std::string failure_;
  std::vector<std::byte> buffers_;
  mmsghdr out_[kBurst], in_[kBurst];
  iovec out_vec_[kBurst], in_vec_[kBurst];
};

const RegisterLayer<Udp> register_udp{
    100,
    {"udp", "kernel UDP sockets over the same wire, non-blocking, both sides spinning",
     Over::kernel}};

}  // namespace

}  // namespace viaduct::pingpong
