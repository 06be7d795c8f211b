// What an engine makes of any MBCF message: the input is a row of (kind, lane, length, bytes) sent
// by a connected peer that knows the keys. Memory outside the segment must not change; FIFO entries
// must be whole; the engine must survive and still serve an honest peer.
#include "drivers/mbcf/engine.hpp"
#include "tests/fuzz/attack.hpp"

using namespace viaduct;
using namespace viaduct::link::test;
using link::Lane;
using mbcf::Kind;
using mbcf::Rights;

namespace {

constexpr std::size_t kGuard = 64, kExported = 4096;

// Small numbers are near the interesting edges.
std::uint64_t near_edge(std::uint64_t offset) {
  switch (offset & 3) {
    case 0: return offset % (2 * kExported);
    case 1: return kExported + offset % 16 - 8;
    case 2: return ~std::uint64_t{0} - offset % 16;
    default: return offset;
  }
}

// Writes a true key over what the input says, where the kind has one.
void make_genuine(Kind kind, bool silent, std::vector<std::byte>& body, std::uint64_t key) {
  if (silent) {
    mbcf::SilentTarget head;
    if (body.size() < sizeof head) return;
    std::memcpy(&head, body.data(), sizeof head);
    head.key = key;
    head.offset = static_cast<std::uint32_t>(near_edge(head.offset));
    return static_cast<void>(std::memcpy(body.data(), &head, sizeof head));
  }
  if (kind == Kind::long_more || kind == Kind::long_then || kind == Kind::append_more ||
      kind >= Kind::fence || body.size() < sizeof(mbcf::TargetHead)) {
    if ((kind == Kind::want || kind == Kind::give_back) && body.size() >= sizeof key)
      std::memcpy(body.data(), &key, sizeof key);
    return;
  }
  mbcf::TargetHead head;
  std::memcpy(&head, body.data(), sizeof head);
  head.key = key;
  head.offset = near_edge(head.offset);
  head.id %= 4;
  std::memcpy(body.data(), &head, sizeof head);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  World world;
  Node& victim = world.add();
  Node& rogue = world.add();
  mbcf::Engine<sim::SimPort> engine(*victim.link, {});
  std::vector<std::byte> memory(2 * kGuard + kExported, kCanary);
  std::uint64_t keys[3];
  keys[0] = engine.export_segment(std::span(memory).subspan(kGuard, kExported), Rights::all).value;
  mbcf::Fifo* fifo = engine.create_fifo(4096);
  keys[1] = fifo->key().value;
  keys[2] = engine.create_signal([](std::uint64_t count) { require(count != 0); }).value;
  const auto [to_victim, to_rogue] = connect(world, rogue, victim);
  // Requests of its own, whose answers the input may make up.
  std::vector<std::byte> local(2 * kGuard + 3000, kCanary);
  const std::span<std::byte> into = std::span(local).subspan(kGuard, 3000);
  const auto now = [&] { return world.net.now(); };
  engine.read({to_rogue, {1}, 0}, into.first(100), {}, now());
  engine.read({to_rogue, {1}, 0}, into, {}, now());
  engine.fetch_add({to_rogue, {1}, 0}, mbcf::Width::eight, 1, {}, now());
  engine.write({to_rogue, {1}, 0}, into, {}, now());
  engine.open_writer(to_rogue, {1}, now());
  engine.fence(to_rogue, {}, now());
  for (int i = 0; i < 3; ++i)
    engine.write({to_rogue, {1}, 0}, into.first(8), {.silent = true}, now());

  while (size >= 3) {
    const auto kind = static_cast<Kind>(data[0] % mbcf::kSilentKind % (mbcf::kKinds + 1));
    const std::uint8_t silent = data[0] & mbcf::kSilentKind;
    const std::uint8_t lane = data[1] >> 6, key = data[1] >> 4 & 3;
    std::vector<std::byte> body = take_body(data, size, data[2] | (data[1] & 7) << 8);
    if (key != 3) make_genuine(kind, silent != 0, body, keys[key]);
    rogue.link->try_send(
        to_victim, static_cast<Lane>(lane % link::kLanes), link::Order::ordered,
        {link::Protocol::mbcf, static_cast<std::uint8_t>(static_cast<std::uint8_t>(kind) | silent)},
        {}, body, link::Urgency::batch, now());
    world.run_until([&] { return engine.poll(now()), false; }, microseconds{20});
    if (size % 3 == 0)
      while (const auto entry = fifo->front()) {
        require(entry->bytes.size() <= fifo->capacity() && entry->from == to_rogue);
        fifo->pop();
      }
    require(fifo->lent_blocks() <= fifo->capacity() / mbcf::kBlock);
    require(fifo->free_blocks() <= fifo->capacity() / mbcf::kBlock);
    for (mbcf::Completion c; engine.next_completion(c);) require(c.peer == to_rogue);
  }
  world.run_until([&] { return engine.poll(now()), false; }, milliseconds{2}, microseconds{20});
  for (std::size_t i = 0; i < kGuard; ++i) {
    require(memory[i] == kCanary && memory[kGuard + kExported + i] == kCanary);
    require(local[i] == kCanary && local[kGuard + 3000 + i] == kCanary);
  }
  require(engine.link().connected(to_rogue));
  victim.link->attach(link::Protocol::test, nullptr);
  return 0;
}
