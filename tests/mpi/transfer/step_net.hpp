// Processes of a job in one process whose every step the test takes: each control message, each
// long transfer and each word about one moves when the test says so, and nothing else happens.
// There is little room everywhere, so that steps are refused and have to be taken later.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "libmpi_lite/transfer/engine.hpp"

namespace viaduct::mpi {

class StepNet {
 public:
  static constexpr std::size_t kEager = 24, kEarly = 1;
  static constexpr std::size_t kPlaces = 2;     // of long receives
  static constexpr std::size_t kMessages = 2;   // control messages between two processes
  static constexpr std::size_t kTransfers = 1;  // that a process has under way

  class End;
  explicit StepNet(bool writes_now) : writes_now(writes_now) {}

  const bool writes_now;  // the channels can do that
  std::vector<End*> ends;
  std::uint64_t room_made = 0;  // how often something has left that others may have waited for
};

class StepNet::End final : public Channel {
 public:
  End(StepNet& net, ChannelSink& sink, int rank) : net_(net), sink_(sink), rank_(rank) {
    net.ends.push_back(this);
  }

  const char* name() const override { return "step"; }
  Limits limits() const override {
    return {.control = 256,
            .eager = kEager,
            .early = kEarly,
            .remote_key = sizeof names_,
            .writes_now = net_.writes_now};
  }
  bool send_control(int to, Bytes head, Bytes body) override {
    auto& queue = net_.ends[static_cast<std::size_t>(to)]->from_[rank_];
    if (!allow(queue.size() < kMessages)) return false;
    queue.push_back({together(head, body), std::nullopt});
    return true;
  }
  bool write_now(int to, Bytes data, const RemoteKey& remote_key, Bytes head) override {
    auto& queue = net_.ends[static_cast<std::size_t>(to)]->from_[rank_];
    if (!allow(data.size() <= kEager && queue.size() < kMessages)) return false;
    queue.push_back({together(head, {}), Write{name_of(remote_key), {data.begin(), data.end()}}});
    return true;
  }
  void offer(int, Bytes, RemoteKey&) override {}
  bool open_receive(int from, MutableBytes into, const RemoteKey*, Cookie cookie,
                    RemoteKey& remote_key) override {
    if (!allow(open_.size() < kPlaces)) return false;
    open_[++names_] = {from, into, cookie};
    std::memcpy(remote_key.bytes.data(), &names_, sizeof names_);
    return true;
  }
  void close_receive(int, const RemoteKey& remote_key) override {
    ASSERT_EQ(open_.erase(name_of(remote_key)), 1u) << "closed what was not open";
    ++net_.room_made;
  }
  bool start_send(int to, Bytes data, const RemoteKey& remote_key, Cookie cookie) override {
    if (!allow(transfers_.size() + moved_.size() < kTransfers)) return false;
    transfers_.push_back({to, data, name_of(remote_key), cookie});
    return true;
  }
  bool poll() override { return false; }
  bool busy() const override { return false; }
  std::string describe(int) const override { return "step"; }

  // ---- the steps that are possible, and taking them
  // ------------------------------------------------

