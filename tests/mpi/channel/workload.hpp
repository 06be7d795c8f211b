// What the tests of the channels between nodes let processes do. A bed has processes, which it
// polls in run().
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "tests/mpi/channel/fake_job.hpp"

namespace viaduct::mpi {

// Messages of all sizes both ways between all; each is checked where it arrives.
template <class Bed>
class Chatter {
 public:
  Chatter(Bed& bed, std::uint64_t seed, int count) : bed_(bed), random_(seed), count_(count) {
    const auto n = static_cast<std::size_t>(bed.size());
    sent_.assign(n * n, 0);
    got_.assign(n * n, 0);
    for (int rank = 0; rank < bed.size(); ++rank)
      bed.sink(rank).control = [this, rank](int from, Bytes m) { check(from, rank, m); };
  }
  bool run() {
    return bed_.run([&] {
      for (int from = 0; from < bed_.size(); ++from)
        for (int to = 0; to < bed_.size(); ++to)
          if (from != to) send(from, to);
      return arrived_ == static_cast<std::uint64_t>(count_ * bed_.size() * (bed_.size() - 1));
    });
  }
  int refused() const { return refused_; }

 private:
  std::size_t pair(int from, int to) const {
    return static_cast<std::size_t>(from * bed_.size() + to);
  }
  std::uint64_t seed(int from, int to, int number) const {
    return pair(from, to) * 100'000 + static_cast<std::uint64_t>(number);
  }
  // What the n-th message of a pair is, both ends know.
  std::vector<std::byte> message(int from, int to, int number) const {
    std::mt19937_64 random(seed(from, to, number));
    const std::size_t most = bed_[from].limits().control;
    const std::size_t sizes[] = {1 + random() % 88, 1 + random() % 300, 1 + random() % most, most};
    auto bytes = patterned(seed(from, to, number), sizes[random() % 4]);
    bytes[0] &= std::byte{0x7f};
    return bytes;
  }
  void send(int from, int to) {
    int& number = sent_[pair(from, to)];
    for (std::size_t burst = random_() % 8; burst != 0 && number < count_; --burst) {
      auto bytes = message(from, to, number);
      const std::size_t head = random_() % (std::min(bytes.size(), Channel::kMaxHead) + 1);
      const Bytes all(bytes);
      const bool taken = bed_[from].send_control(to, all.first(head), all.subspan(head));
      // The memory is ours again at once.
      std::fill(bytes.begin(), bytes.end(), std::byte{0xee});
      if (!taken) {
        ++refused_;
        return;
      }
      ++number;
    }
  }
  void check(int from, int to, Bytes m) {
    const auto expected = message(from, to, got_[pair(from, to)]++);
    EXPECT_EQ(m.size(), expected.size());
    EXPECT_TRUE(std::equal(m.begin(), m.end(), expected.begin(), expected.end()))
        << from << " to " << to << ", message " << got_[pair(from, to)] - 1;
    ++arrived_;
  }

  Bed& bed_;
  std::mt19937_64 random_;
  const int count_;
  std::vector<int> sent_, got_;
  std::uint64_t arrived_ = 0;
  int refused_ = 0;
};

// Receivers open, tell the sender the remote key; senders start.
template <class Bed>
class RandomTraffic {
 public:
  struct Transfer {
    int from, to;
    std::vector<std::byte> data, into;
    RemoteKey opened, heard_of;  // the receiver's, and as the sender was told
    bool open = false, told = false, heard = false, started = false;
  };

  explicit RandomTraffic(Bed& bed) : bed_(bed) {
    for (int rank = 0; rank < bed.size(); ++rank)
      bed.sink(rank).control = [this](int, Bytes m) {
        std::uint32_t number;
        ASSERT_EQ(m.size(), 1 + sizeof number + sizeof(RemoteKey));
        std::memcpy(&number, m.data() + 1, sizeof number);
        std::memcpy(&all_[number].heard_of, m.data() + 1 + sizeof number, sizeof(RemoteKey));
        all_[number].heard = true;
      };
  }
  void add(int from, int to, std::size_t size, std::size_t room) {
    all_.push_back({from,
                    to,
                    patterned(all_.size(), size),
                    std::vector<std::byte>(room, std::byte{0xcc}),
                    {},
                    {}});
    open_.push_back(all_.size() - 1);
  }
  // As far as there is room; `waits` counts how often there was none.
  void step() {
    std::erase_if(open_, [this](std::size_t i) { return advance(i, all_[i]); });
  }
  bool run() {
    return bed_.run([&] {
      step();
      return open_.empty();
    });
  }
  void check() const {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const Transfer& t = all_[i];
      EXPECT_TRUE(bed_.sink(t.from).sent.at(2 * i));
      EXPECT_TRUE(bed_.sink(t.to).received.at(2 * i + 1));
      EXPECT_TRUE(std::equal(t.data.begin(), t.data.end(), t.into.begin())) << "transfer " << i;
      EXPECT_TRUE(std::all_of(t.into.begin() + static_cast<std::ptrdiff_t>(t.data.size()),
                              t.into.end(), [](std::byte b) { return b == std::byte{0xcc}; }))
          << "written behind the data of transfer " << i;
    }
  }
  std::size_t waits = 0;

 private:
  // Whether it is over.
  bool advance(std::size_t i, Transfer& t) {
    if (!t.open) {
      t.open = bed_[t.to].open_receive(t.from, t.into, nullptr, 2 * i + 1, t.opened);
      waits += !t.open;
    }
    if (t.open && !t.told) {
      const auto number = static_cast<std::uint32_t>(i);
      std::byte message[1 + sizeof number + sizeof(RemoteKey)] = {std::byte{7}};
      std::memcpy(message + 1, &number, sizeof number);
      std::memcpy(message + 1 + sizeof number, &t.opened, sizeof(RemoteKey));
      t.told = bed_[t.to].send_control(t.from, message, {});
    }
    if (t.heard && !t.started) {
      t.started = bed_[t.from].start_send(t.to, t.data, t.heard_of, 2 * i);
      waits += !t.started;
    }
    return t.started && bed_.sink(t.from).sent.contains(2 * i) &&
           bed_.sink(t.to).received.contains(2 * i + 1);
  }

  Bed& bed_;
  std::deque<Transfer> all_;
  std::vector<std::size_t> open_;  // of those the ones that are not over
};

}  // namespace viaduct::mpi
