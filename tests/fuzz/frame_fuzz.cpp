// Whatever a connected link receives: the input is a row of frames, each behind a 16-bit length.
// Half of them are sealed with the right addresses, connection, token, incarnations and checksum
// first, so that the inside of frames is reached as well as the outside. The link must survive,
// leak nothing, and still exchange messages with its honest peer afterwards.
#include "drivers/base/crc32c.hpp"
#include "tests/fuzz/require.hpp"
#include "tests/link/sim_world.hpp"

using namespace viaduct;
using namespace viaduct::link;
using namespace viaduct::link::test;

namespace {

// What only the two ends know.
struct Secrets {
  FrameHeader header{};                  // what honest frames to the victim look like...
  std::uint32_t seed = 0;                // ... and begin their checksums with
  std::uint64_t victim = 0, honest = 0;  // incarnations
  std::uint64_t cookie = 0;              // the honest one's
};

struct Bed {
  World world;
  Node& victim = world.add();
  Node& honest = world.add();
  sim::SimPort& mallory = world.net.add_port();
  Secrets secrets;

  Bed() {
    world.net.hook = [this](std::uint32_t port, std::vector<std::byte>& bytes) {
      FrameHeader header;
      std::memcpy(&header, bytes.data(), sizeof(header));
      if (port == 1 && header.connection != 0) secrets.header = header;
      if (port == 0 && (header.version_type & 15) == static_cast<int>(FrameType::welcome)) {
        Handshake welcome;
        std::memcpy(&welcome, bytes.data() + kFrameHeader, sizeof welcome);
        secrets.seed = welcome.seed;
        secrets.victim = welcome.incarnation;
        secrets.honest = welcome.echo;
      }
      if (port == 0 && (header.version_type & 15) == static_cast<int>(FrameType::retry)) {
        Handshake retry;
        std::memcpy(&retry, bytes.data() + kFrameHeader, sizeof retry);
        secrets.cookie = retry.cookie;
      }
      return true;
    };
    int got = 0;
    victim.sink.message = [&](const Incoming&) { return ++got, RxResult::consumed; };
    send_text(honest, honest.link->peer(victim.address()), "x", world.net.now());
    require(world.run_until([&] { return got == 1 && honest.link->idle(); }, seconds{1}));
    world.net.hook = nullptr;
    victim.sink.message = [](const Incoming& m) {
      volatile std::uint8_t sum = 0;  // touch every byte: the sanitizer sees what is not ours
      for (std::byte b : m.bytes)
        sum = static_cast<std::uint8_t>(sum + static_cast<std::uint8_t>(b));
      return m.bytes.size() % 7 == 6 ? RxResult::backpressure : RxResult::consumed;
    };
  }
};

// A welcome or retry to this victim, from this incarnation of the honest peer or, as its last byte
// says, from another; or a hello with its cookie.
void seal_handshake(std::byte* payload, const Secrets& secrets) {
  Handshake body;
  std::memcpy(&body, payload, sizeof body);
  body.echo = secrets.victim;
  if (body.reserved % 2 == 0) {
    body.incarnation = secrets.honest;
    if (body.cookie != 0) body.cookie = secrets.cookie;
  }
  std::memcpy(payload, &body, sizeof body);
}

void seal(std::vector<std::byte>& frame, const Secrets& secrets) {
  const FrameHeader& secret = secrets.header;
  std::uint32_t seed = secrets.seed;
  auto& header = *reinterpret_cast<FrameHeader*>(frame.data());
  const auto keep_type = header.version_type;
  const auto keep_flags = header.lane_flags;
  const auto sequence = header.sequence % 8 + secret.sequence;
  const auto ack = header.ack % 4 + secret.ack;
  const auto credit = header.credit;
  header = secret;
  header.version_type = static_cast<std::uint8_t>(kVersion << 4 | (keep_type & 7));
  header.lane_flags = keep_flags & kFlagsKnown;
  header.sequence = sequence;
  header.ack = ack;
  header.credit = credit % 600;
  header.length = static_cast<std::uint16_t>(frame.size() - kFrameHeader);
  const auto type = static_cast<FrameType>(keep_type & 7);
  if (type == FrameType::hello) {
    header.connection = 0;
    header.token = seed = 0;
  }
  if (type >= FrameType::hello && type <= FrameType::retry && header.length >= sizeof(Handshake))
    seal_handshake(frame.data() + kFrameHeader, secrets);
  header.checksum = frame_checksum(header, base::crc32c(frame.data() + kFrameHeader, header.length,
                                                        route_checksum(header, seed)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bed bed;
  const std::byte* at = reinterpret_cast<const std::byte*>(data);
  const std::byte* const end = at + size;
  for (int frames = 0; end - at > 3 && frames < 64; ++frames) {
    std::uint16_t length;
    std::memcpy(&length, at, 2);
    const bool honest_outside = (length & 0x8000) != 0;
    at += 2;
    const auto n = std::min<std::ptrdiff_t>(length % 1514, end - at);
    std::vector<std::byte> frame(at, at + n);
    at += n;
    if (honest_outside && frame.size() >= kFrameHeader) seal(frame, bed.secrets);
    bed.world.net.inject(bed.mallory, frame);
    bed.world.run(microseconds{20}, microseconds{10});
  }
  bed.world.run(milliseconds{2}, microseconds{50});
  bed.victim.sink.message = [](const Incoming&) { return RxResult::consumed; };
  bed.world.run(seconds{12}, milliseconds{20});  // whatever was begun is over
  int got = 0;
  bed.victim.sink.message = [&](const Incoming&) { return ++got, RxResult::consumed; };
  bed.world.kill(bed.honest);
  LinkConfig again;
  again.seed = 99;
  bed.honest.start(again);
  send_text(bed.honest, bed.honest.link->peer(bed.victim.address()), "y", bed.world.net.now());
  require(bed.world.run_until([&] { return got == 1 && bed.honest.link->idle(); }, seconds{2},
                              microseconds{50}));
  require(bed.victim.link->frames_held() == 0);
  return 0;
}
