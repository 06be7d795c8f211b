// The ring between two processes of a node: nothing is lost, reordered or damaged, and memory is
// used as far as the reader falls behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <thread>

#include "libmpi_lite/channel/shm_ring.hpp"
#include "tests/support/effort.hpp"

namespace viaduct::mpi {
namespace {

using Bytes = std::span<const std::byte>;

// Its bytes tell its number and its length.
std::vector<std::byte> message(std::uint64_t number, std::size_t length) {
  std::vector<std::byte> out(length);
  for (std::size_t i = 0; i < length; ++i) out[i] = std::byte(number * 31 + i * 7 + length);
  return out;
}

std::size_t random_length(std::mt19937_64& random) {
  const std::size_t limits[] = {8, 64, 4096, kMaxInRing};
  return random() % limits[random() % std::size(limits)] + 1;
}

// Bytes that were ever written to, in pages.
std::size_t used(const Ring& ring) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&ring);
  std::size_t pages = 0;
  for (std::size_t at = 0; at < sizeof(Ring); at += kPage)
    pages +=
        std::any_of(bytes + at, bytes + at + kPage, [](std::byte b) { return b != std::byte{0}; });
  return pages * kPage;
}

TEST(ShmRing, AReaderThatKeepsPaceLeavesMemoryAlone) {
  for (std::uint32_t process = 1; process <= 8; ++process) {
    const auto ring = std::make_unique<Ring>();
    ring->writer = process;
    RingWriter writer(*ring);
    RingReader reader(*ring);
    writer.set_memory_budget(0);
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      ASSERT_TRUE(writer.write({}, message(i, i % 100 + 1)));
      ASSERT_EQ(reader.front().size(), i % 100 + 1);
      reader.pop();
    }
    EXPECT_EQ(used(*ring), 2 * kPage);
  }
}

TEST(ShmRing, OneThatFallsBehindHasAHalfAtLeast) {
  const auto ring = std::make_unique<Ring>();
  RingWriter writer(*ring);
  RingReader reader(*ring);
  const auto text = message(1, 24);
  const std::size_t bytes = record_bytes(text.size());
  for (int round = 0; round < 5000; ++round) {
    std::size_t sent = 0;
    while (writer.write({}, text)) ++sent;
    EXPECT_GE(sent * bytes, kHalfRoom - kRecordGrain - bytes) << round;
    EXPECT_LE(sent * bytes, writer.unread()) << round;
    for (; sent > 0; --sent) {
      ASSERT_EQ(reader.front().size(), text.size());
      reader.pop();
    }
    EXPECT_TRUE(reader.front().empty());
  }
}

// Whatever has been read, there is room for the largest message: the writer never waits for a
// reader that has nothing to do.
TEST(ShmRing, AnEmptyRingTakesTheLargestMessage) {
  std::mt19937_64 random(5);
  const auto ring = std::make_unique<Ring>();
  RingWriter writer(*ring);
  RingReader reader(*ring);
  const auto largest = message(0, kMaxInRing);
  for (std::uint64_t i = 0; i < test::effort(20'000); ++i) {
    for (auto n = random() % 4; n > 0; --n) {
      ASSERT_TRUE(writer.write({}, message(n, random_length(random)))) << i;
      ASSERT_FALSE(reader.front().empty());
      reader.pop();
    }
    EXPECT_TRUE(reader.front().empty());
    ASSERT_TRUE(writer.write({}, largest)) << i;
    ASSERT_EQ(reader.front().size(), largest.size());
    reader.pop();
  }
}

// Messages are written while the oldest one is in use, and the budget changes at any time.
TEST(ShmRing, AnyOrderOfWritesAndReads) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    const auto ring = std::make_unique<Ring>();
    ring->writer = static_cast<std::uint32_t>(seed + 1);
    RingWriter writer(*ring);
    RingReader reader(*ring);
    std::deque<std::vector<std::byte>> under_way;
    const auto write = [&] {
      const auto text = message(random(), random_length(random));
      const std::size_t head = random() % std::min<std::size_t>(text.size(), 64);
      const bool written = writer.write(Bytes(text).first(head), Bytes(text).subspan(head));
      if (written) under_way.push_back(text);
      return written;
    };
    for (std::uint64_t i = 0; i < test::effort(20'000); ++i) {
      if (random() % 100 == 0) writer.set_memory_budget(random() % sizeof(Ring));
      if (random() % 2 == 0) {
        ASSERT_TRUE(write() || !under_way.empty());
        continue;
      }
      const Bytes front = reader.front();
      ASSERT_EQ(front.empty(), under_way.empty());
      if (front.empty()) continue;
      for (auto more = random() % 3; more > 0; --more) write();
      ASSERT_TRUE(std::equal(front.begin(), front.end(), under_way.front().begin(),
                             under_way.front().end()));
      reader.pop();
      under_way.pop_front();
    }
  }
}

// The memory is the other process's, too. Whatever it writes into the words, the reader stays in
// the ring and comes to an end.
TEST(ShmRing, BrokenWordsAreNoMessages) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 500; ++round) {
    const auto ring = std::make_unique<Ring>();
    RingReader reader(*ring);
    for (std::size_t half = 0; half < 2; ++half)
      for (std::size_t at = 0; at < kHalfRing; at += random() % 200 * kRecordGrain + kRecordGrain) {
        const RingWord words[] = {kTurn, kTurn - 1, random() % 64, random()};
        ring_word(&ring->data[half][at]).store(words[random() % std::size(words)]);
      }
    for (int i = 0; i < 1000; ++i) {
      const Bytes front = reader.front();
      if (front.empty()) continue;
      const auto* const end = reinterpret_cast<const std::byte*>(ring.get() + 1);
      ASSERT_LE(front.data() + front.size(), end);
      reader.pop();
    }
  }
}

TEST(ShmRing, TwoThreads) {
  const auto ring = std::make_unique<Ring>();
  const std::uint64_t messages = test::effort(300'000);
  std::thread sender([&] {
    std::mt19937_64 random(9);
    RingWriter writer(*ring);
    writer.set_memory_budget(0);
    for (std::uint64_t i = 0; i < messages; ++i) {
      const auto text = message(i, random_length(random) % 512 + 1);
      while (!writer.write({}, text)) std::this_thread::yield();
    }
  });
  std::mt19937_64 random(9);
  RingReader reader(*ring);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < messages; ++i) {
    const auto text = message(i, random_length(random) % 512 + 1);
    Bytes front = reader.front();
    while (front.empty()) {
      std::this_thread::yield();
      front = reader.front();
    }
    wrong += !std::equal(front.begin(), front.end(), text.begin(), text.end());
    reader.pop();
  }
  sender.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace viaduct::mpi
