// The channel from a process to itself: control messages are queued, long transfers are one memcpy.
// Both reach the sink in poll() only, as with any other channel, so that transfer/ need not care.

#include <cstring>
#include <deque>
#include <vector>

#include "libmpi_lite/channel/open.hpp"

namespace viaduct::mpi {
namespace {

class SelfChannel final : public Channel {
 public:
  SelfChannel(ChannelSink& sink, int rank) : sink_(sink), rank_(rank) {}

  const char* name() const override { return "self"; }
  Limits limits() const override { return {.control = 64 << 10, .eager = 4096}; }

  bool send_control(int, Bytes head, Bytes body) override {
    std::vector<std::byte>& message = messages_.emplace_back(head.size() + body.size());
    std::memcpy(message.data(), head.data(), head.size());
    if (!body.empty()) std::memcpy(message.data() + head.size(), body.data(), body.size());
    return true;
  }

  void offer(int, Bytes, RemoteKey&) override {}
  // The remote key is the address of the buffer, and the receiver's request id.
  bool open_receive(int, MutableBytes into, const RemoteKey*, Cookie cookie,
                    RemoteKey& remote_key) override {
    const Buffer buffer{into.data(), cookie};
    std::memcpy(remote_key.bytes.data(), &buffer, sizeof buffer);
    return true;
  }
  // Nothing is kept for an open receive, so there is nothing to take back.
  void close_receive(int, const RemoteKey&) override {}
  bool start_send(int, Bytes data, const RemoteKey& remote_key, Cookie cookie) override {
    Buffer buffer;
    std::memcpy(&buffer, remote_key.bytes.data(), sizeof buffer);
    std::memcpy(buffer.data, data.data(), data.size());
    moved_.push_back({cookie, buffer.cookie});
    return true;
  }

  bool poll() override { return busy() && deliver(); }
  bool busy() const override { return !messages_.empty() || !moved_.empty(); }
  // A process that sleeps sends itself nothing, so no bell is needed.
  bool arm_bell(int&) override { return !busy(); }
  bool sleeps_lightly() const override { return true; }
  std::string describe(int) const override { return "self, memory"; }

 private:
  // Out of line, so that poll(), which every waiting process calls all the time, stays short.
  [[gnu::noinline]] bool deliver() {
    // Only what is there now. What the sink sends in reply waits for the next poll, so that a reply
    // to a reply cannot keep this poll going for ever.
    const std::size_t messages = messages_.size(), moved = moved_.size();
    for (std::size_t i = 0; i < messages; ++i) {
      const std::vector<std::byte> message = std::move(messages_.front());
      messages_.pop_front();
      sink_.on_control(rank_, message);
    }
    for (std::size_t i = 0; i < moved; ++i) {
      const Moved m = moved_.front();
      moved_.pop_front();
      sink_.on_long_sent(m.sent, true);
      sink_.on_long_received(m.received, true);
    }
    return true;
  }

  struct Buffer {
    std::byte* data;  // of the receiver's buffer
    Cookie cookie;    // the receiver's
  };
  static_assert(sizeof(Buffer) <= RemoteKey::kMax);
  // A transfer that is done and that the sink has still to be told of.
  struct Moved {
    Cookie sent, received;
  };

  ChannelSink& sink_;
  const int rank_;
  std::deque<std::vector<std::byte>> messages_;  // head ++ body, oldest first
  std::deque<Moved> moved_;
};

}  // namespace

std::unique_ptr<Channel> open_self_channel(ChannelSink& sink, int rank) {
  return std::make_unique<SelfChannel>(sink, rank);
}

}  // namespace viaduct::mpi
