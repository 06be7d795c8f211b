// What an NIU makes of any StarT-X message: the input is a row of (kind, lane, length, bytes) sent
// by a connected peer that has been given rights to write. Memory outside those rights must not
// change; the NIU must survive and still serve an honest peer.
#include "drivers/startx_emul/niu.hpp"
#include "drivers/startx_emul/wire.hpp"
#include "tests/fuzz/attack.hpp"

using namespace viaduct;
using namespace viaduct::link::test;
using link::Lane;

namespace {

constexpr std::size_t kGuard = 64, kGranted = 256;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  World world;
  Node& victim = world.add();
  Node& rogue = world.add();
  startx::Niu<sim::SimPort> niu(*victim.link, {});
  std::vector<std::byte> memory(2 * kGuard + kGranted, kCanary);
  const auto region = niu.rdma().register_memory(memory);
  const auto [to_victim, to_rogue] = connect(world, rogue, victim);
  startx::Right right;
  require(niu.rdma().grant(to_rogue, {region, kGuard, kGranted}, right).status ==
          startx::RdmaStatus::ok);
  require(niu.rdma().post({}, 7, {region, kGuard, kGranted}).status == startx::RdmaStatus::ok);

  while (size >= 3) {
    const std::uint8_t kind = data[0] & 15, lane = data[0] >> 4 & 3, genuine = data[0] >> 6;
    std::vector<std::byte> body = take_body(data, size, data[1] | (data[2] & 3) << 8);
    if (genuine != 0 && body.size() >= sizeof(startx::DataHead)) {  // a right that was given
      startx::DataHead head;
      std::memcpy(&head, body.data(), sizeof(head));
      head.slot = right.slot;
      head.key = right.key;
      if (genuine > 1) head.offset %= 2 * kGranted;
      std::memcpy(body.data(), &head, sizeof(head));
    }
    rogue.link->try_send(to_victim, static_cast<Lane>(lane % link::kLanes), link::Order::unordered,
                         {link::Protocol::startx, kind}, {}, body, link::Urgency::batch,
                         world.net.now());
    world.run_until([&] { return niu.poll(world.net.now()), false; }, microseconds{20});
    for (const auto priority : {startx::Priority::high, startx::Priority::low}) {
      while (const auto* p = niu.peek(priority)) {
        require(p->words >= startx::kMinWords && p->words <= startx::kMaxWords);
        niu.pop(priority);
      }
      while (const auto* p = niu.queue_peek(priority)) {
        require(p->words >= startx::kMinWords && p->words <= startx::kMaxWords);
        niu.queue_pop(priority);
      }
    }
  }
  world.run_until([&] { return niu.poll(world.net.now()), false; }, milliseconds{2},
                  microseconds{20});
  for (std::size_t i = 0; i < kGuard; ++i)
    require(memory[i] == kCanary && memory[kGuard + kGranted + i] == kCanary);
  require(niu.link().connected(to_rogue));
  victim.link->attach(link::Protocol::test, nullptr);
  return 0;
}
