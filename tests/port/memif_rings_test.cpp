// What is made of a memif's control messages, which an unknown process may have written.
#include "drivers/port/quirks/memif_rings.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <limits>

namespace viaduct::link {
namespace {

using Message = std::array<std::byte, 128>;

template <class Number>
void put(Message& message, std::size_t at, Number number) {
  std::memcpy(message.data() + at, &number, sizeof number);
}

Message region_message(std::uint16_t number) {
  Message message{};
  put<std::uint16_t>(message, 0, 4);
  put<std::uint16_t>(message, 2, number);
  put<std::uint64_t>(message, 4, std::numeric_limits<std::uint64_t>::max());  // is not believed
  return message;
}

struct Ring {
  bool from_client = true;
  std::uint16_t number = 0, region = 0;
  std::uint32_t offset = 0;
  std::uint8_t log2 = 6;

  Message message() const {
    Message out{};
    put<std::uint16_t>(out, 0, 5);
    put<std::uint16_t>(out, 2, from_client ? 1 : 0);
    put<std::uint16_t>(out, 4, number);
    put<std::uint16_t>(out, 6, region);
    put<std::uint32_t>(out, 8, offset);
    put<std::uint8_t>(out, 12, log2);
    return out;
  }
};

// Memory as DPDK's client makes it: a ring each way, then the buffers of the first, of the second.
class Memory {
 public:
  static constexpr std::size_t kSlots = 64, kBuffer = 2048;
  static constexpr std::uint32_t kSecondRing = 128 + 16 * kSlots;
  static constexpr std::size_t kBuffers = 2 * kSecondRing;
  static constexpr std::size_t kBytes = kBuffers + 2 * kSlots * kBuffer;