  std::vector<int> talkers() const {
    std::vector<int> talkers;
    for (const auto& [from, queue] : from_)
      if (!queue.empty()) talkers.push_back(from);
    return talkers;
  }
  void hear(int from) {
    auto& queue = from_[from];
    const Message message = std::move(queue.front());
    queue.pop_front();
    ++net_.room_made;
    note(static_cast<std::uint64_t>(from));
    for (const std::byte b : message.bytes) note(static_cast<std::uint64_t>(b));
    if (message.write) put(message.write->name, message.write->data);
    sink_.on_control(from, message.bytes);
    if (message.write) finish(message.write->name);
  }
  // Where the data of the oldest transfer goes; -1: there is none.
  int transfer_to() const { return transfers_.empty() ? -1 : transfers_.front().to; }
  void move() {
    const Transfer transfer = transfers_.front();
    transfers_.pop_front();
    moved_.push_back({transfer.to, transfer.cookie});
    net_.ends[static_cast<std::size_t>(transfer.to)]->arrive(transfer.name, transfer.data);
  }
  bool has_moved() const { return !moved_.empty(); }
  void hear_moved() {
    const Cookie cookie = moved_.front().cookie;
    moved_.pop_front();
    ++net_.room_made;
    note(1000);
    sink_.on_long_sent(cookie, true);
  }
  // All that is under way with that process ends, as channels do it.
  void lose(int process) {
    note(2000u + static_cast<unsigned>(process));
    from_.erase(process);
    std::vector<std::pair<Cookie, bool>> ended;  // whether it was a receive
    std::erase_if(open_, [&](const auto& open) {
      if (open.second.from == process) ended.emplace_back(open.second.cookie, true);
      return open.second.from == process;
    });
    std::erase_if(transfers_, [&](const Transfer& t) {
      if (t.to == process) ended.emplace_back(t.cookie, false);
      return t.to == process;
    });
    std::erase_if(moved_, [&](const Moved& m) {
      if (m.to == process) ended.emplace_back(m.cookie, false);
      return m.to == process;
    });
    for (const auto& [cookie, receive] : ended)
      receive ? sink_.on_long_received(cookie, false) : sink_.on_long_sent(cookie, false);
    sink_.on_peer_lost(process, "the test says so");
    ++net_.room_made;
  }

  std::size_t left_open() const { return open_.size(); }
  // Of all that this process has seen, in its order: what it does next depends on nothing else.
  std::uint64_t history() const { return history_; }
  // What changes nothing leaves no trace.
  template <class Attempt>
  void attempt(Attempt attempt) {
    const std::uint64_t before = history_;
    note(5000);
    if (!attempt()) history_ = before;
  }
  void note(std::uint64_t event) {
    history_ = (history_ ^ event) * 0x9e3779b97f4a7c15u;
    history_ ^= history_ >> 29;
  }

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
    int from;
    MutableBytes into;
    Cookie cookie;
  };
  struct Transfer {
    int to;
    Bytes data;
    std::uint64_t name;
    Cookie cookie;
  };
  struct Moved {
    int to;
    Cookie cookie;
  };
  static std::uint64_t name_of(const RemoteKey& remote_key) {
    std::uint64_t name;
    std::memcpy(&name, remote_key.bytes.data(), sizeof name);
    return name;
  }
  bool allow(bool room) {
    note(room ? std::uint64_t{3000} : std::uint64_t{3001});
    return room;
  }
  static std::vector<std::byte> together(Bytes head, Bytes body) {
    std::vector<std::byte> message(head.begin(), head.end());
    message.insert(message.end(), body.begin(), body.end());
    return message;
  }
  void put(std::uint64_t name, Bytes data) {
    note(4000 + name);
    const auto buffer = open_.find(name);
    ASSERT_NE(buffer, open_.end()) << "written into a buffer that was closed";
    ASSERT_LE(data.size(), buffer->second.into.size());
    if (!data.empty()) std::memcpy(buffer->second.into.data(), data.data(), data.size());
  }
  void arrive(std::uint64_t name, Bytes data) {
    put(name, data);
    finish(name);
  }
  void finish(std::uint64_t name) {
    const auto buffer = open_.find(name);
    ASSERT_NE(buffer, open_.end()) << "the head has closed the buffer of its data";
    const Cookie cookie = buffer->second.cookie;
    open_.erase(buffer);
    ++net_.room_made;
    sink_.on_long_received(cookie, true);
  }

  StepNet& net_;
  ChannelSink& sink_;
  const int rank_;
  std::map<int, std::deque<Message>> from_;
  std::deque<Transfer> transfers_;
  std::deque<Moved> moved_;
  std::map<std::uint64_t, Buffer> open_;
  std::uint64_t names_ = 0, history_ = 0;
};

}  // namespace viaduct::mpi
