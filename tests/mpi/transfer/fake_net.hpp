// Processes of a job in one process, joined by channels whose timing the test decides: control
// messages stay in order for each pair, everything else happens when the test says.
#pragma once

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {

class FakeNet {
 public:
  static constexpr std::size_t kEager = 24;
  static constexpr std::size_t kPlaces = 8,
                               kEarly = 4;  // of long receives; before their RTS

  class End;
  // `writes_now`: the channels can do that.
  explicit FakeNet(std::uint64_t seed, bool writes_now = false)
      : random(seed), writes_now(writes_now) {}

  std::mt19937_64 random;
  const bool writes_now;
  std::uint64_t written_now = 0;
  bool chance(int percent) { return static_cast<int>(random() % 100) < percent; }
  std::vector<End*> ends;
};

class FakeNet::End final : public Channel {
 public:
  End(FakeNet& net, ChannelSink& sink, int rank) : net_(net), sink_(sink), rank_(rank) {
    net.ends.push_back(this);
  }

  const char* name() const override { return "fake"; }
  Limits limits() const override {
    return {.control = 256,
            .eager = FakeNet::kEager,
            .early = FakeNet::kEarly,
            .remote_key = sizeof names_,
            .writes_now = net_.writes_now};
  }

  bool send_control(int to, Bytes head, Bytes body) override {
    if (net_.chance(20)) return false;
    say(to, {together(head, body), std::nullopt});
    return true;
  }
  bool write_now(int to, Bytes data, const RemoteKey& remote_key, Bytes head) override {
    if (data.size() > FakeNet::kEager || net_.chance(20)) return false;
    ++net_.written_now;
    say(to, {together(head, {}), Write{name_of(remote_key), {data.begin(), data.end()}}});
    return true;
  }

  void offer(int, Bytes, RemoteKey&) override {}
  bool open_receive(int, MutableBytes into, const RemoteKey*, Cookie cookie,
                    RemoteKey& remote_key) override {
    if (net_.chance(20) || open_.size() == FakeNet::kPlaces) return false;
    open_[++names_] = {into, cookie};
    std::memcpy(remote_key.bytes.data(), &names_, sizeof names_);
    return true;
  }
  void close_receive(int, const RemoteKey& remote_key) override {
    ASSERT_EQ(open_.erase(name_of(remote_key)), 1u) << "closed what was not open";
  }
  bool start_send(int to, Bytes data, const RemoteKey& remote_key, Cookie cookie) override {
    if (net_.chance(20)) return false;
    transfers_.push_back({to, data, name_of(remote_key), cookie});
    return true;
  }

  // One thing that has been under way for some time. That its data has arrived a sender hears as
  // late as anything else.
  bool poll() override {
    if (net_.chance(30)) return false;
    std::vector<int> talkers;
    for (auto& [from, queue] : from_)
      if (!queue.empty()) talkers.push_back(from);
    std::size_t what = net_.random() % (talkers.size() + transfers_.size() + moved_.size() + 1);
    if (what < talkers.size()) {
      auto& queue = from_[talkers[what]];
      const Message message = std::move(queue.front());
      queue.pop_front();
      if (message.write) put(message.write->name, message.write->data);
      sink_.on_control(talkers[what], message.bytes);
      if (message.write) end(message.write->name);
      return true;
    }
    what -= talkers.size();
    if (what < transfers_.size()) {
      const Transfer transfer = take(transfers_, what);
      net_.ends[static_cast<std::size_t>(transfer.to)]->arrive(transfer.name, transfer.data);
      moved_.push_back(transfer.cookie);
      return true;
    }
    what -= transfers_.size();
    if (what == moved_.size()) return false;
    sink_.on_long_sent(take(moved_, what), true);
    return true;
  }
  bool busy() const override { return false; }
  std::string describe(int) const override { return "fake"; }

  // Nothing is under way and nothing was left open.
  bool quiet() const {
    for (const auto& [from, queue] : from_)
      if (!queue.empty()) return false;
    return transfers_.empty() && moved_.empty();
  }
  std::size_t left_open() const { return open_.size(); }

 private:
  struct Write {  // of a message that comes with its data
    std::uint64_t name;
    std::vector<std::byte> data;
  };
  struct Message {
    std::vector<std::byte> bytes;
    std::optional<Write> write;
  };
  struct Buffer {
    MutableBytes into;
    Cookie cookie;
  };
  struct Transfer {
    int to;
    Bytes data;
    std::uint64_t name;
    Cookie cookie;
  };
  static std::uint64_t name_of(const RemoteKey& remote_key) {
    std::uint64_t name;
    std::memcpy(&name, remote_key.bytes.data(), sizeof name);
    return name;
  }
  template <class T>
  static T take(std::deque<T>& from, std::size_t n) {
    const auto at = from.begin() + static_cast<std::ptrdiff_t>(n);
    const T taken = *at;
    from.erase(at);
    return taken;
  }
  static std::vector<std::byte> together(Bytes head, Bytes body) {
    std::vector<std::byte> message(head.begin(), head.end());
    message.insert(message.end(), body.begin(), body.end());
    return message;
  }
  void say(int to, Message message) {
    net_.ends[static_cast<std::size_t>(to)]->from_[rank_].push_back(std::move(message));
  }
  void put(std::uint64_t name, Bytes data) {
    const auto buffer = open_.find(name);
    ASSERT_NE(buffer, open_.end()) << "written into a buffer that was closed";
    ASSERT_LE(data.size(), buffer->second.into.size());
    if (!data.empty()) std::memcpy(buffer->second.into.data(), data.data(), data.size());
  }
  void end(std::uint64_t name) {
    const auto buffer = open_.find(name);
    ASSERT_NE(buffer, open_.end()) << "the head has closed the buffer of its data";
    const Cookie cookie = buffer->second.cookie;
    open_.erase(buffer);
    sink_.on_long_received(cookie, true);
  }
  void arrive(std::uint64_t name, Bytes data) {
    put(name, data);
    end(name);
  }

  FakeNet& net_;
  ChannelSink& sink_;
  const int rank_;
  std::map<int, std::deque<Message>> from_;
  std::deque<Transfer> transfers_;
  std::deque<Cookie> moved_;  // data that has arrived, of which its sender has not heard
  std::map<std::uint64_t, Buffer> open_;
  std::uint64_t names_ = 0;
};

}  // namespace viaduct::mpi