  Memory() : file_(::memfd_create("memif test", MFD_CLOEXEC)) {
    EXPECT_EQ(::ftruncate(file_, kBytes), 0);
    bytes_ = static_cast<std::byte*>(
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
    for (std::size_t ring = 0; ring < 2; ++ring)
      for (std::size_t slot = 0; slot < kSlots; ++slot)
        put_offset(ring, slot, kBuffers + (ring * kSlots + slot) * kBuffer);
  }
  ~Memory() {
    ::munmap(bytes_, kBytes);
    ::close(file_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void put_offset(std::size_t ring, std::size_t slot, std::size_t offset) {
    const auto value = static_cast<std::uint32_t>(offset);
    std::memcpy(descriptor(ring, slot) + 8, &value, sizeof value);
  }
  void put_region(std::size_t ring, std::size_t slot, std::uint16_t region) {
    std::memcpy(descriptor(ring, slot) + 2, &region, sizeof region);
  }
  void put_index(std::size_t at, std::uint16_t value) {
    std::memcpy(bytes_ + at, &value, sizeof value);
  }
  std::uint16_t index(std::size_t at) const {
    std::uint16_t value = 0;
    std::memcpy(&value, bytes_ + at, sizeof value);
    return value;
  }
  int file() const { return file_; }
  // Bytes that take memory.
  std::size_t populated() const {
    struct stat status {};
    EXPECT_EQ(::fstat(file_, &status), 0);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  }

 private:
  std::byte* descriptor(std::size_t ring, std::size_t slot) {
    return bytes_ + ring * kSecondRing + 128 + 16 * slot;
  }
  int file_;
  std::byte* bytes_ = nullptr;
};

class MemifRingsTest : public testing::Test {
 protected:
  // Whether the ring is found that is told of.
  static bool finds(const Ring& ring, int file, std::uint16_t region = 0) {
    port::MemifRings rings;
    rings.learn(region_message(region), file);
    rings.learn(ring.message(), -1);
    rings.populate();
    const auto sender = ring.from_client ? port::MemifRings::kClient : port::MemifRings::kServer;
    const auto other = ring.from_client ? port::MemifRings::kServer : port::MemifRings::kClient;
    EXPECT_FALSE(rings.ring(other));
    const port::MemifRing found = rings.ring(sender);
    if (found) {
      found.fetch_next(1500);
      found.fetch_first(1500);
    }
    return static_cast<bool>(found);
  }
  bool finds(const Ring& ring) { return finds(ring, memory_.file()); }

  Memory memory_;
};

const Ring kServersRing{.from_client = false, .offset = Memory::kSecondRing};

TEST_F(MemifRingsTest, BothRingsAreFound) {
  EXPECT_TRUE(finds(Ring{}));
  EXPECT_TRUE(finds(kServersRing));
  // We have one queue pair.
  EXPECT_FALSE(finds({.number = 1}));
}

TEST_F(MemifRingsTest, OfAnotherVersionOfTheProtocolNothingIsTakenForGranted) {
  for (const std::uint16_t version : {0x0200, 0x0201, 0x0300, 0x0100}) {
    Message init{};
    put<std::uint16_t>(init, 0, 3);
    put<std::uint16_t>(init, 2, version);
    port::MemifRings rings;
    rings.learn(init, -1);
    rings.learn(region_message(0), memory_.file());
    rings.learn(Ring{}.message(), -1);
    EXPECT_EQ(static_cast<bool>(rings.ring(port::MemifRings::kClient)), version == 0x0200);
    rings.forget();  // the next client may be another one
    rings.learn(region_message(0), memory_.file());
    rings.learn(Ring{}.message(), -1);
    EXPECT_TRUE(rings.ring(port::MemifRings::kClient));
  }
}

TEST_F(MemifRingsTest, AnInterruptIsAskedForInTheRingsFlags) {
  const int event = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  port::MemifRings rings;
  rings.learn(region_message(0), memory_.file());
  rings.learn(Ring{}.message(), event);
  rings.learn(kServersRing.message(), -1);
  EXPECT_FALSE(rings.interrupt(port::MemifRings::kServer)) << "its event was not sent";
  const port::MemifInterrupt interrupt = rings.interrupt(port::MemifRings::kClient);
  ASSERT_TRUE(interrupt);
  constexpr std::size_t kFlags = 4;
  memory_.put_index(kFlags, 0x11);
  interrupt.unmask();
  EXPECT_EQ(memory_.index(kFlags), 0x10);
  EXPECT_EQ(::eventfd_write(event, 3), 0);
  interrupt.mask();
  EXPECT_EQ(memory_.index(kFlags), 0x11);
  eventfd_t left = 0;
  EXPECT_NE(::eventfd_read(event, &left), 0) << "what was written is forgotten";
  ::close(event);
}

// Whoever sent it could stop us with it.
TEST_F(MemifRingsTest, AnEventThatMayBlockIsNotUsed) {
  const int event = ::eventfd(0, EFD_CLOEXEC);
  port::MemifRings rings;
  rings.learn(region_message(0), memory_.file());
  rings.learn(Ring{}.message(), event);
  EXPECT_TRUE(rings.ring(port::MemifRings::kClient));
  EXPECT_FALSE(rings.interrupt(port::MemifRings::kClient));
  ::close(event);
}

// In a client's ring the head runs ahead of the tail by what has been sent, in a server's the tail
// comes nearer to the head by it.
TEST_F(MemifRingsTest, TheIndicesSayWhatIsThere) {
  constexpr std::size_t kHead = 6, kTail = 64;
  port::MemifRings rings;
  rings.learn(region_message(0), memory_.file());
  rings.learn(Ring{}.message(), -1);
  rings.learn(kServersRing.message(), -1);
  const port::MemifRing client = rings.ring(port::MemifRings::kClient),
                        server = rings.ring(port::MemifRings::kServer);
  ASSERT_TRUE(client && server);
  for (const std::uint16_t taken : {0, 1, 63, 64, 65472, 65535}) {
    for (const std::uint16_t sent : {0, 1, 64}) {
      const auto filled = static_cast<std::uint16_t>(taken + sent);
      memory_.put_index(kHead, filled);
      memory_.put_index(kTail, taken);
      EXPECT_EQ(client.any(), sent != 0);
      EXPECT_EQ(client.next_slot(), filled % Memory::kSlots);
      EXPECT_EQ(client.first_slot(), taken % Memory::kSlots);

      memory_.put_index(Memory::kSecondRing + kTail, filled);
      memory_.put_index(Memory::kSecondRing + kHead,
                        static_cast<std::uint16_t>(taken + Memory::kSlots));
      EXPECT_EQ(server.any(), sent != 0);
      EXPECT_EQ(server.next_slot(), filled % Memory::kSlots);
      EXPECT_EQ(server.first_slot(), taken % Memory::kSlots);
    }
  }
}

// All pages that the file had when it was learnt of, in every mapping; no more, though the other
// end can make it larger at any time.
TEST_F(MemifRingsTest, PopulatesWhatItHasLearntOf) {
  port::MemifRings rings;
  rings.learn(region_message(0), memory_.file());
  constexpr std::size_t kGrown = 16 * Memory::kBytes;
  ASSERT_EQ(::ftruncate(memory_.file(), kGrown), 0);
  void* const large =
      ::mmap(nullptr, kGrown, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.file(), 0);
  ASSERT_NE(large, MAP_FAILED);
  EXPECT_LT(memory_.populated(), Memory::kBytes);
  rings.populate();
  EXPECT_GE(memory_.populated(), Memory::kBytes);
  EXPECT_LT(memory_.populated(), 2 * Memory::kBytes);
  ::munmap(large, kGrown);
}

TEST_F(MemifRingsTest, FindsNothingBeforeItHasLearntBoth) {
  port::MemifRings rings;
  EXPECT_FALSE(rings.ring(port::MemifRings::kClient));
  rings.learn(Ring{}.message(), -1);
  EXPECT_FALSE(rings.ring(port::MemifRings::kClient));
  rings.learn(region_message(0), memory_.file());
  EXPECT_TRUE(rings.ring(port::MemifRings::kClient));
  rings.forget();
  EXPECT_FALSE(rings.ring(port::MemifRings::kClient));
  rings.populate();
}

TEST_F(MemifRingsTest, WhatDoesNotFitTheMemoryIsNotBelieved) {
  EXPECT_FALSE(finds({.offset = Memory::kBytes - 128 - 16 * 64 + 2}));
  EXPECT_FALSE(finds({.offset = Memory::kBytes}));
  EXPECT_FALSE(finds({.offset = std::numeric_limits<std::uint32_t>::max() - 1}));
  EXPECT_FALSE(finds({.offset = 1}));
  EXPECT_FALSE(finds({.log2 = 14}));
  EXPECT_FALSE(finds({.log2 = 255}));
  EXPECT_FALSE(finds({.region = 1}));
  EXPECT_FALSE(finds(Ring{}, memory_.file(), 1));
}

TEST_F(MemifRingsTest, BuffersThatAreNotInFixedPlacesAreLeftAlone) {
  memory_.put_offset(0, 63, Memory::kBuffers);
  EXPECT_FALSE(finds(Ring{}));
  memory_.put_offset(0, 63, Memory::kBuffers + 63 * Memory::kBuffer);
  EXPECT_TRUE(finds(Ring{}));
  memory_.put_region(0, 5, 1);
  EXPECT_FALSE(finds(Ring{}));
  memory_.put_region(0, 5, 0);
  // All in one place, as in a ring that nobody has filled in.
  for (std::size_t slot = 0; slot < Memory::kSlots; ++slot) memory_.put_offset(0, slot, 0);
  EXPECT_FALSE(finds(Ring{}));
  for (std::size_t slot = 0; slot < Memory::kSlots; ++slot)
    memory_.put_offset(0, slot, Memory::kBytes + slot * Memory::kBuffer);
  EXPECT_FALSE(finds(Ring{}));
}

TEST_F(MemifRingsTest, MessagesAndFilesOfNoUseAreIgnored) {
  const int empty = ::memfd_create("empty", MFD_CLOEXEC);
  EXPECT_FALSE(finds(Ring{}, empty));
  EXPECT_EQ(::ftruncate(empty, std::int64_t{1} << 40), 0);
  EXPECT_FALSE(finds(Ring{}, empty));
  ::close(empty);
  EXPECT_FALSE(finds(Ring{}, -1));
  EXPECT_FALSE(finds(Ring{}, 1 << 20));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_FALSE(finds(Ring{}, ends[0]));
  ::close(ends[0]);
  ::close(ends[1]);

  port::MemifRings rings;
  const Message region = region_message(0), ring = Ring{}.message();
  for (std::size_t length = 0; length < 13; ++length) {
    rings.learn(std::span(region).first(length), memory_.file());
    rings.learn(std::span(ring).first(length), -1);
  }
  EXPECT_FALSE(rings.ring(port::MemifRings::kClient));
}

// The first ones stay: what a second region or ring is for, we do not use.
TEST_F(MemifRingsTest, LaterRegionsAndRingsChangeNothing) {
  Memory other;
  port::MemifRings rings;
  rings.learn(region_message(0), memory_.file());
  rings.learn(Ring{}.message(), -1);
  rings.learn(region_message(1), other.file());
  rings.learn(Ring{.region = 1}.message(), -1);
  EXPECT_TRUE(rings.ring(port::MemifRings::kClient));
}

}  // namespace
}  // namespace viaduct::link
