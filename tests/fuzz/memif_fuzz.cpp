// What the other end of a memif says on the control socket and writes into the memory that both
// share. Rings are found in it, or not; what is then read and fetched lies in that memory.
//
// An input: how long the memory is (two bytes), how many bytes of it follow (two bytes), these, and
// then messages of 14 bytes each: whether it carries the memory's file, and what it begins with.
#include "drivers/port/quirks/memif_rings.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/fuzz/require.hpp"

using namespace viaduct;

namespace {

std::size_t take_number(std::span<const std::byte>& from) {
  std::uint16_t number = 0;
  if (from.size() < sizeof number) return 0;
  std::memcpy(&number, from.data(), sizeof number);
  from = from.subspan(sizeof number);
  return number;
}

std::span<const std::byte> take_bytes(std::span<const std::byte>& from, std::size_t most) {
  const auto taken = from.first(std::min(from.size(), most));
  from = from.subspan(taken.size());
  return taken;
}

void look_at(const port::MemifRing& ring) {
  if (!ring) return;
  require(ring.next_slot() < 1u << 14 && ring.first_slot() < 1u << 14);
  ring.any();
  ring.fetch_next(1500);
  ring.fetch_first(1500);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto input = std::as_bytes(std::span(data, size));
  const std::size_t bytes = take_number(input);
  const auto content = take_bytes(input, std::min(take_number(input), bytes));
  const int file = ::memfd_create("memif fuzz", MFD_CLOEXEC);
  require(file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes)) == 0);
  require(::pwrite(file, content.data(), content.size(), 0) ==
          static_cast<ssize_t>(content.size()));

  port::MemifRings rings;
  while (!input.empty()) {
    const bool carries = input[0] != std::byte{0};
    input = input.subspan(1);
    std::array<std::byte, 128> message{};
    const auto begins = take_bytes(input, 13);
    std::copy(begins.begin(), begins.end(), message.begin());
    rings.learn(message, carries ? file : -1);
  }
  rings.populate();
  for (const auto sender : {port::MemifRings::kClient, port::MemifRings::kServer})
    look_at(rings.ring(sender));
  rings.forget();
  require(!rings.ring(port::MemifRings::kClient) && !rings.ring(port::MemifRings::kServer));
  ::close(file);
  return 0;
}
